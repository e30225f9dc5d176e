//! What now? The life of an execution and the decision about a repeated call. Pure: no clock, no disk, no async.

mod decide;
mod permit;
mod state;
mod stream;
pub mod verdict;

pub use decide::{Decision, Incoming, Prior, Priors, decide};
pub use permit::{Evidence, Permit, Verdict};
pub use state::State;
pub use stream::{Action, Input, ResponseStream, ResumeLimits};
