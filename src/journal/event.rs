//! What an entry of the journal says: one thing that became known about one execution or run.

use serde::{Deserialize, Serialize};

use crate::contract::Class;
use crate::execution::{Evidence, Permit};
use crate::identity::{Fingerprint, IntentScope, RequestId, ResultId, RunId};

/// One thing that became known. Entries are appended, never edited; a record is the fold of its events.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
#[non_exhaustive]
pub enum Event {
    /// A process opened the journal.
    RunStarted(RunStarted),
    /// A call was accepted as a new execution.
    Accepted {
        /// Finds it again when the call is repeated.
        fingerprint: Fingerprint,
        /// The tool's name, as the server spells it.
        tool: String,
        /// The contract's class.
        class: Class,
        /// Who acts.
        actor: String,
        /// The process that acts.
        run_id: RunId,
        /// Where the action takes effect: server origin and path.
        target: String,
        /// The name of the credential, from the configuration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credential_ref: Option<String>,
        /// How far a repeat counts as the same intent.
        intent_scope: IntentScope,
        /// Keyed digest of the intent that the caller named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        intent: Option<String>,
    },
    /// The policy said yes.
    Authorized {
        /// What said it.
        by: String,
    },
    /// The policy said no.
    Denied {
        /// What said it.
        by: String,
        /// Why.
        reason: String,
    },
    /// The right to send was made durable. From this entry on, bytes may have left.
    Dispatched {
        /// 1 for the first.
        n: u32,
        /// Why it may go out again; none for the first.
        permit: Option<Permit>,
        /// The JSON-RPC id it goes out under.
        request_id: RequestId,
        /// Digest of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// The protocol revision of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        revision: Option<String>,
    },
    /// A dispatch ended without a result, for a reason that leaves its execution where the verdict says.
    Settled {
        /// Which dispatch.
        n: u32,
        /// What was seen.
        evidence: Evidence,
    },
    /// The first event id of the response stream: the way back to it, sealed, since a session id is a bearer of rights.
    StreamOpened {
        /// Which dispatch.
        n: u32,
        /// Sealed session id, event id and revision, in hexadecimal.
        cursor: String,
    },
    /// A lost stream was opened again. Message recovery: it adds no dispatch and grants no right to send.
    StreamResumed {
        /// Which dispatch's stream.
        n: u32,
        /// How many times by now.
        times: u32,
    },
    /// A way of recovery was tried and did not bring the result.
    RecoveryFailed {
        /// Which way: resume, poll, probe, send_again.
        way: String,
        /// Why not, in our words.
        reason: String,
    },
    /// The server's result is kept.
    Completed {
        /// HTTP status that carried it, when one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target_status: Option<u16>,
        /// Where the sealed result lies.
        result_reference: ResultId,
        /// `sha256:` of the sealed bytes: that of the plain ones would give a short result away.
        result_digest: String,
        /// Whether it is an error of the tool or of JSON-RPC: still a received result.
        is_error: bool,
    },
    /// The server asks for input before it goes on; its question is kept like a result.
    InputRequired {
        /// Where the sealed question lies.
        result_reference: ResultId,
        /// `sha256:` of the sealed bytes.
        result_digest: String,
    },
    /// A caller took the result.
    Delivered {
        /// The JSON-RPC id it was delivered under.
        request_id: RequestId,
    },
    /// A caller attached to an execution that another call started, or was given its kept result.
    Reattached {
        /// The JSON-RPC id of the repeated call.
        request_id: RequestId,
        /// The run of the repeated call.
        run_id: RunId,
    },
    /// Nothing proves whether it happened.
    OutcomeUnknown {
        /// Why.
        evidence: Evidence,
    },
    /// Something arrived that belongs to no open question: a second answer, an answer for another id.
    Ignored {
        /// What it was, in our words.
        what: String,
    },
}

impl Event {
    /// Its name on disk.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RunStarted(_) => "run_started",
            Self::Accepted { .. } => "accepted",
            Self::Authorized { .. } => "authorized",
            Self::Denied { .. } => "denied",
            Self::Dispatched { .. } => "dispatched",
            Self::Settled { .. } => "settled",
            Self::StreamOpened { .. } => "stream_opened",
            Self::StreamResumed { .. } => "stream_resumed",
            Self::RecoveryFailed { .. } => "recovery_failed",
            Self::Completed { .. } => "completed",
            Self::InputRequired { .. } => "input_required",
            Self::Delivered { .. } => "delivered",
            Self::Reattached { .. } => "reattached",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::Ignored { .. } => "ignored",
        }
    }
}

/// A process that opened the journal.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunStarted {
    /// The run.
    pub run_id: RunId,
    /// Who acts.
    pub actor: String,
    /// Process id.
    pub pid: u32,
    /// Version of this crate.
    pub version: String,
}

impl RunStarted {
    /// This process, as this run of this actor.
    #[must_use]
    pub fn here(run_id: RunId, actor: impl Into<String>) -> Self {
        Self {
            run_id,
            actor: actor.into(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}
