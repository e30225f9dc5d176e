//! What is kept sealed: answers, and the way back to a response stream.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::identity::{EventId, ResultId, SessionId};

/// The server's answer, to be kept.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Answer {
    /// The whole JSON-RPC response message, as the server wrote it.
    pub message: Bytes,
    /// HTTP status of the response that carried it.
    pub status: Option<u16>,
    /// `isError: true` or a JSON-RPC error.
    pub is_error: bool,
    /// `resultType: "input_required"`: a question, not an end.
    pub asks_for_input: bool,
}

/// A kept answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Kept {
    /// The whole JSON-RPC response message; its id is that of the request that first got it.
    pub message: Bytes,
    /// Where it lies.
    pub reference: ResultId,
}

/// The way back to a response stream.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct StreamCursor {
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// What `Last-Event-ID` has to say.
    pub event: EventId,
    /// The protocol revision.
    pub revision: Option<String>,
}

/// A cursor as it is sealed.
#[derive(Deserialize, Serialize)]
struct Plain<'a> {
    #[serde(borrow)]
    session: Option<std::borrow::Cow<'a, str>>,
    event: EventId,
    revision: Option<String>,
}

impl StreamCursor {
    pub(super) fn to_plain(&self) -> Zeroizing<Vec<u8>> {
        let session = self.session.as_ref().map(|session| session.expose().into());
        let plain = Plain {
            session,
            event: self.event.clone(),
            revision: self.revision.clone(),
        };
        Zeroizing::new(serde_json::to_vec(&plain).expect("plain data with text keys"))
    }

    pub(super) fn from_plain(bytes: &[u8]) -> Option<Self> {
        let Plain {
            session,
            event,
            revision,
        } = serde_json::from_slice(bytes).ok()?;
        Some(Self {
            session: session.map(|session| SessionId::new(&session)),
            event,
            revision,
        })
    }
}
