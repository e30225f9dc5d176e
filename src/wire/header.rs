//! Header names and what they say.

use std::time::Duration;

use http::header::{
    ACCEPT, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, RETRY_AFTER, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};

use crate::clock::Timestamp;
use crate::identity::{EventId, SessionId};

/// `Mcp-Session-Id`
pub const MCP_SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// `MCP-Protocol-Version`
pub const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// `Last-Event-ID`
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// `Idempotency-Key`
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What a body says it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "these are all that matter here")]
pub enum MediaType {
    /// `application/json`, or another type for JSON
    Json,
    /// `text/event-stream`
    EventStream,
    /// Something else.
    Other,
    /// It doesn't say.
    Absent,
}

/// The media type of a message with these headers, without its parameters, in any case of letters.
#[must_use]
pub fn media_type(headers: &HeaderMap) -> MediaType {
    let Some(value) = headers.get(CONTENT_TYPE) else {
        return MediaType::Absent;
    };
    let essence = value
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim();
    let essence = essence.to_ascii_lowercase();
    let json = matches!(
        essence.as_str(),
        "application/json" | "text/json" | "application/json-rpc"
    );
    if json || essence.ends_with("+json") {
        MediaType::Json
    } else if essence == "text/event-stream" {
        MediaType::EventStream
    } else {
        MediaType::Other
    }
}

/// What the caller can read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "these are all that matter here")]
pub struct Accepts {
    /// `application/json`, also by a wildcard or for want of a header.
    pub json: bool,
    /// `text/event-stream`, by its name: a wildcard doesn't promise a reader of streams.
    pub event_stream: bool,
}

/// What the `Accept` headers say.
#[must_use]
pub fn accepts(headers: &HeaderMap) -> Accepts {
    let mut accepts = Accepts {
        json: !headers.contains_key(ACCEPT),
        event_stream: false,
    };
    for value in headers.get_all(ACCEPT) {
        for range in value.to_str().unwrap_or_default().split(',') {
            let essence = range
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase();
            accepts.json |= matches!(
                essence.as_str(),
                "application/json" | "application/*" | "*/*"
            );
            accepts.event_stream |= essence == "text/event-stream";
        }
    }
    accepts
}

/// The session that these headers name.
#[must_use]
pub fn session(headers: &HeaderMap) -> Option<SessionId> {
    headers
        .get(MCP_SESSION_ID)
        .and_then(|value| value.to_str().ok())
        .map(SessionId::new)
}

/// Where an action takes effect: scheme, host, port where it is not the scheme's own, and path. The query is left out: it
/// may carry a secret, and it is not part of an MCP endpoint's identity.
///
/// # Source
/// RFC 3986, 6.2.2.1 and 6.2.3, for the case of scheme and host and for the default port.
#[must_use]
pub fn target(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or("http").to_ascii_lowercase();
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    let path = if uri.path().is_empty() {
        "/"
    } else {
        uri.path()
    };
    match (uri.port_u16(), scheme.as_str()) {
        (None, _) | (Some(443), "https") | (Some(80), "http") => format!("{scheme}://{host}{path}"),
        (Some(port), _) => format!("{scheme}://{host}:{port}{path}"),
    }
}

/// The headers of a GET that resumes the stream of a POST that had these: all that describes the caller and the
/// connection stays, all that describes the POST's body or its method goes.
///
/// # Source
/// MCP 2025-11-25, Transports, Resumability and Redelivery.
#[must_use]
pub fn resume_headers(
    post: &HeaderMap,
    session: Option<&SessionId>,
    event: &EventId,
) -> Option<HeaderMap> {
    let mut headers = post.clone();
    for name in OF_THE_POST {
        headers.remove(name);
    }
    let of_the_call: Vec<_> = headers
        .keys()
        .filter(|name| mirrors_the_body(name))
        .cloned()
        .collect();
    for name in of_the_call {
        headers.remove(name);
    }
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    // An id that no header can carry (it may be any UTF-8) can't be resumed from.
    headers.insert(
        LAST_EVENT_ID,
        HeaderValue::from_bytes(event.as_str().as_bytes()).ok()?,
    );
    if let Some(session) = session {
        let mut value = HeaderValue::from_str(session.expose()).ok()?;
        value.set_sensitive(true);
        headers.insert(MCP_SESSION_ID, value);
    }
    Some(headers)
}

