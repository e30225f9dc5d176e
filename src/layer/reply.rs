//! Answers that the layer writes itself. Fixed wording of ours: no text from the server, nothing that invites a repeat.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use serde_json::{Value, json};

use super::ResponseBody;
use super::response_body::Delivery;
use crate::clock::{Timestamp, rfc3339_millis};
use crate::execution::State;
use crate::identity::{ExecutionId, RequestId};
use crate::wire::{Accepts, Revision, event_for};

/// What is known of an execution that has no result to give.
pub(super) struct Open {
    pub(super) execution: ExecutionId,
    pub(super) tool: String,
    pub(super) state: State,
    pub(super) first_dispatched_at: Option<Timestamp>,
    /// Why there is no result, in our words.
    pub(super) reason: String,
    pub(super) resume: Way,
    pub(super) query: Way,
}

/// Where one way to the result stands.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// It was taken and brought nothing.
    Tried,
    /// There is none.
    Unavailable,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Tried => "tried",
            Self::Unavailable => "unavailable",
        }
    }
}

/// The JSON-RPC result for an execution whose outcome is unknown, or which is still running. A model reads the text.
pub(super) fn open(open: &Open, id: &RequestId, revision: Revision) -> Bytes {
    let Open {
        execution,
        tool,
        state,
        ..
    } = open;
    let tool: String = tool
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_TOOL_CHARS)
        .collect();
    let sent = open
        .first_dispatched_at
        .map_or_else(|| "an earlier time".into(), rfc3339_millis::format);
    let running = matches!(
        state,
        State::Dispatched | State::Working | State::Authorized | State::Accepted
    );
    let text = if running {
        format!(
            "STILL RUNNING. The call of `{tool}` was sent at {sent} and has not been answered yet ({}). It has neither \
             succeeded nor failed, and it was not sent a second time. Do not call `{tool}` with these arguments as a new \
             action. Wait and then look up the result, or ask a person. Execution: {execution}",
            open.reason
        )
    } else {
        format!(
            "OUTCOME UNKNOWN. The call of `{tool}` was first sent at {sent}, and no result is known: {}. It may have taken \
             effect, or not. It was not sent again, because nothing proves that doing it twice would be safe. Do not repeat \
             it, and do not report it as done or as failed. Find out whether it happened, with a read-only tool or by \
             asking a person. Execution: {execution}",
            open.reason
        )
    };
    let mut result = json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
        "_meta": { EXECUTION_META: {
            "execution_id": execution,
            "state": state,
            "first_dispatched_at": open.first_dispatched_at.map(rfc3339_millis::format),
            "reason": open.reason,
            "options": {
                "wait": if running { "available" } else { "unavailable" },
                "resume": open.resume.name(),
                "query": open.query.name(),
                "repeat": "forbidden",
            },
        } },
    });
    match revision {
        Revision::Resumable => {}
        Revision::Stateless => result["resultType"] = "complete".into(),
    }
    message(id, "result", result)
}

/// The JSON-RPC error for a call that was not sent, and that no execution stands for.
pub(super) fn refused(reason: &str, id: Option<&RequestId>) -> Bytes {
    let error = json!({
        "code": REFUSED,
        "message": format!("not sent: {reason}"),
        "data": { "dev.reattach": { "sent": false } },
    });
    match id {
        Some(id) => message(id, "error", error),
        None => Bytes::from(json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string()),
    }
}

/// The JSON-RPC error for a call that was denied.
pub(super) fn denied(execution: ExecutionId, id: &RequestId) -> Bytes {
    let error = json!({
        "code": DENIED,
        "message": "denied: this call was refused by policy, and repeating it does not ask again",
        "data": { "dev.reattach": { "sent": false, "execution_id": execution } },
    });
    message(id, "error", error)
}

/// A response that carries one message, in a form that the caller reads.
pub(super) fn respond(
    message: Bytes,
    accepts: Accepts,
    delivery: Option<Delivery>,
) -> Response<ResponseBody> {
    let (kind, bytes) = if accepts.json || !accepts.event_stream {
        ("application/json", message)
    } else {
        ("text/event-stream", event_for(&message))
    };
    let mut response = Response::new(ResponseBody::whole(bytes, delivery));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn message(id: &RequestId, member: &str, value: Value) -> Bytes {
    // The id goes in as it came: a number keeps its digits.
    Bytes::from(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"{member}\":{value}}}",
        id.to_json()
    ))
}

const EXECUTION_META: &str = "dev.reattach/execution";
/// JSON-RPC error codes of ours, from the range that JSON-RPC 2.0, 5.1 leaves to implementations.
const REFUSED: i64 = -32091;
const DENIED: i64 = -32092;
const MAX_TOOL_CHARS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(revision: Revision) -> Value {
        let at: Timestamp = "2026-07-28T12:00:00Z".parse().unwrap();
        let open = Open {
            execution: ExecutionId::new(at, [1; 10]),
            tool: "pay\u{1b}[31m".into(),
            state: State::OutcomeUnknown,
            first_dispatched_at: Some(at),
            reason: "the response ended before the result was complete".into(),
            resume: Way::Tried,
            query: Way::Unavailable,
        };
        serde_json::from_slice(&super::open(
            &open,
            &RequestId::String("x".into()),
            revision,
        ))
        .unwrap()
    }

    #[test]
    fn an_unknown_is_a_result_that_says_what_is_known_and_invites_nothing() {
        let message = unknown(Revision::Resumable);
        assert_eq!(message["id"], "x");
        let result = &message["result"];
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().unwrap();
        for part in [
            "OUTCOME UNKNOWN",
            "2026-07-28T12:00:00.000Z",
            "exe_",
            "was not sent again",
            "Do not repeat",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        for invitation in ["try again", "retry", "please repeat", "resend"] {
            assert!(!text.to_lowercase().contains(invitation), "{invitation}");
        }
        assert!(!text.contains('\u{1b}'), "control characters are left out");
        assert_eq!(result["_meta"][EXECUTION_META]["state"], "outcome_unknown");
        assert_eq!(
            result["_meta"][EXECUTION_META]["options"]["repeat"],
            "forbidden"
        );
        assert!(result.get("resultType").is_none());
        assert_eq!(
            unknown(Revision::Stateless)["result"]["resultType"],
            "complete"
        );
    }

    #[test]
    fn a_refusal_says_that_nothing_was_sent() {
        let message: Value = serde_json::from_slice(&refused("the disk is full", None)).unwrap();
        assert_eq!(message["id"], Value::Null);
        assert_eq!(message["error"]["message"], "not sent: the disk is full");
        assert_eq!(message["error"]["data"]["dev.reattach"]["sent"], false);
    }
}
