//! The layer under rmcp's client. Run it with `cargo run --example quickstart`, or give it a server and a tool of yours:
//! `cargo run --example quickstart -- http://127.0.0.1:8000/mcp my_tool '{"some":"argument"}'`.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use reattach::chaos::{ServerOptions, TestServer};
use reattach::contract::{Class, Contract, Contracts};
use reattach::journal::{Journal, JournalOptions};
use reattach::layer::ReattachLayer;
use reattach::sdk::rmcp::TowerClient;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use tower::Layer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = TestServer::start(ServerOptions::default()).await?; // stands in for yours
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| server.url());
    let tool = arguments.next().unwrap_or_else(|| "pay".into());
    let with = arguments
        .next()
        .unwrap_or_else(|| r#"{"amount":1,"to":"alice"}"#.into());

    // The twenty lines.
    let dir = tempfile::tempdir()?; // a real agent keeps its journal: "/var/lib/my-agent/journal"
    let journal = Journal::open(JournalOptions::new(dir.path().join("journal"))).await?;
    let contracts = Contracts::builder()
        .tool("get_balance", Contract::of(Class::ReadOnly))
        .build();
    let layer = ReattachLayer::builder(journal)
        .actor("process:quickstart") // the same after every restart
        .contracts(contracts) // whatever has no contract counts as irreversible
        .build()
        .await?;
    let client = TowerClient::new(layer.layer(reattach::client::new()));
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let agent = ().serve(StreamableHttpClientTransport::with_client(client, config)).await?;

    let call = CallToolRequestParams::new(tool).with_arguments(serde_json::from_str(&with)?);
    let result = agent.call_tool(call).await?;
    println!("{}", serde_json::to_string_pretty(&result)?);

    agent.cancel().await?;
    layer.shutdown(std::time::Duration::from_secs(5)).await?;
    for record in layer.journal().reader()?.executions(&Default::default())? {
        println!("{} {} {}", record.execution_id, record.tool, record.state);
    }
    Ok(())
}
