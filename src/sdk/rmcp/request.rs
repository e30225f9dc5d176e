//! rmcp's parameters as an HTTP request.

use std::collections::HashMap;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::TowerError;
use crate::wire::{LAST_EVENT_ID, MCP_SESSION_ID};

pub(super) type Failure = StreamableHttpError<TowerError>;

/// A request to an MCP endpoint.
pub(super) struct Outgoing<'a> {
    pub(super) method: Method,
    pub(super) uri: &'a str,
    pub(super) session: Option<&'a str>,
    pub(super) last_event: Option<&'a str>,
    /// A bearer token, without the scheme.
    pub(super) token: Option<&'a str>,
    pub(super) custom: HashMap<HeaderName, HeaderValue>,
    pub(super) body: Option<Bytes>,
}

impl Outgoing<'_> {
    /// The request.
    ///
    /// # Errors
    /// When a custom header is one that the transport sets itself, or a value can't be in a header; nothing was sent.
    pub(super) fn into_request(self) -> Result<Request<Full<Bytes>>, Failure> {
        let uri: Uri = self.uri.parse().map_err(|_| unusable("the server's URI"))?;
        let mut headers = HeaderMap::new();
        if self.method != Method::DELETE {
            headers.insert(
                ACCEPT,
                HeaderValue::from_static("text/event-stream, application/json"),
            );
        }
        if self.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(token) = self.token {
            headers.insert(
                AUTHORIZATION,
                secret(&format!("Bearer {token}"), "the bearer token")?,
            );
        }
        if let Some(session) = self.session {
            headers.insert(MCP_SESSION_ID, secret(session, "the session id")?);
        }
        if let Some(event) = self.last_event {
            let value = HeaderValue::from_bytes(event.as_bytes())
                .map_err(|_| unusable("the last event id"))?;
            headers.insert(LAST_EVENT_ID, value);
        }
        for (name, value) in self.custom {
            if RESERVED.contains(&name) {
                return Err(StreamableHttpError::ReservedHeaderConflict(
                    name.to_string(),
                ));
            }
            headers.insert(name, value);
        }
        let mut request = Request::new(Full::new(self.body.unwrap_or_default()));
        *request.method_mut() = self.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

fn secret(value: &str, what: &'static str) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::from_str(value).map_err(|_| unusable(what))?;
    value.set_sensitive(true);
    Ok(value)
}

fn unusable(what: &'static str) -> Failure {
    StreamableHttpError::Client(TowerError::Unusable { what })
}

/// What the transport sets itself. `MCP-Protocol-Version` is not among them: rmcp hands it in as a custom header.
const RESERVED: [HeaderName; 3] = [ACCEPT, MCP_SESSION_ID, LAST_EVENT_ID];

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing(custom: HashMap<HeaderName, HeaderValue>) -> Outgoing<'static> {
        Outgoing {
            method: Method::POST,
            uri: "http://127.0.0.1:1/mcp",
            session: Some("s"),
            last_event: None,
            token: Some("t"),
            custom,
            body: Some(Bytes::from_static(b"{}")),
        }
    }

    #[test]
    fn reserved_headers_are_refused_and_the_protocol_version_passes() {
        for name in ["accept", "mcp-session-id", "last-event-id"] {
            let custom =
                HashMap::from([(HeaderName::from_static(name), HeaderValue::from_static("x"))]);
            let refused = outgoing(custom).into_request();
            assert!(
                matches!(refused, Err(StreamableHttpError::ReservedHeaderConflict(_))),
                "{name}"
            );
        }
        let version = HeaderName::from_static("mcp-protocol-version");
        let custom = HashMap::from([(version, HeaderValue::from_static("2025-11-25"))]);
        let request = outgoing(custom).into_request().unwrap();
        assert_eq!(request.headers()["authorization"], "Bearer t");
        assert!(
            request.headers()["authorization"].is_sensitive()
                && request.headers()["mcp-session-id"].is_sensitive()
        );
    }

    #[test]
    fn a_token_that_no_header_can_carry_is_an_error_that_does_not_show_it() {
        let outgoing = Outgoing {
            token: Some("se\ncret"),
            ..outgoing(HashMap::new())
        };
        let error = outgoing.into_request().unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains("cret\""),
            "{error:?}"
        );
    }
}
