//! What came back for one dispatch: a result to keep, proof that it did not run, or neither.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode, response};

use super::body::{Cut, whole};
use super::call::Call;
use super::caller::Caller;
use super::exchange::{Exchange, UpstreamBody};
use super::pump::{self, End, Keeper, Stream};
use super::response_body::Delivery;
use super::shared::Shared;
use super::{BoxError, ResponseBody};
use crate::contract::Session404;
use crate::execution::{Evidence, ResponseStream, Verdict, verdict};
use crate::journal::Lease;
use crate::wire::{self, MediaType, media_type, retry_after};

/// What one dispatch came to.
pub(super) enum Outcome {
    /// The result is kept, and on its way to the caller.
    Completed,
    /// Proof that the body never left.
    NotSent(BoxError),
    /// The server said that it did not run it.
    Refused {
        evidence: Evidence,
        /// What the caller gets to see; none when it is on its way already.
        response: Option<Box<Response<ResponseBody>>>,
        /// When the server will take it.
        retry_after: Option<Duration>,
    },
    /// A result came, and the journal could not keep it.
    NotKept,
    /// Nothing proves whether it happened.
    Unknown(Evidence),
}

/// Sends one dispatch and reads what comes back.
pub(super) async fn exchange_once(
    call: &Call,
    lease: &Lease,
    n: u32,
    shared: &Arc<Shared>,
    exchange: &mut dyn Exchange,
    caller: &mut Caller,
) -> Outcome {
    let (request, polled) = call.request(lease.execution());
    match exchange.send(request).await {
        Ok(response) => receive(response, call, lease, n, shared, exchange, caller).await,
        Err(error) if polled.happened() => {
            tracing::debug!(
                error = &*error as &dyn std::error::Error,
                "dispatch failed after its body was taken"
            );
            Outcome::Unknown(Evidence::FailedAfterPoll)
        }
        Err(error) => Outcome::NotSent(error),
    }
}

async fn receive(
    response: Response<UpstreamBody>,
    call: &Call,
    lease: &Lease,
    n: u32,
    shared: &Arc<Shared>,
    exchange: &mut dyn Exchange,
    caller: &mut Caller,
) -> Outcome {
    let (mut head, body) = response.into_parts();
    let keeper = Keeper {
        lease,
        n,
        status: Some(head.status.as_u16()),
    };
    let delivery = Delivery {
        journal: shared.journal.clone(),
        execution: lease.execution(),
        request: call.id().clone(),
    };
    let media = media_type(&head.headers);
    if head.status.is_success() && media == MediaType::EventStream {
        head.headers.remove(CONTENT_LENGTH); // the stream may go on over further connections
        caller.open(head, Some(delivery));
        let stream = stream_of(call);
        return match pump::read(stream, Some(body), shared, exchange, Some(keeper), caller).await {
            End::Answered => Outcome::Completed,
            End::Refused(evidence) => Outcome::Refused {
                evidence,
                response: None,
                retry_after: None,
            },
            End::NotKept => Outcome::NotKept,
            End::Lost => Outcome::Unknown(Evidence::StreamLost),
            End::TooLarge => Outcome::Unknown(Evidence::AnswerTooLarge),
        };
    }
    let retry_after = retry_after(&head.headers, shared.clock.now());
    let session_proves = match call.session_404 {
        Session404::Rejected => call.correlation.session().is_some(),
        Session404::Unknown => false,
    };
    let by_status = verdict::of_status(head.status, session_proves, retry_after.is_some());
    if by_status.verdict() == Verdict::Rejected {
        let retry_after = retry_after.filter(|_| head.status == StatusCode::TOO_MANY_REQUESTS);
        let response = Some(Box::new(Response::from_parts(
            head,
            ResponseBody::upstream(body),
        )));
        return Outcome::Refused {
            evidence: by_status,
            response,
            retry_after,
        };
    }
    if media != MediaType::Json {
        return Outcome::Unknown(by_status);
    }
    match whole(body, shared.limits.max_answer_bytes).await {
        Ok(bytes) => json(head, bytes, by_status, &keeper, delivery, call, caller).await,
        Err(Cut::TooLarge) => Outcome::Unknown(Evidence::AnswerTooLarge),
        Err(Cut::Failed(_) | Cut::Short) => Outcome::Unknown(Evidence::BodyCutShort),
    }
}

/// A whole JSON body, under any status that does not refuse by itself.
async fn json(
    head: response::Parts,
    bytes: Bytes,
    by_status: Evidence,
    keeper: &Keeper<'_>,
    delivery: Delivery,
    call: &Call,
    caller: &mut Caller,
) -> Outcome {
    let Some(response) =
        wire::response(&bytes).filter(|response| response.id.as_ref() == Some(call.id()))
    else {
        let said_nothing = bytes.trim_ascii().is_empty() || !head.status.is_success();
        return Outcome::Unknown(if said_nothing {
            by_status
        } else {
            Evidence::NotAnAnswer
        });
    };
    if let Some(evidence) = response.error.and_then(verdict::of_error) {
        let response = Some(Box::new(Response::from_parts(
            head,
            ResponseBody::whole(bytes, None),
        )));
        return Outcome::Refused {
            evidence,
            response,
            retry_after: None,
        };
    }
    if pump::keep(keeper, &bytes, &response).await.is_err() {
        return Outcome::NotKept;
    }
    caller.answer(Ok(Response::from_parts(
        head,
        ResponseBody::whole(bytes, Some(delivery)),
    )));
    Outcome::Completed
}

/// The response stream of a call that was just sent.
fn stream_of(call: &Call) -> Stream {
    Stream {
        machine: ResponseStream::new(call.revision, call.limits.resume),
        request: call.id().clone(),
        session: call.correlation.session().cloned(),
        revision: call.correlation.revision().map(str::to_owned),
        uri: call.head.uri.clone(),
        version: call.head.version,
        post: call.head.headers.clone(),
        target: call.new.target.clone(),
        lesson: None,
    }
}
