//! An agent process is killed with SIGKILL at random points and started again: on reopening, every execution that the
//! server's ledger knows is in the journal, none acted twice, and what the agent was told is true.
//!
//! 20 kills by default; `REATTACH_KILLS=200 cargo test --test killed_at_any_point` for the long form. The seed is printed;
//! `REATTACH_SEED` repeats it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]
#![cfg(feature = "chaos")]

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use reattach::chaos::{Ledger, ServerOptions, TestServer};
use reattach::contract::{Class, Contract, Contracts};
use reattach::execution::State;
use reattach::identity::IntentScope;
use reattach::journal::{Journal, JournalOptions, Reader};
use reattach::layer::ReattachLayer;
use reattach::sdk::rmcp::TowerClient;
use rmcp::ServiceExt;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tower::Layer;

const AGENT: &str = "REATTACH_TEST_AGENT";

/// Not a test by itself: the agent process. It pays `n`, `n + 1`, ... and prints what it was told of each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_process() {
    let Ok(arguments) = std::env::var(AGENT) else {
        return;
    };
    let (url, rest) = arguments.split_once('|').unwrap();
    let (dir, first) = rest.split_once('|').unwrap();
    let journal = Journal::open(JournalOptions::new(dir)).await.unwrap();
    // Durable: the same payment is the same action, whoever forgot that it was made.
    let pay = Contract::of(Class::Irreversible).with_scope(IntentScope::Durable);
    let contracts = Contracts::builder().tool("pay", pay).build();
    let layer = ReattachLayer::builder(journal)
        .actor("process:killed")
        .contracts(contracts)
        .build()
        .await
        .unwrap();
    let client = TowerClient::new(layer.layer(reattach::client::new()));
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let agent = ().serve(StreamableHttpClientTransport::with_client(client, config)).await.unwrap();
    println!("\nready");
    for n in first.parse::<u64>().unwrap().. {
        let arguments = json!({ "amount": 1, "n": n, "before_ms": n % 4, "after_ms": n % 7 });
        let call = CallToolRequestParams::new("pay")
            .with_arguments(arguments.as_object().unwrap().clone());
        let told = serde_json::to_value(agent.call_tool(call).await.unwrap()).unwrap();
        let text = told["content"][0]["text"].as_str().unwrap();
        println!(
            "\ntold {n} {}",
            if text == "paid 1" { "paid" } else { "unknown" }
        );
    }
}

fn start(server: &TestServer, dir: &Path, first: u64) -> tokio::process::Child {
    tokio::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "agent_process",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(AGENT, format!("{}|{}|{first}", server.url(), dir.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// A small generator of its own, so that a seed means the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acts_twice_and_nothing_that_acted_is_unrecorded() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|value| value.parse().ok())
    };
    let kills: u64 = number("REATTACH_KILLS").unwrap_or(20);
    let seed: u64 = number("REATTACH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("REATTACH_SEED={seed} REATTACH_KILLS={kills}");
    let mut dice = Dice(seed);
    let server = TestServer::start(ServerOptions::default()).await.unwrap();
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("journal");
    let mut told: HashMap<u64, String> = HashMap::new();
    let mut next = 0;
    for _ in 0..kills {
        let mut agent = start(&server, &dir, next);
        let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines();
        // A fifth of the kills hit the start, the others some payments.
        let mut wait_for_ready = dice.below(5) != 0;
        let life = Duration::from_millis(dice.below(300)); // recovery waits 100 ms before it resumes
        let end = tokio::time::sleep(life);
        tokio::pin!(end);
        loop {
            tokio::select! {
                line = lines.next_line() => match line.unwrap() {
                    Some(line) if line == "ready" && wait_for_ready => {
                        wait_for_ready = false;
                        end.as_mut().reset(tokio::time::Instant::now() + life);
                    }
                    Some(line) => hear(&line, &mut told, &mut next),
                    None => panic!("the agent ended by itself"),
                },
                () = &mut end, if !wait_for_ready => break,
            }
        }
        agent.start_kill().unwrap();
        agent.wait().await.unwrap();
        while let Some(line) = lines.next_line().await.unwrap() {
            hear(&line, &mut told, &mut next);
        }
    }
    check(&dir, server.ledger(), &told).await;
}

fn hear(line: &str, told: &mut HashMap<u64, String>, next: &mut u64) {
    if let Some(("told", rest)) = line.split_once(' ')
        && let Some((n, what)) = rest.split_once(' ')
    {
        let n: u64 = n.parse().unwrap();
        told.insert(n, what.to_owned());
        *next = n + 1;
    }
}

async fn check(dir: &Path, ledger: &Ledger, told: &HashMap<u64, String>) {
    let reader = Reader::open(dir).unwrap();
    let records = reader.executions(&Default::default()).unwrap();
    let known: HashMap<_, _> = records
        .iter()
        .map(|record| (record.execution_id, record))
        .collect();
    let effects = ledger.effects();
    let mut acted = HashSet::new();
    let mut paid: HashMap<u64, usize> = HashMap::new();
    for effect in &effects {
        let execution = effect.execution.expect("every payment names its execution");
        let record = known
            .get(&execution)
            .expect("what the ledger knows is in the journal");
        assert!(record.dispatched_at.is_some(), "{record:?}");
        assert!(
            record.state != State::NotExecuted,
            "proof of not executed, and it executed: {record:?}"
        );
        assert!(acted.insert(execution), "{execution} acted twice");
        *paid
            .entry(effect.arguments["n"].as_u64().unwrap())
            .or_default() += 1;
    }
    for (n, times) in &paid {
        assert_eq!(*times, 1, "payment {n}");
    }
    for (n, what) in told {
        match what.as_str() {
            "paid" => assert_eq!(
                paid.get(n),
                Some(&1),
                "the agent was told that {n} was paid"
            ),
            _ => assert_eq!(what, "unknown"),
        }
    }
    let unknown = told.values().filter(|what| *what == "unknown").count();
    println!(
        "{} payments, {} executions, {unknown} told as unknown",
        effects.len(),
        records.len()
    );
    assert!(effects.len() > 10, "the agents got somewhere");
}
