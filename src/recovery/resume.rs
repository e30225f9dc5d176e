//! Opens a lost response stream again.

use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};

use crate::identity::{EventId, SessionId};
use crate::layer::RequestBody;
use crate::layer::exchange::{Exchange, UpstreamBody};
use crate::wire::{MediaType, media_type, resume_headers};

/// What an attempt to resume came to.
pub(crate) enum Opened {
    /// A stream. Whether it brings anything is another matter.
    Stream(UpstreamBody),
    /// No stream this time.
    Failed,
    /// The server has no such stream, or no streams at all.
    Refused,
}

/// Sends the GET that resumes the stream of a POST with these headers behind `event`.
///
/// # Source
/// MCP 2025-11-25, Transports, Resumability and Redelivery; 404 and 405 from Session Management and Listening for Messages.
pub(crate) async fn open(
    exchange: &mut dyn Exchange,
    uri: &Uri,
    version: Version,
    post: &HeaderMap,
    session: Option<&SessionId>,
    event: &EventId,
) -> Opened {
    let Some(headers) = resume_headers(post, session, event) else {
        return Opened::Refused;
    };
    let mut request = Request::new(RequestBody::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = uri.clone();
    *request.version_mut() = version;
    *request.headers_mut() = headers;
    match exchange.send(request).await {
        Err(error) => {
            tracing::debug!(error = &*error as &dyn std::error::Error, "resuming failed");
            Opened::Failed
        }
        Ok(response) => match of(response.status(), media_type(response.headers())) {
            Answer::Stream => Opened::Stream(response.into_body()),
            Answer::Failed => Opened::Failed,
            Answer::Refused => Opened::Refused,
        },
    }
}

#[derive(Debug, Eq, PartialEq)]
enum Answer {
    Stream,
    Failed,
    Refused,
}

/// 200 that is no event stream is "no stream here", like 405. A status that may pass is worth another attempt.
fn of(status: StatusCode, media: MediaType) -> Answer {
    match (status.as_u16(), media) {
        (200..=299, MediaType::EventStream) => Answer::Stream,
        // 409: some servers say so while the old connection is not yet gone. 401: a newer token may be on its way.
        (401 | 408 | 409 | 425 | 429 | 500..=599, _) => Answer::Failed,
        _ => Answer::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_event_stream_is_a_stream() {
        assert_eq!(of(StatusCode::OK, MediaType::EventStream), Answer::Stream);
        for media in [MediaType::Json, MediaType::Other, MediaType::Absent] {
            assert_eq!(of(StatusCode::OK, media), Answer::Refused);
        }
        for status in [400, 403, 404, 405, 410, 302] {
            assert_eq!(
                of(StatusCode::from_u16(status).unwrap(), MediaType::Json),
                Answer::Refused,
                "{status}"
            );
        }
        assert_eq!(
            of(StatusCode::BAD_GATEWAY, MediaType::Other),
            Answer::Failed
        );
    }
}
