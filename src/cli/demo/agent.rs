//! The agents of the demo: rmcp's client on a stack with retries, with and without the layer.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use tower::retry::{Policy, RetryLayer};
use tower::{Layer, Service};

use super::stage::layer;
use super::{DemoError, machine};
use crate::layer::BoxError;
use crate::sdk::rmcp::TowerClient;

pub(super) type Agent = RunningService<RoleClient, ()>;

/// What everybody stacks: a time-out, and a retry on any failure.
#[derive(Clone)]
pub(super) struct Retries {
    left: usize,
}

impl<R, E> Policy<Request<Full<Bytes>>, Response<R>, E> for Retries {
    type Future = std::future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Full<Bytes>>,
        result: &mut Result<Response<R>, E>,
    ) -> Option<Self::Future> {
        let failed = result
            .as_ref()
            .map_or(true, |response| response.status().is_server_error());
        let again = failed && self.left > 0;
        self.left = self.left.saturating_sub(1);
        again.then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        Some(request.clone())
    }
}

/// Connects rmcp's client over this service, with a time-out and retries in between.
pub(super) async fn connect<S, B>(service: S, url: &str) -> Result<Agent, DemoError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let timed = tower::timeout::Timeout::new(service, PATIENCE);
    let retried = RetryLayer::new(Retries { left: RETRIES }).layer(timed);
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let transport = StreamableHttpClientTransport::with_client(TowerClient::new(retried), config);
    ().serve(transport)
        .await
        .map_err(machine("the agent can't connect"))
}

/// What a call came to, in the agent's eyes.
pub(super) struct Told {
    pub(super) text: String,
    pub(super) unknown: bool,
    pub(super) failed: bool,
}

impl Told {
    /// The first sentence, in quotes.
    pub(super) fn short(&self) -> String {
        let sentence = self.text.split(". ").next().unwrap_or_default();
        let kind = if self.unknown {
            "unknown"
        } else if self.failed {
            "failed"
        } else {
            "success"
        };
        format!("{kind}, \"{sentence}\"")
    }
}

/// Calls a tool.
pub(super) async fn call(agent: &Agent, tool: &'static str, arguments: Value) -> Told {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    match agent
        .call_tool(CallToolRequestParams::new(tool).with_arguments(arguments))
        .await
    {
        Ok(result) => told(&result),
        Err(error) => Told {
            text: error.to_string(),
            unknown: false,
            failed: true,
        },
    }
}

fn told(result: &CallToolResult) -> Told {
    let value = serde_json::to_value(result).unwrap_or_default();
    Told {
        text: value["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        unknown: value["_meta"]["dev.reattach/execution"]["state"] == "outcome_unknown",
        failed: value["isError"] == true,
    }
}

/// What the agent that gets killed is started with.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct AgentArgs {
    /// The server.
    #[arg(long)]
    pub url: String,
    /// The journal's directory.
    #[arg(long)]
    pub dir: PathBuf,
}

/// One agent process: opens the journal, pays once, prints what it was told.
pub(super) async fn run(args: &AgentArgs, out: &mut (dyn Write + Send)) -> Result<(), DemoError> {
    let layer = layer(args.dir.clone()).await?;
    let agent = connect(layer.layer(crate::client::new()), &args.url).await?;
    let told = call(
        &agent,
        "pay",
        json!({ "amount": 16, "to": "dave", "after_ms": 700 }),
    )
    .await;
    writeln!(
        out,
        "{}",
        json!({ "text": told.text, "unknown": told.unknown, "failed": told.failed })
    )?;
    let _ = agent.cancel().await;
    let _ = layer.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

/// How long the stack waits for a response's head.
const PATIENCE: Duration = Duration::from_millis(400);
const RETRIES: usize = 8;
