//! Tools' annotations: counted only where the server is trusted, and only as long as that server and session last.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use reattach::contract::{Class, Contract, Contracts};
use reattach::journal::Journal;
use reattach::layer::ReattachLayer;
use serde_json::{Value, json};
use support::{Agent, Server, event, events, json_answer, priming, result};
use tower::{Layer, ServiceExt};

fn tools(id: &Value, names: &[&str]) -> Value {
    let tools: Vec<_> = names
        .iter()
        .map(|name| json!({ "name": name, "annotations": { "readOnlyHint": true } }))
        .collect();
    json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": tools } })
}

/// Says that all its tools only read; in JSON or as a stream. Its GET stream says that the tools changed.
fn server(stream: bool) -> Server {
    Server::new(move |seen| async move {
        if seen.method == "GET" {
            let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            return Ok(events(&[format!("data: {changed}\n\n")], false));
        }
        let answer = match seen.body["method"].as_str() {
            Some("tools/list") if seen.body["params"]["cursor"] == "2" => {
                tools(&seen.id(), &["peek_more"])
            }
            Some("tools/list") => tools(&seen.id(), &["peek", "get_or_create_issue"]),
            _ => result(&seen.id(), "done"),
        };
        Ok(if stream {
            events(&[priming("0"), event("1", &answer)], false)
        } else {
            json_answer(&answer)
        })
    })
}

async fn agent(stream: bool, trusted: bool) -> Agent {
    let mut contracts =
        Contracts::builder().tool("get_or_create_issue", Contract::of(Class::Irreversible));
    if trusted {
        contracts = contracts.trust_annotations("http://127.0.0.1:1/*");
    }
    let builder = ReattachLayer::builder(Journal::in_memory())
        .actor("process:a")
        .contracts(contracts.build());
    Agent {
        layer: builder.build().await.unwrap(),
        ..Agent::new(server(stream)).await
    }
}

async fn ask(agent: &Agent, method: &str, params: Value) {
    let (status, text) = agent
        .post(&json!({ "jsonrpc": "2.0", "id": 0, "method": method, "params": params }))
        .await
        .unwrap();
    assert!(status.is_success() && text.contains("\"id\":0"), "{text}");
}

/// Whether a call of this tool is one that the journal hears of.
async fn is_execution(agent: &Agent, tool: &str) -> bool {
    let before = agent.states().await.len();
    agent
        .call(1, tool, json!({ "before": before }))
        .await
        .unwrap();
    agent.states().await.len() > before
}

#[tokio::test(start_paused = true)]
async fn annotations_count_where_the_server_is_trusted_and_nowhere_else() {
    for stream in [false, true] {
        for revision in ["2025-11-25", "2026-07-28"] {
            for trusted in [false, true] {
                let mut agent = agent(stream, trusted).await;
                agent.revision = revision;
                assert!(
                    is_execution(&agent, "peek").await,
                    "nothing was learned yet"
                );
                ask(&agent, "tools/list", json!({})).await;
                ask(&agent, "tools/list", json!({ "cursor": "2" })).await;
                assert_eq!(
                    is_execution(&agent, "peek").await,
                    !trusted,
                    "{stream} {revision}"
                );
                assert_eq!(
                    is_execution(&agent, "peek_more").await,
                    !trusted,
                    "all pages count"
                );
                assert!(
                    is_execution(&agent, "get_or_create_issue").await,
                    "no annotation loosens a contract"
                );
                assert!(
                    is_execution(&agent, "get_status").await,
                    "a name is never a hint"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_greeting_another_session_and_a_change_make_what_was_learned_void() {
    let mut agent = agent(false, true).await;
    for end in ["greeting", "session", "change"] {
        agent.session = Some("session-1");
        ask(&agent, "tools/list", json!({})).await;
        assert!(!is_execution(&agent, "peek").await);
        match end {
            "greeting" => ask(&agent, "initialize", json!({})).await,
            "session" => agent.session = Some("session-2"),
            _ => {
                let request = http::Request::get("http://127.0.0.1:1/mcp")
                    .header("accept", "text/event-stream");
                let request = request.body(Full::new(Bytes::new())).unwrap();
                let response = agent
                    .layer
                    .layer(agent.server.clone())
                    .oneshot(request)
                    .await
                    .unwrap();
                let passed = response.into_body().collect().await.unwrap().to_bytes();
                assert!(
                    passed.ends_with(b"list_changed\"}\n\n"),
                    "what is listened to passes as it is"
                );
            }
        }
        assert!(is_execution(&agent, "peek").await, "{end}");
    }
}
