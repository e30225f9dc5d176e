//! The states of an execution and the steps between them.

use serde::{Deserialize, Serialize};

/// Where an execution stands. The names on disk are the names here, in snake case.
///
/// ```text
/// accepted -> authorized -> dispatched -> completed_result_not_delivered -> completed_result_delivered
///      \           \             \--> outcome_unknown --(probe, resume, operator)--> completed / not_executed
///       \           \--> denied    \--> input_required --> dispatched (permit: input_continuation)
///        \--> not_executed          \--> working (a task id is known) --> completed / cancelled
/// ```
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a new state has to be decided everywhere"
)]
pub enum State {
    /// The request is valid and has its id; nothing was decided.
    Accepted,
    /// The policy said yes.
    Authorized,
    /// The policy said no.
    Denied,
    /// The permission to send is durable; from here on bytes may have left.
    Dispatched,
    /// The server asked for input before it goes on.
    InputRequired,
    /// The server took it as a task and named the task.
    Working,
    /// It was dispatched, and nothing proves whether it happened.
    OutcomeUnknown,
    /// The server's result is kept; no caller is known to have it.
    CompletedResultNotDelivered,
    /// The server's result is kept, and a caller took it.
    CompletedResultDelivered,
    /// Proof exists that it did not happen.
    NotExecuted,
    /// The server confirmed a cancellation.
    Cancelled,
}

impl State {
    /// Every state, in the order of a life.
    pub const ALL: [Self; 11] = [
        Self::Accepted,
        Self::Authorized,
        Self::Denied,
        Self::Dispatched,
        Self::InputRequired,
        Self::Working,
        Self::OutcomeUnknown,
        Self::CompletedResultNotDelivered,
        Self::CompletedResultDelivered,
        Self::NotExecuted,
        Self::Cancelled,
    ];

    /// The name on disk and in every output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Authorized => "authorized",
            Self::Denied => "denied",
            Self::Dispatched => "dispatched",
            Self::InputRequired => "input_required",
            Self::Working => "working",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::CompletedResultNotDelivered => "completed_result_not_delivered",
            Self::CompletedResultDelivered => "completed_result_delivered",
            Self::NotExecuted => "not_executed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the step from here to `next` is one that can happen. Writers refuse others, and so do readers.
    #[must_use]
    pub const fn allows(self, next: Self) -> bool {
        match self {
            Self::Accepted => matches!(next, Self::Authorized | Self::Denied | Self::NotExecuted),
            Self::Authorized => matches!(next, Self::Denied | Self::Dispatched | Self::NotExecuted),
            // `Dispatched` again is a further dispatch with its permit.
            Self::Dispatched => matches!(
                next,
                Self::Dispatched
                    | Self::InputRequired
                    | Self::Working
                    | Self::OutcomeUnknown
                    | Self::CompletedResultNotDelivered
                    | Self::NotExecuted
                    | Self::Cancelled
            ),
            Self::InputRequired => {
                matches!(
                    next,
                    Self::Dispatched | Self::OutcomeUnknown | Self::NotExecuted | Self::Cancelled
                )
            }
            Self::Working => matches!(
                next,
                Self::OutcomeUnknown
                    | Self::CompletedResultNotDelivered
                    | Self::InputRequired
                    | Self::Cancelled
            ),
            // A late answer settles an unknown even when nobody waits; a permit lets it go out again.
            Self::OutcomeUnknown => matches!(
                next,
                Self::Dispatched
                    | Self::Working
                    | Self::InputRequired
                    | Self::CompletedResultNotDelivered
                    | Self::NotExecuted
                    | Self::Cancelled
            ),
            Self::CompletedResultNotDelivered => matches!(next, Self::CompletedResultDelivered),
            // Refused or never sent: the same execution may go out once more, by permit.
            Self::NotExecuted => matches!(next, Self::Dispatched),
            Self::CompletedResultDelivered | Self::Denied | Self::Cancelled => false,
        }
    }

    /// Whether the server's result is kept.
    #[must_use]
    pub const fn is_completed(self) -> bool {
        matches!(
            self,
            Self::CompletedResultNotDelivered | Self::CompletedResultDelivered
        )
    }

    /// Whether bytes may have left and no result is kept: what an SRE looks for first.
    #[must_use]
    pub const fn is_unresolved(self) -> bool {
        matches!(
            self,
            Self::Dispatched | Self::InputRequired | Self::Working | Self::OutcomeUnknown
        )
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_disk_are_the_names_here() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
    }

    #[test]
    fn a_kept_result_never_becomes_a_failure() {
        for next in State::ALL {
            let allowed = State::CompletedResultNotDelivered.allows(next);
            assert_eq!(allowed, next == State::CompletedResultDelivered, "{next}");
            assert!(!State::CompletedResultDelivered.allows(next), "{next}");
        }
    }

    #[test]
    fn nothing_unauthorized_is_dispatched() {
        assert!(!State::Accepted.allows(State::Dispatched));
        assert!(!State::Denied.allows(State::Dispatched));
    }

    #[test]
    fn unknown_never_decays_by_itself_into_success_or_failure() {
        // Only proof leads out: a kept result, proof of not executed, the server's word, or a permit.
        assert!(!State::OutcomeUnknown.allows(State::CompletedResultDelivered));
        assert!(!State::OutcomeUnknown.allows(State::Denied));
    }
}
