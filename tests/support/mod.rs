//! What the tests of the layer share: a scripted inner service that counts effects, and an agent that calls a tool.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use reattach::contract::{Class, Contract, Contracts};
use reattach::journal::Journal;
use reattach::layer::{BoxError, ReattachLayer, RequestBody};
use serde_json::{Value, json};
use tower::{Layer, Service, ServiceExt};

pub type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, BoxError>;
type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;
type Script = dyn Fn(Seen) -> Answer + Send + Sync;

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Value,
    /// How many requests came before it.
    pub n: usize,
}

impl Seen {
    pub fn id(&self) -> Value {
        self.body["id"].clone()
    }

    pub fn execution(&self) -> String {
        self.body["params"]["_meta"]["dev.reattach/execution-id"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// A server in this process: a script answers, every request is kept.
#[derive(Clone)]
pub struct Server {
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<Seen>>>,
    effects: Arc<AtomicUsize>,
}

impl Server {
    /// `script` gets each request; a POST of a tool call counts as an effect when the script says so.
    pub fn new<F, A>(script: F) -> Self
    where
        F: Fn(Seen) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Response<Body>, BoxError>> + Send + 'static,
    {
        Self {
            script: Arc::new(move |seen| Box::pin(script(seen))),
            seen: Arc::default(),
            effects: Arc::default(),
        }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// POSTs of tool calls whose body was read.
    pub fn posts(&self) -> usize {
        self.seen()
            .iter()
            .filter(|seen| seen.method == Method::POST && seen.body["method"] == "tools/call")
            .count()
    }

    pub fn gets(&self) -> Vec<Seen> {
        self.seen()
            .into_iter()
            .filter(|seen| seen.method == Method::GET)
            .collect()
    }
}

impl Service<Request<RequestBody>> for Server {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Answer {
        let this = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let seen = {
                let mut all = this.seen.lock().unwrap();
                let seen = Seen {
                    method: head.method,
                    headers: head.headers,
                    body: serde_json::from_slice(&body).unwrap_or(Value::Null),
                    n: all.len(),
                };
                all.push(seen.clone());
                seen
            };
            this.effects.fetch_add(1, Ordering::SeqCst);
            (this.script)(seen).await
        })
    }
}

/// A tool's result as JSON-RPC.
pub fn result(id: &Value, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": text }] } })
}

pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

pub fn respond(status: u16, kind: &str, body: Body) -> Response<Body> {
    let builder = Response::builder().status(StatusCode::from_u16(status).unwrap());
    let builder = if kind.is_empty() {
        builder
    } else {
        builder.header("content-type", kind)
    };
    builder.body(body).unwrap()
}

pub fn json_answer(message: &Value) -> Response<Body> {
    respond(200, "application/json", full(message.to_string()))
}

/// A body of these chunks, which then fails or ends.
pub fn chunks(chunks: Vec<Bytes>, fails: bool) -> Body {
    let mut parts: Vec<Result<Frame<Bytes>, BoxError>> = chunks
        .into_iter()
        .map(|chunk| Ok(Frame::data(chunk)))
        .collect();
    if fails {
        parts.push(Err("connection reset".into()));
    }
    StreamBody::new(tokio_stream::iter(parts)).boxed_unsync()
}

pub fn events(events: &[String], fails: bool) -> Response<Body> {
    let chunks_of = events
        .iter()
        .map(|event| Bytes::from(event.clone()))
        .collect();
    respond(200, "text/event-stream", chunks(chunks_of, fails))
}

pub fn event(id: &str, data: &Value) -> String {
    format!("id: {id}\ndata: {data}\n\n")
}

pub fn priming(id: &str) -> String {
    format!("id: {id}\nretry: 0\ndata:\n\n")
}

/// An agent: a layer over a server, with a journal.
#[derive(Clone)]
pub struct Agent {
    pub layer: ReattachLayer,
    pub server: Server,
    pub revision: &'static str,
    pub session: Option<&'static str>,
}

pub fn contracts() -> Contracts {
    Contracts::builder()
        .tool("look", Contract::of(Class::ReadOnly))
        .build()
}

impl Agent {
    pub async fn new(server: Server) -> Self {
        Self::with_journal(server, Journal::in_memory()).await
    }

    pub async fn with_journal(server: Server, journal: Journal) -> Self {
        let layer = ReattachLayer::builder(journal)
            .actor("process:test")
            .contracts(contracts())
            .build()
            .await
            .unwrap();
        Self {
            layer,
            server,
            revision: "2025-11-25",
            session: Some("session-1"),
        }
    }

    /// Sends a JSON-RPC message and reads the whole response.
    pub async fn post(&self, message: &Value) -> Result<(StatusCode, String), BoxError> {
        let response = self.send(message).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    pub async fn send(
        &self,
        message: &Value,
    ) -> Result<Response<reattach::layer::ResponseBody>, BoxError> {
        let mut request = Request::post("http://127.0.0.1:1/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", self.revision)
            .header("authorization", "Bearer planted-token");
        if let Some(session) = self.session {
            request = request.header("mcp-session-id", session);
        }
        let request = request
            .body(Full::new(Bytes::from(message.to_string())))
            .unwrap();
        Ok(self
            .layer
            .layer(self.server.clone())
            .oneshot(request)
            .await?)
    }

    /// Calls a tool and gives the JSON-RPC answer, whatever form it came in.
    pub async fn call(
        &self,
        id: impl Into<Value>,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, BoxError> {
        let (_, text) = self.post(&call(id, tool, arguments)).await?;
        answer_in(&text).ok_or_else(|| format!("no answer in {text:?}").into())
    }

    /// The states of all executions, oldest first.
    pub async fn states(&self) -> Vec<String> {
        self.layer.journal().flush().await.unwrap();
        let reader = self.layer.journal().reader().unwrap();
        let records = reader.executions(&Default::default()).unwrap();
        records
            .into_iter()
            .map(|record| record.state.to_string())
            .collect()
    }
}

pub fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call",
        "params": { "name": tool, "arguments": arguments } })
}

/// The JSON-RPC response in a JSON body or in a stream of events.
pub fn answer_in(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return Some(value);
    }
    messages_in(text)
        .into_iter()
        .find(|message| message.get("result").or(message.get("error")).is_some())
}

/// All messages of a stream of events.
pub fn messages_in(text: &str) -> Vec<Value> {
    text.split("\n\n")
        .filter_map(|block| {
            let data: Vec<_> = block
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(str::trim_start)
                .collect();
            serde_json::from_str(&data.join("\n")).ok()
        })
        .collect()
}

pub fn is_unknown(answer: &Value) -> bool {
    answer["result"]["_meta"]["dev.reattach/execution"]["state"] == "outcome_unknown"
}

pub fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

/// An error's text, which can leave a task.
#[derive(Debug)]
pub struct BoxErrorText(pub String);

impl From<BoxError> for BoxErrorText {
    fn from(error: BoxError) -> Self {
        Self(error.to_string())
    }
}
