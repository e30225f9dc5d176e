//! Learns tools' annotations from answers that pass through, where the configuration trusts the server.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use super::body::whole;
use super::caller::{FRAMES_IN_FLIGHT, Frames, Outlet};
use super::exchange::UpstreamBody;
use super::shared::Shared;
use super::{BoxError, ResponseBody};
use crate::identity::SessionId;
use crate::wire::Framer;

/// What the answer to a `tools/list` request teaches.
#[derive(Clone)]
pub(super) struct Lesson {
    pub(super) session: Option<SessionId>,
    pub(super) first_page: bool,
}

impl Lesson {
    pub(super) fn learn(&self, shared: &Shared, target: &str, answer: &[u8]) {
        shared
            .learned
            .learn(target, self.session.as_ref(), self.first_page, answer);
    }
}

/// A JSON answer with tools in it, learned from and passed on. One that is too large, or cut, teaches nothing.
pub(super) async fn json(
    response: Response<UpstreamBody>,
    lesson: &Lesson,
    shared: &Shared,
    target: &str,
) -> Result<Response<ResponseBody>, BoxError> {
    let (head, body) = response.into_parts();
    match whole(body, shared.limits.max_answer_bytes).await {
        Ok(bytes) => {
            lesson.learn(shared, target, &bytes);
            Ok(Response::from_parts(head, ResponseBody::whole(bytes, None)))
        }
        Err(_) => Err("the list of tools was cut or is too large".into()),
    }
}

/// A stream that the server opened for its own messages, passed on as it is; `tools/list_changed` in it makes what was
/// learned void.
pub(super) fn listen(body: UpstreamBody, shared: Arc<Shared>, target: String) -> ResponseBody {
    let (frames, received) = mpsc::channel(FRAMES_IN_FLIGHT);
    let reader = async move {
        let mut body = body;
        let mut framer = Some(Framer::new(MAX_NOTE_BYTES));
        let mut frames = Frames(frames);
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => {
                    if let Some(data) = frame.data_ref() {
                        note(&mut framer, data, &shared, &target);
                    }
                    frames.frame(frame).await;
                }
                Err(error) => {
                    let _ = frames.0.send(Err(error)).await;
                    return;
                }
            }
        }
    };
    ResponseBody::read_by(received, reader)
}

fn note(framer: &mut Option<Framer>, data: &Bytes, shared: &Shared, target: &str) {
    let Some(listening) = framer else { return };
    listening.push(data.clone());
    loop {
        match listening.next_block() {
            Ok(Some(block)) => {
                if block.event().message().is_some_and(voids) {
                    shared.learned.forget(target);
                }
            }
            Ok(None) => return,
            Err(_) => {
                // What can't be read may have been the notification.
                shared.learned.forget(target);
                *framer = None;
                return;
            }
        }
    }
}

/// Whether a message says that the tools changed.
pub(super) fn voids(message: &[u8]) -> bool {
    memchr::memmem::find(message, b"tools/list_changed").is_some()
        || memchr::memmem::find(message, b"tools\\/list_changed").is_some()
}

/// One event as the listener sees it; frames themselves have no bound here.
pub(super) const MAX_NOTE_BYTES: usize = 1 << 20;
