//! One side-effecting call, as the task that drives it needs it.

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderName, HeaderValue, Request, request};

use super::request_body::FirstPoll;
use super::{Limits, RequestBody};
use crate::contract::{OnOpenMatch, Session404, Window};
use crate::execution::Incoming;
use crate::identity::{Correlation, ExecutionId, RequestId};
use crate::journal::NewExecution;
use crate::wire::{Accepts, MCP_PROTOCOL_VERSION, Revision, Slot, session};

pub(super) struct Call {
    pub(super) head: request::Parts,
    /// The body as the SDK wrote it.
    pub(super) body: Bytes,
    /// Where in it the execution id goes.
    pub(super) slot: Slot,
    pub(super) continues: bool,
    pub(super) accepts: Accepts,
    pub(super) revision: Revision,
    pub(super) correlation: Correlation,
    pub(super) window: Window,
    pub(super) on_open_match: OnOpenMatch,
    pub(super) session_404: Session404,
    pub(super) limits: Limits,
    /// The header that carries the execution id, where the contract says that the target honours it.
    pub(super) key_header: Option<HeaderName>,
    /// What it becomes when nothing like it exists.
    pub(super) new: NewExecution,
}

impl Call {
    pub(super) fn id(&self) -> &RequestId {
        self.correlation.request()
    }

    pub(super) fn incoming(&self) -> Incoming<'_> {
        Incoming {
            run: self.new.run_id,
            intent: self.new.intent.as_deref(),
            continues: self.continues,
            window: self.window,
            on_open_match: self.on_open_match,
        }
    }

    /// The request as it goes out under an execution: what the SDK wrote, with the execution id spliced in, the body's
    /// length set right, and without an offer to compress the response, which the layer has to read.
    pub(super) fn request(&self, execution: ExecutionId) -> (Request<RequestBody>, FirstPoll) {
        let body = self.slot.fill(&self.body, execution);
        let mut head = self.head.clone();
        if head.headers.contains_key(CONTENT_LENGTH) {
            head.headers
                .insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        head.headers.remove(ACCEPT_ENCODING);
        if let Some(name) = &self.key_header
            && let Ok(key) = HeaderValue::from_str(&execution.to_string())
        {
            head.headers.insert(name, key);
        }
        let (body, polled) = RequestBody::whole(body);
        (Request::from_parts(head, body), polled)
    }
}

/// What paired a request with its answer and its session.
pub(super) fn correlation(id: RequestId, headers: &HeaderMap) -> Correlation {
    let revision = headers
        .get(MCP_PROTOCOL_VERSION)
        .and_then(|value| value.to_str().ok());
    Correlation::new(id, session(headers), revision)
}
