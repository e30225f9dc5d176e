//! The body that the inner service gets. It records its first poll: that is the boundary of `not_sent`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use super::BoxError;

/// A request body. Not `Clone`, on purpose: a retry below this layer could not be seen.
pub struct RequestBody(Kind);

enum Kind {
    Streamed(UnsyncBoxBody<Bytes, BoxError>),
    Whole {
        bytes: Option<Bytes>,
        polled: FirstPoll,
    },
}

/// Whether a body was polled. As long as it was not, none of its bytes can have left.
#[derive(Clone, Debug, Default)]
pub(super) struct FirstPoll(Arc<AtomicBool>);

impl FirstPoll {
    pub(super) fn happened(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl RequestBody {
    /// The body of a request that passes through.
    pub(super) fn streamed<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Kind::Streamed(body.map_err(Into::into).boxed_unsync()))
    }

    /// A body that lies in memory, and what will know of its first poll.
    pub(super) fn whole(bytes: Bytes) -> (Self, FirstPoll) {
        let polled = FirstPoll::default();
        (
            Self(Kind::Whole {
                bytes: Some(bytes),
                polled: polled.clone(),
            }),
            polled,
        )
    }

    /// The body of a GET.
    pub(crate) fn empty() -> Self {
        Self(Kind::Whole {
            bytes: None,
            polled: FirstPoll::default(),
        })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Streamed(body) => Pin::new(body).poll_frame(cx),
            Kind::Whole { bytes, polled } => {
                polled.0.store(true, Ordering::Release); // before the bytes are out of our hands
                Poll::Ready(
                    bytes
                        .take()
                        .filter(|bytes| !bytes.is_empty())
                        .map(|bytes| Ok(Frame::data(bytes))),
                )
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Streamed(body) => body.is_end_stream(),
            Kind::Whole { bytes, .. } => bytes.as_ref().is_none_or(Bytes::is_empty),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Streamed(body) => body.size_hint(),
            Kind::Whole { bytes, .. } => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
        }
    }
}

impl std::fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Kind::Streamed(_) => "RequestBody(streamed)",
            Kind::Whole { .. } => "RequestBody(whole)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_its_size_is_not_a_poll_and_taking_a_frame_is() {
        let (mut body, polled) = RequestBody::whole(Bytes::from_static(b"{}"));
        assert_eq!(body.size_hint().exact(), Some(2));
        assert!(!body.is_end_stream() && !polled.happened());
        let mut context = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) else {
            panic!("no frame")
        };
        assert_eq!(frame.into_data().unwrap(), "{}");
        assert!(polled.happened() && body.is_end_stream());
    }
}
