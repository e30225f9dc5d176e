//! The service: lets traffic through, and hands side-effecting calls to a task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{Method, Request, Response, request};
use http_body::Body;
use tokio::sync::mpsc;
use tower::Service;
use tracing::Instrument;

use super::body::{Cut, whole};
use super::call::{Call, correlation};
use super::caller::{FRAMES_IN_FLIGHT, Frames, caller};
use super::drive::Drive;
use super::exchange::{Exchange, Inner};
use super::pump::{self, End, Stream};
use super::reply;
use super::shared::Shared;
use super::{BoxError, LayerError, RequestBody, ResponseBody};
use crate::contract::Contract;
use crate::execution::ResponseStream;
use crate::identity::{Action, RequestId};
use crate::journal::NewExecution;
use crate::wire::{
    self, MediaType, Revision, Slot, ToolCall, accepts, media_type, session, target,
};

/// The middleware around an HTTP client. Made by [`ReattachLayer`](super::ReattachLayer).
#[derive(Clone)]
pub struct Reattach<S> {
    inner: S,
    shared: Arc<Shared>,
}

/// The response to come. Dropping it detaches: a side-effecting call runs on, and its result is kept.
pub struct ResponseFuture(
    Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, LayerError>> + Send>>,
);

impl<S> Reattach<S> {
    pub(super) const fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }
}

