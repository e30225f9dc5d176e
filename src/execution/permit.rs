//! Permits, and the evidence they rest on.

use serde::{Deserialize, Serialize};

/// Why a dispatch after an execution's first is allowed. Recorded with it. No permit, no bytes (law 2).
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a new permit has to be decided everywhere"
)]
pub enum Permit {
    /// Proof that the body never left.
    NotSent,
    /// The server said that it did not run it.
    Rejected,
    /// The contract says that it changes nothing.
    ReadOnly,
    /// The contract makes the same idempotency key safe.
    SameKey,
    /// A status probe says that the condition still holds.
    ConditionHolds,
    /// A continuation of a multi-round-trip request.
    InputContinuation,
    /// An operator decided.
    Released,
}

impl Permit {
    /// The name on disk and in every output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::Rejected => "rejected",
            Self::ReadOnly => "read_only",
            Self::SameKey => "same_key",
            Self::ConditionHolds => "condition_holds",
            Self::InputContinuation => "input_continuation",
            Self::Released => "released",
        }
    }
}

impl std::fmt::Display for Permit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What one dispatch without a result amounts to.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a new verdict has to be decided everywhere"
)]
pub enum Verdict {
    /// Proof that the body never left.
    NotSent,
    /// The server said that it did not run it.
    Rejected,
    /// Anything else: absence of proof is not proof.
    Unknown,
}

/// What was seen of a dispatch that brought no result. The code is recorded, so that an investigator can disagree later.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "code")]
#[non_exhaustive]
pub enum Evidence {
    /// The inner service failed, and our body was never polled.
    BodyNeverPolled,
    /// The inner service failed after our body was polled.
    FailedAfterPoll,
    /// The direct answer to this POST was this status, which servers give before they run anything.
    RefusedByStatus {
        /// The status.
        status: u16,
    },
    /// The direct answer was a JSON-RPC error that exists before execution.
    RefusedByError {
        /// The JSON-RPC error code.
        error: i64,
    },
    /// A status that says nothing about whether the tool ran.
    UninformativeStatus {
        /// The status.
        status: u16,
    },
    /// 200 or 202 without an answer to this request in it.
    NoAnswer {
        /// The status.
        status: u16,
    },
    /// The response body failed or ended before the answer was whole.
    BodyCutShort,
    /// The response body was whole, but it held no JSON-RPC response to this request.
    NotAnAnswer,
    /// The answer was larger than the configured limit.
    AnswerTooLarge,
    /// The stream ended, and no way to resume it was left.
    StreamLost,
    /// Nobody was left to wait, and the time to read on ran out.
    DetachedTooLong,
    /// The process that had dispatched it is gone.
    OwnerGone,
}

impl Evidence {
    /// The verdict that this evidence supports by itself, before any contract.
    #[must_use]
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::BodyNeverPolled => Verdict::NotSent,
            Self::RefusedByStatus { .. } | Self::RefusedByError { .. } => Verdict::Rejected,
            Self::FailedAfterPoll
            | Self::UninformativeStatus { .. }
            | Self::NoAnswer { .. }
            | Self::BodyCutShort
            | Self::NotAnAnswer
            | Self::AnswerTooLarge
            | Self::StreamLost
            | Self::DetachedTooLong
            | Self::OwnerGone => Verdict::Unknown,
        }
    }

    /// What a person or a model is told: fixed wording of ours, no text from the server.
    #[must_use]
    pub fn sentence(self) -> String {
        match self {
            Self::BodyNeverPolled => {
                "the connection failed before the request body was taken".into()
            }
            Self::FailedAfterPoll => {
                "the connection failed after the request was handed over".into()
            }
            Self::RefusedByStatus { status } => {
                format!("the server refused the request with HTTP {status}")
            }
            Self::RefusedByError { error } => {
                format!("the server refused the request with JSON-RPC error {error}")
            }
            Self::UninformativeStatus { status } => {
                format!("the answer was HTTP {status}, which does not say whether the tool ran")
            }
            Self::NoAnswer { status } => {
                format!("the server answered HTTP {status} without a result")
            }
            Self::BodyCutShort => "the response ended before the result was complete".into(),
            Self::NotAnAnswer => "the response held no answer to this request".into(),
            Self::AnswerTooLarge => "the result was larger than the configured limit".into(),
            Self::StreamLost => "the response stream was lost and could not be resumed".into(),
            Self::DetachedTooLong => {
                "no result arrived within the time allowed for reading on".into()
            }
            Self::OwnerGone => "the process that had sent it ended before a result was kept".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_recorded_by_its_code() {
        let json = serde_json::to_string(&Evidence::RefusedByStatus { status: 401 }).unwrap();
        assert_eq!(json, r#"{"code":"refused_by_status","status":401}"#);
        assert_eq!(
            serde_json::from_str::<Evidence>(&json).unwrap().verdict(),
            Verdict::Rejected
        );
    }
}
