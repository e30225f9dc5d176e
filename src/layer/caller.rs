//! The caller's end of a call that runs in a task: it may leave at any time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, response};
use http_body::Frame;
use tokio::sync::{mpsc, oneshot};

use super::response_body::{Delivery, Part};
use super::{BoxError, LayerError, ResponseBody};

type Answered = Result<Response<ResponseBody>, LayerError>;

/// What the task holds: the way to the caller. Whatever is sent to one who left is dropped.
pub(super) struct Caller {
    answer: Option<oneshot::Sender<Answered>>,
    frames: Option<mpsc::Sender<Result<Part, BoxError>>>,
}

/// What the task holds to see that the caller left.
pub(super) struct Departure(oneshot::Receiver<()>);

/// What the caller's future holds.
pub(super) struct Waiting {
    answer: oneshot::Receiver<Answered>,
    present: Option<oneshot::Sender<()>>,
}

/// The three ends of a call.
pub(super) fn caller() -> (Caller, Departure, Waiting) {
    let (answer, answered) = oneshot::channel();
    let (present, departure) = oneshot::channel();
    let waiting = Waiting {
        answer: answered,
        present: Some(present),
    };
    (
        Caller {
            answer: Some(answer),
            frames: None,
        },
        Departure(departure),
        waiting,
    )
}

impl Departure {
    /// Resolves when the caller has dropped its future or its body.
    pub(super) async fn wait(&mut self) {
        let _ = (&mut self.0).await;
    }

    /// Whether the caller has left.
    pub(super) fn happened(&mut self) -> bool {
        !matches!(self.0.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }
}

impl Caller {
    /// Gives the caller its one answer.
    pub(super) fn answer(&mut self, answer: Answered) {
        if let Some(caller) = self.answer.take() {
            let _ = caller.send(answer);
        }
    }

    /// Gives the caller the head of a stream, whose parts follow.
    pub(super) fn open(&mut self, head: response::Parts, delivery: Option<Delivery>) {
        let (frames, body) = mpsc::channel(FRAMES_IN_FLIGHT);
        self.frames = Some(frames);
        self.answer(Ok(Response::from_parts(
            head,
            ResponseBody::live(body, delivery),
        )));
    }

    /// Whether the head is out, so that whatever follows has to be part of the stream.
    pub(super) fn is_open(&self) -> bool {
        self.frames.is_some()
    }
}

/// Where the parts of a stream go. Waits while the caller is slow; once it left, parts are dropped.
pub(super) trait Outlet: Send {
    fn frame(&mut self, frame: Frame<Bytes>) -> impl Future<Output = ()> + Send;
    fn kept(&mut self, event: Bytes) -> impl Future<Output = ()> + Send;
}

impl Outlet for Caller {
    async fn frame(&mut self, frame: Frame<Bytes>) {
        self.send(Part::Frame(frame)).await;
    }

    async fn kept(&mut self, event: Bytes) {
        self.send(Part::Answer(event)).await;
    }
}

impl Caller {
    async fn send(&mut self, part: Part) {
        if let Some(frames) = &self.frames {
            let _ = frames.send(Ok(part)).await;
        }
    }
}

/// A body that reads its own stream.
pub(super) struct Frames(pub(super) mpsc::Sender<Result<Part, BoxError>>);

impl Outlet for Frames {
    async fn frame(&mut self, frame: Frame<Bytes>) {
        let _ = self.0.send(Ok(Part::Frame(frame))).await;
    }

    async fn kept(&mut self, event: Bytes) {
        let _ = self.0.send(Ok(Part::Answer(event))).await;
    }
}

/// Nobody follows the stream.
pub(super) struct Nobody;

impl Outlet for Nobody {
    async fn frame(&mut self, _: Frame<Bytes>) {}

    async fn kept(&mut self, _: Bytes) {}
}

impl Future for Waiting {
    type Output = Answered;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answered> {
        Pin::new(&mut self.answer).poll(cx).map(|answer| {
            let mut answer = answer.unwrap_or(Err(LayerError::Stopped));
            if let (Ok(response), Some(present)) = (&mut answer, self.present.take()) {
                response.body_mut().hold(present);
            }
            answer
        })
    }
}

/// How far the reading may run ahead of the caller.
pub(super) const FRAMES_IN_FLIGHT: usize = 16;