impl<S, B, RB> Service<Request<B>> for Reattach<S>
where
    S: Service<Request<RequestBody>, Response = Response<RB>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    RB: Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = LayerError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LayerError>> {
        self.inner
            .poll_ready(cx)
            .map_err(|error| LayerError::Inner(error.into()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        // The one that was polled ready is the one that gets called.
        let fresh = self.inner.clone();
        let service = std::mem::replace(&mut self.inner, fresh);
        let exchange = Box::new(Inner {
            service,
            ready: true,
        });
        ResponseFuture(Box::pin(handle(
            Arc::clone(&self.shared),
            exchange,
            request,
        )))
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<ResponseBody>, LayerError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

async fn handle<B>(
    shared: Arc<Shared>,
    mut exchange: Box<dyn Exchange>,
    request: Request<B>,
) -> Result<Response<ResponseBody>, LayerError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (head, body) = request.into_parts();
    let limit = shared.limits.max_request_bytes;
    if !may_hold_a_call(&head, &body, limit) {
        return pass(
            exchange.as_mut(),
            Request::from_parts(head, RequestBody::streamed(body)),
        )
        .await;
    }
    if head.headers.contains_key(CONTENT_ENCODING) {
        let reason = "its body is compressed, so it can't be looked into; stack compression below this layer";
        return Ok(reply::respond(
            reply::refused(reason, None),
            accepts(&head.headers),
            None,
        ));
    }
    let body = whole(body, limit).await.map_err(|cut| match cut {
        Cut::Failed(error) => LayerError::RequestBody(error.into()),
        Cut::Short => LayerError::RequestBody("it ended before its stated length".into()),
        Cut::TooLarge => LayerError::RequestTooLarge { limit },
    })?;
    match wire::read(&body) {
        wire::Body::Other => {
            pass(
                exchange.as_mut(),
                Request::from_parts(head, RequestBody::whole(body).0),
            )
            .await
        }
        wire::Body::Request(id) => follow(shared, exchange, head, body, id).await,
        wire::Body::Refused { refusal, id } => Ok(reply::respond(
            reply::refused(&refusal.to_string(), id.as_ref()),
            accepts(&head.headers),
            None,
        )),
        wire::Body::Call(call) => {
            let contract = shared.contracts.find(call.tool()).clone();
            if !contract.class.has_side_effect() {
                let id = call.id().clone();
                return follow(shared, exchange, head, body, id).await;
            }
            let id = call.id().clone();
            match action(&shared, &contract, &call, &head, &body) {
                Ok(call) => drive(shared, exchange, call).await,
                Err(reason) => Ok(reply::respond(
                    reply::refused(&reason, Some(&id)),
                    accepts(&head.headers),
                    None,
                )),
            }
        }
    }
}

/// Whether the body has to be looked into. A JSON body that is too large for that passes only where the caller could not
/// read an MCP answer anyway.
fn may_hold_a_call<B: Body>(head: &request::Parts, body: &B, limit: usize) -> bool {
    let json = match media_type(&head.headers) {
        MediaType::Json | MediaType::Absent => true,
        MediaType::EventStream | MediaType::Other => false,
    };
    // Whoever reads answers as streams may be an MCP client, whatever it says of its body.
    let mcp = accepts(&head.headers).event_stream;
    head.method == Method::POST && (mcp || json && body.size_hint().lower() <= limit as u64)
}

/// Lets a request through.
async fn pass(
    exchange: &mut dyn Exchange,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, LayerError> {
    let response = exchange.send(request).await.map_err(LayerError::Inner)?;
    Ok(response.map(ResponseBody::upstream))
}

/// Sends a request without a side effect, and resumes its response stream where that gets lost.
async fn follow(
    shared: Arc<Shared>,
    mut exchange: Box<dyn Exchange>,
    head: request::Parts,
    body: Bytes,
    id: RequestId,
) -> Result<Response<ResponseBody>, LayerError> {
    let target = target(&head.uri);
    let asked_in = session(&head.headers);
    shared
        .sessions
        .note(&target, asked_in.as_ref(), &head.headers);
    let request = Request::from_parts(head.clone(), RequestBody::whole(body).0);
    let response = exchange.send(request).await.map_err(LayerError::Inner)?;
    let revision = Revision::of(&head.headers);
    let resumable = match revision {
        Revision::Resumable => media_type(response.headers()) == MediaType::EventStream,
        Revision::Stateless => false,
    };
    if !resumable || !response.status().is_success() {
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

/// Hands a side-effecting call to a task, and waits for what it answers.
async fn drive(
    shared: Arc<Shared>,
    exchange: Box<dyn Exchange>,
    call: Call,
) -> Result<Response<ResponseBody>, LayerError> {
    shared.sessions.note(
        &call.new.target,
        call.correlation.session(),
        &call.head.headers,
    );
    let (accepts, id) = (call.accepts, call.id().clone());
    let span = tracing::info_span!(
        "reattach.call",
        otel.name = format_args!("tools/call {}", call.new.tool),
        mcp.method.name = "tools/call",
        gen_ai.tool.name = %call.new.tool,
        jsonrpc.request.id = %id,
        mcp.protocol.version = call.correlation.revision(),
        reattach.class = call.new.class.name(),
        reattach.fingerprint = call.new.fingerprint.short(),
        reattach.decision = tracing::field::Empty,
        reattach.execution.id = tracing::field::Empty,
    );
    let (caller, departure, waiting) = caller();
    let limit = shared.limits.max_running;
    let task = Drive {
        shared: Arc::clone(&shared),
        exchange,
        call,
        caller,
        departure,
    };
    if !shared.running.spawn(limit, task.run().instrument(span)) {
        let reason = format!(
            "{limit} calls with side effects are running, and no more are allowed at a time"
        );
        return Ok(reply::respond(
            reply::refused(&reason, Some(&id)),
            accepts,
            None,
        ));
    }
    waiting.await
}

/// What a call does, and what it takes to send it. The reason when that can't be told for certain.
fn action(
    shared: &Shared,
    contract: &Contract,
    call: &ToolCall<'_>,
    head: &request::Parts,
    body: &Bytes,
) -> Result<Call, String> {
    let slot = Slot::find(body).map_err(|error| error.to_string())?;
    let arguments = Action::arguments(call.arguments())
        .map_err(|error| format!("its arguments are {error}"))?;
    let action = Action {
        actor: shared.actor.clone(),
        tool: call.tool().to_owned(),
        target: target(&head.uri),
        credential_ref: contract.credential_ref.clone(),
        arguments,
        intent_scope: contract.scope,
    };
    let key = shared.journal.fingerprint_key();
    let new = NewExecution {
        fingerprint: key.fingerprint(&action.canonical()),
        tool: action.tool,
        class: contract.class,
        actor: action.actor,
        run_id: shared.run,
        target: action.target,
        credential_ref: action.credential_ref,
        intent_scope: contract.scope,
        intent: call
            .intent()
            .map(|intent| key.digest("intent", intent.as_bytes())),
    };
    Ok(Call {
        body: body.clone(),
        slot,
        continues: call.continues(),
        accepts: accepts(&head.headers),
        revision: Revision::of(&head.headers),
        correlation: correlation(call.id().clone(), &head.headers),
        window: contract.window,
        new,
        head: head.clone(),
    })
}
