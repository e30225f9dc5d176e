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
use super::lesson::{self, Lesson};
use super::pump::{self, End, Stream};
use super::reply;
use super::shared::Shared;
use super::{BoxError, Intent, LayerError, RequestBody, ResponseBody};
use crate::contract::{Channel, Contract};
use crate::execution::ResponseStream;
use crate::identity::{Action, RequestId};
use crate::journal::NewExecution;
use crate::wire::{
    self, Asks, KeyPlace, MediaType, Revision, Slot, ToolCall, accepts, media_type, session, target,
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
        let (target, listens) = (target(&head.uri), head.method == Method::GET);
        let request = Request::from_parts(head, RequestBody::streamed(body));
        if listens && shared.contracts.trusts_annotations(&target) {
            let response = exchange.send(request).await.map_err(LayerError::Inner)?;
            let streams = media_type(response.headers()) == MediaType::EventStream;
            return Ok(response.map(|body| match streams {
                true => lesson::listen(body, shared, target),
                false => ResponseBody::upstream(body),
            }));
        }
        return pass(exchange.as_mut(), request).await;
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
        wire::Body::Request { id, asks } => {
            if asks == Asks::Greeting {
                shared.learned.forget(&target(&head.uri)); // a server that is greeted anew may be another one
            }
            follow(shared, exchange, head, body, id, asks).await
        }
        wire::Body::Refused { refusal, id } => Ok(reply::respond(
            reply::refused(&refusal.to_string(), id.as_ref()),
            accepts(&head.headers),
            None,
        )),
        wire::Body::Call(call) => {
            let contract = contract_of(&shared, &head, &call);
            if !contract.class.has_side_effect() {
                let id = call.id().clone();
                return follow(shared, exchange, head, body, id, Asks::Other).await;
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

/// The contract that somebody wrote; else the class that a trusted server's annotations amount to; else the strictest.
fn contract_of(shared: &Shared, head: &request::Parts, call: &ToolCall<'_>) -> Contract {
    let target = target(&head.uri);
    if let Some(written) = shared.contracts.written(&target, call.tool()) {
        return written.clone();
    }
    let trusted = shared.contracts.trusts_annotations(&target);
    let learned = trusted
        .then(|| {
            shared
                .learned
                .class(&target, session(&head.headers).as_ref(), call.tool())
        })
        .flatten();
    learned.map_or_else(
        || shared.contracts.find(&target, call.tool()).clone(),
        Contract::of,
    )
}

/// What a call does, and what it takes to send it. The reason when that can't be told for certain.
fn action(
    shared: &Shared,
    contract: &Contract,
    call: &ToolCall<'_>,
    head: &request::Parts,
    body: &Bytes,
) -> Result<Call, String> {
    let (key_header, key_place) = match contract
        .idempotency
        .as_ref()
        .map(|idempotency| &idempotency.channel)
    {
        Some(Channel::Header(name)) => (Some(name.clone()), None),
        Some(Channel::Argument(name)) => (None, Some(KeyPlace::Argument(name))),
        Some(Channel::Meta(name)) => (None, Some(KeyPlace::Meta(name))),
        None => (None, None),
    };
    let slot = Slot::find(body, key_place).map_err(|error| error.to_string())?;
    let arguments = Action::arguments(call.arguments())
        .map_err(|error| format!("its arguments are {error}"))?;
    let key = shared.journal.fingerprint_key();
    let action = contract.action(
        &shared.actor,
        &target(&head.uri),
        call.tool(),
        arguments,
        key,
    );
    let named = head
        .extensions
        .get::<Intent>()
        .map(Intent::as_str)
        .or(call.intent());
    let new = NewExecution {
        fingerprint: key.fingerprint(&action.canonical()),
        tool: action.tool,
        class: contract.class,
        actor: action.actor,
        run_id: shared.run,
        target: action.target,
        credential_ref: action.credential_ref,
        intent_scope: contract.scope,
        intent: named.map(|intent| key.digest("intent", intent.as_bytes())),
    };
    Ok(Call {
        body: body.clone(),
        slot,
        key_header,
        continues: call.continues(),
        accepts: accepts(&head.headers),
        revision: Revision::of(&head.headers),
        correlation: correlation(call.id().clone(), &head.headers),
        window: contract.window,
        limits: shared.limits.with(&contract.limits),
        new,
        head: head.clone(),
    })
}
