//! One execution, for people: what is known, by which entries, and the next safe step.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::value::RawValue;

use super::escape;
use crate::clock::{Timestamp, rfc3339_millis};
use crate::execution::State;
use crate::journal::{Digest, Entry, Event, ExecutionRecord};

/// The record, its timeline, and what may be done now.
#[must_use]
pub fn show(record: &ExecutionRecord, entries: &[Entry]) -> String {
    let mut text = String::new();
    let mut field = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<13}{}", escape(value));
    };
    field("execution", &record.execution_id.to_string());
    field("state", record.state.name());
    if let Some(reason) = &record.reason {
        field("reason", reason);
    }
    field("tool", &record.tool);
    field("class", record.class.name());
    field("target", &record.target);
    field("actor", &record.actor);
    field("run", &record.run_id.to_string());
    if let Some(credential) = &record.credential_ref {
        field("credential", credential);
    }
    field("fingerprint", &record.fingerprint.to_string());
    if let Some(result) = record.result_reference {
        field("result", &format!("{result}, sealed"));
    }
    text.push_str("\ntimeline\n");
    for entry in entries {
        let at = rfc3339_millis::format(entry.at);
        let _ = writeln!(
            text,
            "  {at}  entry {:<6} {}",
            entry.sequence,
            escape(&told(&entry.event))
        );
    }
    let _ = write!(text, "\nnext         {}", next_step(record.state));
    text
}

/// What an event says, in a line.
#[must_use]
pub fn told(event: &Event) -> String {
    match event {
        Event::RunStarted(run) => format!("run of {} started as process {}", run.actor, run.pid),
        Event::Accepted { tool, .. } => format!("accepted: {tool}"),
        Event::Authorized { by } => format!("authorized by {by}"),
        Event::Denied { by, reason } => format!("denied by {by}: {reason}"),
        Event::Dispatched {
            n,
            permit,
            request_id,
            ..
        } => {
            let permit = permit.map_or_else(
                || "the first needs no permit".to_owned(),
                |permit| format!("permit {permit}"),
            );
            format!("dispatch {n} may leave under request id {request_id}; {permit}")
        }
        Event::Settled { n, evidence } => {
            format!("dispatch {n} brought no result: {}", evidence.sentence())
        }
        Event::StreamOpened { n, .. } => {
            format!("dispatch {n} opened a stream that can be resumed")
        }
        Event::StreamResumed { n, times } => format!(
            "the stream of dispatch {n} was resumed, {times} so far; nothing was sent again"
        ),
        Event::RecoveryFailed { way, reason } => {
            format!("recovery by {way} brought nothing: {reason}")
        }
        Event::Completed {
            target_status,
            is_error,
            ..
        } => {
            let status = target_status
                .map(|status| format!(" with HTTP {status}"))
                .unwrap_or_default();
            format!(
                "the target answered{status}{}; the result is kept",
                if *is_error { " with an error" } else { "" }
            )
        }
        Event::InputRequired { .. } => "the target asks for input; its question is kept".into(),
        Event::Delivered { request_id } => format!("delivered under request id {request_id}"),
        Event::Reattached { request_id, run_id } => {
            format!(
                "a repeat, request id {request_id} of {run_id}, was answered from here and not sent"
            )
        }
        Event::OutcomeUnknown { evidence } => format!("outcome unknown: {}", evidence.sentence()),
        Event::Ignored { what } => format!("ignored {what}"),
    }
}

/// What may be done now.
#[must_use]
pub const fn next_step(state: State) -> &'static str {
    match state {
        State::Accepted | State::Authorized => "nothing was sent; calling again goes on from here",
        State::Denied => "nothing was sent; a repeat is denied too",
        State::Dispatched => {
            "it runs, or its process ended: calling again attaches or looks for the result; it is not sent again"
        }
        State::InputRequired => "answer the target's question; the same execution goes on",
        State::Working => "the target works on it; calling again looks for the result",
        State::OutcomeUnknown => {
            "find out at the target whether it happened; until then a repeat is answered with unknown and not sent"
        }
        State::CompletedResultNotDelivered => "it happened; calling again delivers the kept result",
        State::CompletedResultDelivered => "nothing; an equal call is a new action",
        State::NotExecuted => "it did not run; calling again sends it",
        State::Cancelled => "nothing; the target confirmed that it was cancelled",
    }
}

/// An entry as dumps print it, its event as the text that the chain runs over.
pub fn entry_line(entry: &Entry) -> impl Serialize {
    #[derive(Serialize)]
    struct Line {
        r#type: &'static str,
        seq: u64,
        #[serde(with = "rfc3339_millis")]
        at: Timestamp,
        of: String,
        event: Option<Box<RawValue>>,
        prev: Digest,
        hash: Digest,
    }
    Line {
        r#type: "entry",
        seq: entry.sequence,
        at: entry.at,
        of: entry.subject.to_string(),
        event: RawValue::from_string(entry.text.to_string()).ok(),
        prev: entry.prev,
        hash: entry.hash,
    }
}
