//! What rmcp is told about an HTTP response: the same as by rmcp's own clients, row by row.

use std::borrow::Cow;

use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, Response, StatusCode, response};
use http_body::Body;
use http_body_util::BodyExt;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
    StreamableHttpPostResponse, StreamableHttpResponseLimits,
};

use super::TowerError;
use super::events::Events;
use super::request::Failure;
use crate::layer::BoxError;
use crate::wire::{MCP_SESSION_ID, MediaType, media_type};

/// The answer to a POST.
pub(super) async fn to_post<B>(
    response: Response<B>,
    message: &ClientJsonRpcMessage,
    had_session: bool,
    limits: StreamableHttpResponseLimits,
) -> Result<StreamableHttpPostResponse, Failure>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (head, body) = response.into_parts();
    challenge(&head)?;
    if matches!(head.status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if head.status == StatusCode::NOT_FOUND && had_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    if !head.status.is_success() {
        return failed_post(&head, body, message, had_session, limits).await;
    }
    let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
    let session = head
        .headers
        .get(MCP_SESSION_ID)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    if !wants_answer && body.size_hint().exact() == Some(0) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    match media_type(&head.headers) {
        MediaType::EventStream => Ok(StreamableHttpPostResponse::Sse(
            Events::new(body, limits.max_sse_event_size).boxed(),
            session,
        )),
        MediaType::Json => {
            let bytes = whole(body, limits.max_json_response_size).await?;
            match serde_json::from_slice::<ServerJsonRpcMessage>(&bytes) {
                Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
                Err(_) if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
                Err(error) => Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(
                    format!("the JSON body is no JSON-RPC message: {error}"),
                ))),
            }
        }
        // Nothing is awaited, so nothing in the body matters.
        MediaType::Other | MediaType::Absent if !wants_answer => {
            Ok(StreamableHttpPostResponse::Accepted)
        }
        MediaType::Other | MediaType::Absent => Err(StreamableHttpError::UnexpectedContentType(
            content_type(&head.headers),
        )),
    }
}

/// The answer to the GET that opens a stream.
pub(super) fn to_get<B>(
    response: Response<B>,
    max_event_bytes: usize,
) -> Result<Events<B>, Failure> {
    let (head, body) = response.into_parts();
    if head.status == StatusCode::METHOD_NOT_ALLOWED {
        return Err(StreamableHttpError::ServerDoesNotSupportSse);
    }
    challenge(&head)?;
    refuse_failure(&head)?;
    match media_type(&head.headers) {
        MediaType::EventStream | MediaType::Json => Ok(Events::new(body, max_event_bytes)),
        MediaType::Other | MediaType::Absent => Err(StreamableHttpError::UnexpectedContentType(
            content_type(&head.headers),
        )),
    }
}

/// The answer to the DELETE of a session.
pub(super) fn to_delete<B>(response: Response<B>) -> Result<(), Failure> {
    let (head, _) = response.into_parts();
    if head.status == StatusCode::METHOD_NOT_ALLOWED {
        return Ok(()); // a server may refuse that clients end sessions
    }
    refuse_failure(&head)
}

/// A POST that failed by its status. Its body may still hold the JSON-RPC error that says more.
async fn failed_post<B>(
    head: &response::Parts,
    body: B,
    message: &ClientJsonRpcMessage,
    had_session: bool,
    limits: StreamableHttpResponseLimits,
) -> Result<StreamableHttpPostResponse, Failure>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let by_status = status_error(head);
    let is_json = media_type(&head.headers) == MediaType::Json;
    if let Some(error) = by_status.as_ref()
        && (!is_json || head.status == StatusCode::TOO_MANY_REQUESTS)
    {
        return Err(HttpStatusError::new(error.status, error.retry_after.clone()).into());
    }
    let is_auth_failure = matches!(
        head.status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
    );
    let text = if is_json && !is_auth_failure {
        match whole(body, limits.max_json_response_size).await {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error @ StreamableHttpError::ResponseBodyTooLarge { .. }) => {
                return Err(by_status.map_or(error, Into::into));
            }
            Err(_) => String::new(), // the status is still worth telling
        }
    } else {
        prefix(body, limits.max_error_response_size).await
    };
    if let Some(answer) = rejected_discovery(message, had_session, head.status, &text) {
        return Ok(answer);
    }
    if is_json
        && !is_auth_failure
        && let Ok(error @ ServerJsonRpcMessage::Error(_)) = serde_json::from_str(&text)
    {
        let session = head
            .headers
            .get(MCP_SESSION_ID)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        return Ok(StreamableHttpPostResponse::Json(error, session));
    }
    if let Some(error) = by_status {
        return Err(error.into());
    }
    let text: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(
        format!("HTTP {}: {text}", head.status),
    )))
}

