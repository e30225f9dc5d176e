//! The decision about a call that may repeat an earlier one.

use crate::clock::Timestamp;
use crate::contract::Class;
use crate::execution::{State, Verdict};
use crate::identity::{ExecutionId, IntentScope, RunId};

/// What the journal knows of earlier executions with the same fingerprint, oldest first.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Priors {
    /// Grows with every change of any of them; what a compare-and-swap compares.
    pub version: u64,
    /// The executions.
    pub executions: Vec<Prior>,
}

/// One earlier execution.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Prior {
    /// Which.
    pub execution: ExecutionId,
    /// Where it stands.
    pub state: State,
    /// Whether somebody in reach drives it now.
    pub owned: bool,
    /// Its class when it was accepted.
    pub class: Class,
    /// Its scope when it was accepted.
    pub scope: IntentScope,
    /// The run that it belongs to.
    pub run: RunId,
    /// Keyed digest of the intent that its caller named.
    pub intent: Option<String>,
    /// What its newest settled dispatch amounts to.
    pub verdict: Option<Verdict>,
    /// When it last changed.
    pub changed_at: Timestamp,
}