/// The delay that a server asks for: seconds, or a date.
///
/// # Source
/// RFC 9110, 10.2.3.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        return value.parse().ok().map(Duration::from_secs);
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new()
        .parse_timestamp(value)
        .ok()?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn mirrors_the_body(name: &HeaderName) -> bool {
    let name = name.as_str();
    name == "mcp-method" || name == "mcp-name" || name.starts_with("mcp-param-")
}

const OF_THE_POST: [HeaderName; 11] = [
    ACCEPT,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    EXPECT,
    IDEMPOTENCY_KEY,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn a_target_has_one_spelling_and_no_query() {
        for uri in [
            "https://Bank.Example/mcp",
            "https://bank.example:443/mcp?key=secret",
        ] {
            assert_eq!(target(&uri.parse().unwrap()), "https://bank.example/mcp");
        }
        assert_eq!(
            target(&"http://127.0.0.1:8000".parse().unwrap()),
            "http://127.0.0.1:8000/"
        );
    }

    #[test]
    fn accept_is_read_by_its_parts() {
        let both = accepts(&headers(&[(
            "accept",
            "Application/JSON, text/event-stream;q=0.9",
        )]));
        assert_eq!(
            both,
            Accepts {
                json: true,
                event_stream: true
            }
        );
        assert_eq!(
            accepts(&headers(&[("accept", "text/event-stream")])),
            Accepts {
                json: false,
                event_stream: true
            }
        );
        assert_eq!(
            accepts(&HeaderMap::new()),
            Accepts {
                json: true,
                event_stream: false
            }
        );
    }

    #[test]
    fn resuming_keeps_who_asks_and_drops_what_was_asked() {
        let post = headers(&[
            ("authorization", "Bearer x"),
            ("content-type", "application/json"),
            ("content-length", "9"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2025-11-25"),
            ("mcp-method", "tools/call"),
            ("mcp-param-region", "eu"),
            ("idempotency-key", "exe"),
            ("x-trace", "t"),
        ]);
        let get = resume_headers(
            &post,
            Some(&SessionId::new("s")),
            &EventId::new("1/0").unwrap(),
        )
        .unwrap();
        let mut names: Vec<_> = get.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "accept",
                "authorization",
                "last-event-id",
                "mcp-protocol-version",
                "mcp-session-id",
                "x-trace"
            ]
        );
        assert_eq!(get["last-event-id"], "1/0");
        assert_eq!(get["accept"], "text/event-stream");
    }

    #[test]
    fn an_event_id_that_no_header_can_carry_cannot_be_resumed_from() {
        assert!(resume_headers(&HeaderMap::new(), None, &EventId::new("a\nb").unwrap()).is_none());
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: Timestamp = "2026-07-28T12:00:00Z".parse().unwrap();
        assert_eq!(
            retry_after(&headers(&[("retry-after", "7")]), now),
            Some(Duration::from_secs(7))
        );
        let date = headers(&[("retry-after", "Tue, 28 Jul 2026 12:00:30 GMT")]);
        assert_eq!(retry_after(&date, now), Some(Duration::from_secs(30)));
        let past = headers(&[("retry-after", "Tue, 28 Jul 2026 11:00:00 GMT")]);
        assert_eq!(retry_after(&past, now), Some(Duration::ZERO));
        for bad in ["", "soon", "-1", "99999999999999999999999"] {
            let bad = [(RETRY_AFTER, HeaderValue::from_static(bad))]
                .into_iter()
                .collect();
            assert_eq!(retry_after(&bad, now), None);
        }
    }
}
