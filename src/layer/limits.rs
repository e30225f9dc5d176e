//! Bounds: on memory that a peer can fill, and on time that a peer can take.

use std::time::Duration;

use crate::contract::ContractLimits;
use crate::execution::ResumeLimits;

/// What the layer allows. Sizes in bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// A JSON request body; larger ones are refused, since nobody looked into them. 4 MiB.
    pub max_request_bytes: usize,
    /// A JSON response to a side-effecting call; a larger one can't be kept, and its outcome is unknown. 16 MiB.
    pub max_answer_bytes: usize,
    /// One event of a stream. 16 MiB.
    pub max_event_bytes: usize,
    /// Calls with a side effect that run at the same time; more are refused. 1024.
    pub max_running: usize,
    /// How long a repeated call waits for the execution that it attached to. 5 minutes.
    pub attach_wait: Duration,
    /// How long the layer reads on after the caller left. 10 minutes.
    pub detached_for: Duration,
    /// How often the layer sends again by itself what provably never left, or what the server refused until a stated
    /// time. 2.
    pub resends: u32,
    /// The longest `Retry-After` that the layer waits for by itself. 30 s.
    pub max_retry_after: Duration,
    /// How long and how often a lost stream is resumed.
    pub resume: ResumeLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_request_bytes: 4 << 20,
            max_answer_bytes: 16 << 20,
            max_event_bytes: 16 << 20,
            max_running: 1024,
            attach_wait: Duration::from_secs(300),
            detached_for: Duration::from_secs(600),
            resends: 2,
            max_retry_after: Duration::from_secs(30),
            resume: ResumeLimits::default(),
        }
    }
}

impl Limits {
    /// These limits, with what a contract says instead.
    pub(super) fn with(mut self, contract: &ContractLimits) -> Self {
        self.attach_wait = contract.attach_wait.unwrap_or(self.attach_wait);
        self.detached_for = contract.detached.unwrap_or(self.detached_for);
        self.resume.deadline = contract.resume.unwrap_or(self.resume.deadline);
        self
    }
}
