//! A generic retry layer stacked above: its repeats attach, and the payment happens once.
//!
//! The server acts and its answer takes longer than the time-out in between, so the retry layer sends the call again. Run
//! it with `cargo run --example with_retry_layer`.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use reattach::chaos::{Fault, FaultPlan, FaultProxy, ServerOptions, TestServer};
use reattach::journal::Journal;
use reattach::layer::ReattachLayer;
use tower::retry::Policy;
use tower::{ServiceBuilder, ServiceExt};

/// Repeats whatever failed, up to this many times.
#[derive(Clone)]
struct Retries(usize);

impl<R, E> Policy<Request<Full<Bytes>>, Response<R>, E> for Retries {
    type Future = std::future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Full<Bytes>>,
        result: &mut Result<Response<R>, E>,
    ) -> Option<Self::Future> {
        if result.is_ok() || self.0 == 0 {
            return None;
        }
        self.0 -= 1;
        println!("the retry layer sends the call again");
        Some(std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        Some(request.clone())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut options = ServerOptions::default();
    options.sessions = false; // so that this example needs no handshake
    let server = TestServer::start(options).await?;
    let late = Fault::DelayAnswer(Duration::from_millis(700));
    let proxy = FaultProxy::start(server.address(), FaultPlan::new().on_call(1, late)).await?;

    let layer = ReattachLayer::builder(Journal::in_memory())
        .actor("process:example")
        .build()
        .await?;
    let stack = ServiceBuilder::new()
        .retry(Retries(3)) // retries above the layer: every repeat is seen
        .timeout(Duration::from_millis(300))
        .layer(layer)
        .service(reattach::client::new());

    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"amount":1}}}"#;
    let request = Request::post(proxy.url())
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .body(Full::new(Bytes::from(call)))?;
    let answer = stack
        .oneshot(request)
        .await?
        .into_body()
        .collect()
        .await
        .map_err(|e| e.to_string())?;
    println!(
        "the answer: {}",
        String::from_utf8_lossy(&answer.to_bytes()).trim()
    );
    println!(
        "payments in the ledger: {}",
        server.ledger().effects().len()
    );
    assert_eq!(server.ledger().effects().len(), 1);
    Ok(())
}
