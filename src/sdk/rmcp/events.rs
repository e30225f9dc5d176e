//! A response body as rmcp's stream of events.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::Body;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

use crate::layer::BoxError;
use crate::wire::{Block, Framer};

/// Events of a body, each of at most `max_event_bytes`; ends with the body or with its first error.
pub(super) struct Events<B> {
    body: Pin<Box<B>>,
    framer: Framer,
    ended: bool,
}

impl<B> Events<B> {
    pub(super) fn new(body: B, max_event_bytes: usize) -> Self {
        Self {
            body: Box::pin(body),
            framer: Framer::new(max_event_bytes),
            ended: false,
        }
    }
}

impl<B> Stream for Events<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Item = Result<Sse, SseError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            match self.framer.next_block() {
                Ok(Some(block)) => match of(&block) {
                    Some(event) => return Poll::Ready(Some(event)),
                    None => continue,
                },
                Ok(None) => {}
                Err(error) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(SseError::Body(error.into()))));
                }
            }
            match ready!(self.body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.framer.push(data);
                    }
                }
                Some(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(SseError::Body(error.into()))));
                }
                None => self.ended = true,
            }
        }
    }
}

/// `None` for blocks that say nothing: comments, empty lines.
fn of(block: &Block) -> Option<Result<Sse, SseError>> {
    let event = block.event();
    let data = match event.data.as_deref().map(std::str::from_utf8) {
        Some(Ok(data)) => Some(data.to_owned()),
        Some(Err(error)) => return Some(Err(SseError::Utf8Parse(error))),
        None => None,
    };
    let sse = Sse {
        event: (!event.kind.is_empty()).then(|| event.kind.into_owned()),
        data,
        id: event
            .id
            .map(|id| id.map_or_else(String::new, |id| id.as_str().to_owned())),
        retry: event
            .retry
            .map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX)),
    };
    (sse != Sse::default()).then_some(Ok(sse))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use http_body_util::Full;

    #[tokio::test]
    async fn fields_arrive_as_rmcp_knows_them_and_comments_do_not() {
        let text = ": hello\n\nid: 0/0\nretry: 3000\ndata:\n\nevent: message\ndata: {}\n\nid:\n\n";
        let events: Vec<_> = Events::new(Full::new(Bytes::from(text)), 100)
            .map(Result::unwrap)
            .collect()
            .await;
        let sse = Sse::default;
        assert_eq!(
            events,
            [
                sse().id("0/0").retry(3000).data(""),
                sse().event("message").data("{}"),
                sse().id("")
            ]
        );
    }

    #[tokio::test]
    async fn an_event_over_the_limit_ends_the_stream_with_an_error() {
        let text = format!("data: {}", "x".repeat(200));
        let events: Vec<_> = Events::new(Full::new(Bytes::from(text)), 100)
            .collect()
            .await;
        assert!(matches!(&events[..], [Err(SseError::Body(_))]));
    }
}
