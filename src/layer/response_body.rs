//! The body that the caller gets.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::{mpsc, oneshot};

use super::BoxError;
use super::exchange::UpstreamBody;
use crate::identity::{ExecutionId, RequestId};
use crate::journal::Journal;

/// A response body. When the frame that holds a kept result is taken out of it, the journal hears that it was delivered.
pub struct ResponseBody(Kind);

enum Kind {
    Upstream(UpstreamBody),
    Whole {
        bytes: Option<Bytes>,
        delivery: Option<Delivery>,
    },
    Live(Live),
}

/// A stream that is being read for the caller, by a task or by the polling of this body.
struct Live {
    frames: mpsc::Receiver<Result<Part, BoxError>>,
    delivery: Option<Delivery>,
    /// Dropped with the body: the task sees that the caller left.
    _present: Option<oneshot::Sender<()>>,
    /// Where no task reads, polling this does.
    reader: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// A piece of a live stream.
pub(super) enum Part {
    /// Anything.
    Frame(Frame<Bytes>),
    /// The event that holds the answer; it is kept already.
    Answer(Bytes),
}

/// What tells the journal that a result was delivered.
pub(super) struct Delivery {
    pub(super) journal: Journal,
    pub(super) execution: ExecutionId,
    pub(super) request: RequestId,
}

impl Delivery {
    fn happened(self) {
        self.journal.delivered(self.execution, &self.request);
    }
}

impl ResponseBody {
    pub(super) fn upstream(body: UpstreamBody) -> Self {
        Self(Kind::Upstream(body))
    }

    pub(super) fn whole(bytes: Bytes, delivery: Option<Delivery>) -> Self {
        Self(Kind::Whole {
            bytes: Some(bytes),
            delivery,
        })
    }

    pub(super) fn live(
        frames: mpsc::Receiver<Result<Part, BoxError>>,
        delivery: Option<Delivery>,
    ) -> Self {
        Self(Kind::Live(Live {
            frames,
            delivery,
            _present: None,
            reader: None,
        }))
    }

    /// A stream that is read while this body is polled, and no longer.
    pub(super) fn read_by(
        frames: mpsc::Receiver<Result<Part, BoxError>>,
        reader: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self(Kind::Live(Live {
            frames,
            delivery: None,
            _present: None,
            reader: Some(Box::pin(reader)),
        }))
    }

    /// Holds on to the sign that the caller is there.
    pub(super) fn hold(&mut self, present: oneshot::Sender<()>) {
        match &mut self.0 {
            Kind::Live(live) => live._present = Some(present),
            Kind::Upstream(_) | Kind::Whole { .. } => {}
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Upstream(body) => Pin::new(body).poll_frame(cx),
            Kind::Whole { bytes, delivery } => {
                let Some(bytes) = bytes.take() else {
                    return Poll::Ready(None);
                };
                if let Some(delivery) = delivery.take() {
                    delivery.happened();
                }
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Kind::Live(live) => live.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Upstream(body) => body.is_end_stream(),
            // An undelivered result is not at its end, however short.
            Kind::Whole { bytes, .. } => bytes.is_none(),
            Kind::Live(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Upstream(body) => body.size_hint(),
            Kind::Whole { bytes, .. } => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Kind::Live(_) => SizeHint::default(),
        }
    }
}

impl Live {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            match self.frames.poll_recv(cx) {
                Poll::Ready(Some(Ok(Part::Frame(frame)))) => return Poll::Ready(Some(Ok(frame))),
                Poll::Ready(Some(Ok(Part::Answer(bytes)))) => {
                    if let Some(delivery) = self.delivery.take() {
                        delivery.happened();
                    }
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {}
            }
            let Some(reader) = &mut self.reader else {
                return Poll::Pending;
            };
            match reader.as_mut().poll(cx) {
                Poll::Ready(()) => self.reader = None, // what it still sent is in the channel
                // It may have sent something while it was polled; then the receiver has woken us.
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Kind::Upstream(_) => "ResponseBody(upstream)",
            Kind::Whole { .. } => "ResponseBody(whole)",
            Kind::Live(_) => "ResponseBody(live)",
        })
    }
}
