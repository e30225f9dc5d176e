//! The service: lets traffic through, and hands side-effecting calls to a task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{Method, Request, Response, request};
use http_body::Body;
use tower::Service;
use tracing::Instrument;

use super::action::{action, contract_of};
use super::body::{Cut, whole};
use super::call::Call;
use super::caller::caller;
use super::drive::Drive;
use super::exchange::{Exchange, Inner};
use super::follow::{follow, pass};
use super::shared::Shared;
use super::{BoxError, LayerError, RequestBody, ResponseBody, lesson, reply};
use crate::wire::{self, Asks, MediaType, accepts, media_type, target};

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
