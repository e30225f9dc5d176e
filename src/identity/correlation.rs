//! Evidence of one exchange: it pairs an answer with its request and is never a reason to act.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::json::Number;

/// A JSON-RPC request id. A number and a string are different, also when they look alike; two numbers are one when they
/// mean the same, however they are written (a server may echo `1` for `1.0`).
///
/// # Source
/// JSON-RPC 2.0, 4; MCP 2025-11-25, Base Protocol: a string or a number, never null.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[expect(clippy::exhaustive_enums, reason = "JSON-RPC has these two")]
pub enum RequestId {
    /// A number, kept exactly when it is an integer of 64 bits.
    Number(serde_json::Number),
    /// A string.
    String(Box<str>),
}

impl RequestId {
    /// The id that this JSON text is. `None` when it is neither a string nor a number, or a number that could not be echoed
    /// exactly.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        let id: Self = serde_json::from_str(text).ok()?;
        let exact = match &id {
            Self::Number(number) => canonical(number) == Number::from_token(text.trim()),
            Self::String(_) => true,
        };
        exact.then_some(id)
    }

    /// The id as JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::String(text) => serde_json::Value::from(&**text).to_string(),
        }
    }
}

/// None only where the exponent is beyond all use, which no number read here has.
fn canonical(number: &serde_json::Number) -> Option<Number> {
    Number::from_token(&number.to_string())
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => canonical(one) == canonical(other),
            (Self::String(one), Self::String(other)) => one == other,
            (Self::Number(_), Self::String(_)) | (Self::String(_), Self::Number(_)) => false,
        }
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Number(number) => canonical(number).hash(state),
            Self::String(text) => text.hash(state),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

/// An `Mcp-Session-Id`. A bearer of rights: records hold its digest only, and `Debug` shows nothing else.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct SessionId(Box<str>);

impl SessionId {
    /// The session id of this header value.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The value itself, for the header.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `sha256:` and 16 hex digits: enough to tell sessions apart, useless as a session.
    #[must_use]
    pub fn digest(&self) -> String {
        let digest = Sha256::digest(self.0.as_bytes());
        let mut text = String::from("sha256:");
        for byte in &digest[..8] {
            text.push_str(&format!("{byte:02x}"));
        }
        text
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.digest())
    }
}

/// The id of an event of a stream; what `Last-Event-ID` carries. Never empty.
#[derive(Clone, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
pub struct EventId(Box<str>);

impl EventId {
    /// The event id of this text; none for the empty one, which clears a cursor.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What one exchange was known by.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Correlation {
    request: RequestId,
    session: Option<SessionId>,
    revision: Option<Box<str>>,
}

impl Correlation {
    /// The correlation of a request, with the session and the protocol revision that its headers named.
    #[must_use]
    pub fn new(request: RequestId, session: Option<SessionId>, revision: Option<&str>) -> Self {
        Self {
            request,
            session,
            revision: revision.map(Into::into),
        }
    }

    /// The JSON-RPC id.
    #[must_use]
    pub fn request(&self) -> &RequestId {
        &self.request
    }

    /// The session that the request named.
    #[must_use]
    pub fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// The protocol revision that the request named, as it stood there.
    #[must_use]
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_string_are_different_ids() {
        let number: RequestId = serde_json::from_str("1").unwrap();
        let string: RequestId = serde_json::from_str("\"1\"").unwrap();
        assert_ne!(number, string);
        assert_eq!(
            (number.to_json(), string.to_json()),
            ("1".into(), "\"1\"".into())
        );
    }

    #[test]
    fn numbers_are_ids_by_what_they_mean() {
        for spelling in ["1", "1.0", "1e0"] {
            assert_eq!(
                RequestId::from_json(spelling),
                RequestId::from_json("1"),
                "{spelling}"
            );
        }
        assert_ne!(RequestId::from_json("1"), RequestId::from_json("1.5"));
        for unusable in [
            "null",
            "true",
            "[]",
            "123456789012345678901234567890",
            "1e999",
        ] {
            assert_eq!(RequestId::from_json(unusable), None, "{unusable}");
        }
    }

    #[test]
    fn a_session_never_shows_itself() {
        let session = SessionId::new("very-secret-session");
        assert!(!format!("{session:?}").contains("secret"));
    }

    #[test]
    fn an_empty_event_id_is_none() {
        assert_eq!(EventId::new(""), None);
    }
}