/// A server of the older family refuses `server/discover` in whatever way it refuses what it does not know. rmcp goes on to
/// the handshake when it sees that as a JSON-RPC error under the request's own id, which such servers do not echo.
///
/// # Source
/// MCP 2026-07-28, discovery and falling back to earlier revisions.
fn rejected_discovery(
    message: &ClientJsonRpcMessage,
    had_session: bool,
    status: StatusCode,
    body: &str,
) -> Option<StreamableHttpPostResponse> {
    let is_refusal = status.is_client_error()
        && !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let ClientJsonRpcMessage::Request(request) = message else {
        return None;
    };
    if had_session || !is_refusal || !matches!(request.request, ClientRequest::DiscoverRequest(_)) {
        return None;
    }
    let error = match serde_json::from_str(body) {
        Ok(ServerJsonRpcMessage::Error(error)) => error.error,
        Ok(_) | Err(_) => ErrorData::invalid_request(
            format!("the server refused discovery with HTTP {status}"),
            None,
        ),
    };
    Some(StreamableHttpPostResponse::Json(
        ServerJsonRpcMessage::error(error, Some(request.id.clone())),
        None,
    ))
}

/// 401 and 403 with a challenge: the caller has to authorize, or to ask for more.
fn challenge(head: &response::Parts) -> Result<(), Failure> {
    if !matches!(
        head.status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
    ) {
        return Ok(());
    }
    let Some(value) = head.headers.get(WWW_AUTHENTICATE) else {
        return Ok(());
    };
    let Ok(text) = value.to_str() else {
        return Err(StreamableHttpError::UnexpectedServerResponse(
            "the challenge is not text".into(),
        ));
    };
    Err(if head.status == StatusCode::UNAUTHORIZED {
        StreamableHttpError::AuthRequired(AuthRequiredError::new(text.to_owned()))
    } else {
        StreamableHttpError::InsufficientScope(InsufficientScopeError::new(
            text.to_owned(),
            scope(text),
        ))
    })
}

/// The `scope` parameter of a challenge, quoted or not.
///
/// # Source
/// RFC 6750, 3.
fn scope(challenge: &str) -> Option<String> {
    let at = challenge.to_ascii_lowercase().find("scope=")?;
    let value = &challenge[at + "scope=".len()..];
    let scope = match value.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None => value
            .split([',', ';', ' ', '\t'])
            .next()
            .unwrap_or_default(),
    };
    (!scope.is_empty()).then(|| scope.to_owned())
}

fn refuse_failure(head: &response::Parts) -> Result<(), Failure> {
    if head.status.is_success() {
        return Ok(());
    }
    Err(match status_error(head) {
        Some(error) => error.into(),
        None => StreamableHttpError::Client(TowerError::Status(head.status)),
    })
}

/// 429 and 5xx, with when to come back.
fn status_error(head: &response::Parts) -> Option<HttpStatusError> {
    let told = head.status == StatusCode::TOO_MANY_REQUESTS || head.status.is_server_error();
    let after = || {
        head.headers
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    told.then(|| HttpStatusError::new(head.status.as_u16(), after()))
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    headers
        .get(CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

async fn whole<B>(body: B, limit: usize) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    use crate::layer::body::{Cut, whole};
    whole(body, limit).await.map_err(|cut| match cut {
        Cut::TooLarge => StreamableHttpError::ResponseBodyTooLarge { max_size: limit },
        Cut::Failed(error) => StreamableHttpError::Client(TowerError::Body(error.into())),
        Cut::Short => StreamableHttpError::UnexpectedEndOfStream,
    })
}

/// As much of a body as a diagnostic needs.
async fn prefix<B: Body<Data = Bytes>>(body: B, limit: usize) -> String {
    let mut body = std::pin::pin!(body);
    let mut bytes = Vec::new();
    while bytes.len() < limit
        && let Some(Ok(frame)) = body.frame().await
    {
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data[..data.len().min(limit - bytes.len())]);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

const MAX_SHOWN_CHARS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_read_quoted_or_not() {
        assert_eq!(
            scope(r#"Bearer error="insufficient_scope", scope="a b""#).as_deref(),
            Some("a b")
        );
        assert_eq!(
            scope("Bearer Scope=read:data, x=y").as_deref(),
            Some("read:data")
        );
        assert_eq!(scope("Bearer"), None);
        assert_eq!(scope("Bearer scope=\"open"), None);
    }
}
