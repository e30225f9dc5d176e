//! No SDK: JSON-RPC over the layer over hyper, and an honest unknown.
//!
//! The connection is reset after the server has acted. The call is made again, as programs do; it is not sent again. Run
//! it with `cargo run --example plain_hyper`.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use reattach::chaos::{Cut, Fault, FaultPlan, FaultProxy, ServerOptions, TestServer};
use reattach::journal::Journal;
use reattach::layer::ReattachLayer;
use serde_json::{Value, json};
use tower::{Layer, ServiceExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut options = ServerOptions::default();
    options.sessions = false; // so that this example needs no handshake
    let server = TestServer::start(options).await?;
    let plan = FaultPlan::new().on_call(1, Fault::LoseAnswer(Cut::Reset));
    let proxy = FaultProxy::start(server.address(), plan).await?;

    let layer = ReattachLayer::builder(Journal::in_memory())
        .actor("process:example")
        .build()
        .await?;
    let service = layer.layer(reattach::client::new());
    for id in [1, 2] {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "pay", "arguments": { "amount": 1, "to": "alice" } } });
        let request = Request::post(proxy.url())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .body(Full::new(Bytes::from(call.to_string())))?;
        let response = service.clone().oneshot(request).await?;
        let answer: Value =
            serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
        println!(
            "{}\n",
            answer["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or_default()
        );
        let known = &answer["result"]["_meta"]["dev.reattach/execution"];
        assert_eq!(known["state"], "outcome_unknown");
        assert_eq!(known["options"]["repeat"], "forbidden");
    }
    println!(
        "payments in the ledger: {}",
        server.ledger().effects().len()
    );
    assert_eq!(server.ledger().effects().len(), 1);
    Ok(())
}
