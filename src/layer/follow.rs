//! Requests without a side effect: passed on, their response streams resumed.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Request, Response, request};
use tokio::sync::mpsc;

use super::caller::{FRAMES_IN_FLIGHT, Frames};
use super::exchange::Exchange;
use super::lesson::{self, Lesson};
use super::pump::{self, End, Stream};
use super::shared::Shared;
use super::{LayerError, RequestBody, ResponseBody};
use crate::execution::ResponseStream;
use crate::identity::RequestId;
use crate::wire::{Asks, MediaType, Revision, media_type, session, target};

/// Lets a request through.
pub(super) async fn pass(
    exchange: &mut dyn Exchange,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, LayerError> {
    let response = exchange.send(request).await.map_err(LayerError::Inner)?;
    Ok(response.map(ResponseBody::upstream))
}

/// Sends a request without a side effect, and resumes its response stream where that gets lost.
pub(super) async fn follow(
    shared: Arc<Shared>,
    mut exchange: Box<dyn Exchange>,
    head: request::Parts,
    body: Bytes,
    id: RequestId,
    asks: Asks,
) -> Result<Response<ResponseBody>, LayerError> {
    let target = target(&head.uri);
    let asked_in = session(&head.headers);
    let lesson = match asks {
        Asks::Tools { first_page } if shared.contracts.trusts_annotations(&target) => {
            Some(Lesson {
                session: asked_in.clone(),
                first_page,
            })
        }
        Asks::Tools { .. } | Asks::Greeting | Asks::Other => None,
    };
    shared
        .sessions
        .note(&target, asked_in.as_ref(), &head.headers);
    let request = Request::from_parts(head.clone(), RequestBody::whole(body).0);
    let response = exchange.send(request).await.map_err(LayerError::Inner)?;
    let revision = Revision::of(&head.headers);
    let streams = media_type(response.headers()) == MediaType::EventStream;
    let followed = match revision {
        Revision::Resumable => streams,
        Revision::Stateless => streams && lesson.is_some(),
    };
    if let Some(lesson) = lesson
        .as_ref()
        .filter(|_| !streams && response.status().is_success())
    {
        return lesson::json(response, lesson, &shared, &target)
            .await
            .map_err(LayerError::Inner);
    }
    if !followed || !response.status().is_success() {
        return Ok(response.map(ResponseBody::upstream));
    }
    let (mut answer, body) = response.into_parts();
    answer.headers.remove(CONTENT_LENGTH);
    let stream = Stream {
        machine: ResponseStream::new(revision, shared.limits.resume),
        request: id,
        session: session(&answer.headers).or(asked_in), // the answer to `initialize` names a new one
        revision: None,
        uri: head.uri,
        version: head.version,
        post: head.headers,
        target,
        lesson,
    };
    let (frames, received) = mpsc::channel(FRAMES_IN_FLIGHT);
    let reader = async move {
        let mut frames = Frames(frames);
        match pump::read(
            stream,
            Some(body),
            &shared,
            exchange.as_mut(),
            None,
            &mut frames,
        )
        .await
        {
            End::TooLarge => {
                let limit = shared.limits.max_event_bytes;
                let _ = frames
                    .0
                    .send(Err(format!(
                        "an event of the stream is larger than {limit} bytes"
                    )
                    .into()))
                    .await;
            }
            End::Answered | End::Refused(_) | End::NotKept | End::Lost => {}
        }
    };
    Ok(Response::from_parts(
        answer,
        ResponseBody::read_by(received, reader),
    ))
}
