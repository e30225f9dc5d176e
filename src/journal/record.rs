//! An execution as dumps and `show --json` print it: the fold of its events.

use serde::{Deserialize, Serialize};

use super::event::Event;
use crate::clock::{Timestamp, rfc3339_millis};
use crate::contract::Class;
use crate::execution::{Evidence, Permit, State};
use crate::identity::{ExecutionId, Fingerprint, IntentScope, RequestId, ResultId, RunId};

/// An execution. Absent means: not reached.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename = "execution")]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "the names are those of the events and of the design's record"
)]
pub struct ExecutionRecord {
    pub schema: u32,
    pub execution_id: ExecutionId,
    pub fingerprint: Fingerprint,
    pub tool: String,
    pub class: Class,
    pub actor: String,
    pub run_id: RunId,
    pub target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_ref: Option<String>,
    pub intent_scope: IntentScope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    pub state: State,
    #[serde(with = "rfc3339_millis")]
    pub accepted_at: Timestamp,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "rfc3339_millis::option"
    )]
    pub authorized_at: Option<Timestamp>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "rfc3339_millis::option"
    )]
    pub dispatched_at: Option<Timestamp>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "rfc3339_millis::option"
    )]
    pub completed_at: Option<Timestamp>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "rfc3339_millis::option"
    )]
    pub delivered_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_reference: Option<ResultId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<String>,
    pub dispatches: Vec<DispatchRecord>,
    /// How many times a stream of it was resumed.
    #[serde(default)]
    pub resumes: u32,
    /// How many repeated calls were answered from it.
    #[serde(default)]
    pub reattached: u32,
    /// Why it stands where it stands, when that needs saying.
    pub reason: Option<String>,
}

/// One dispatch of an execution.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are those of the event")]
pub struct DispatchRecord {
    pub n: u32,
    pub permit: Option<Permit>,
    #[serde(with = "rfc3339_millis")]
    pub at: Timestamp,
    pub request_id: RequestId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    pub evidence: Option<Evidence>,
    /// The sealed way back to its stream. Not part of dumps.
    #[serde(skip)]
    pub cursor: Option<String>,
}
