//! No secret at rest: planted ones are looked for in every byte of the journal's directory, in every log line and in every
//! error.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use http_body_util::BodyExt;
use reattach::contract::{Class, Contract, Contracts, FingerprintRules};
use reattach::journal::{Journal, JournalOptions};
use reattach::layer::{Intent, ReattachLayer};
use serde_json::json;
use support::{Agent, Server, event, events, json_answer, priming, result};

/// What the layer gets to see and may keep nowhere.
const PLANTED: [&str; 8] = [
    "planted-argument",
    "planted-pin",
    "planted-result",
    "planted-question",
    "planted-session",
    "planted-token",
    "planted-intent",
    "planted-event-id",
];

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn files(dir: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
}

#[tokio::test]
async fn planted_secrets_are_found_nowhere() {
    let log = Log::default();
    let sink = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || sink.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);

    let scratch = tempfile::tempdir().unwrap();
    let server = Server::new(|seen| async move {
        let id = seen.id();
        Ok(match seen.n {
            0 => json_answer(&result(&id, "planted-result")),
            1 => events(
                &[
                    priming("planted-event-id"),
                    event("planted-event-id-2", &result(&id, "planted-result")),
                ],
                true,
            ),
            2 => events(&[priming("planted-event-id")], true),
            3..=6 => support::respond(
                503,
                "text/html",
                support::full("<html>planted-result</html>"),
            ),
            7 => return Err("connection reset by planted-token".into()),
            _ => json_answer(
                &json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "input_required", "requestState": "planted-question" } }),
            ),
        })
    });
    let mut rules = FingerprintRules::default();
    rules.secret = vec!["/pin".parse().unwrap()];
    let contracts = Contracts::builder()
        .tool(
            "pay",
            Contract::of(Class::Irreversible).with_fingerprint(rules),
        )
        .build();
    let journal = Journal::open(JournalOptions::new(scratch.path().join("journal")))
        .await
        .unwrap();
    let layer = ReattachLayer::builder(journal)
        .actor("process:test")
        .contracts(contracts)
        .build()
        .await
        .unwrap();
    let agent = Agent {
        layer,
        session: Some("planted-session"),
        ..Agent::new(server).await
    };
    let mut said = String::new();
    for n in 0..8 {
        let mut message = support::call(
            n,
            "pay",
            json!({ "to": "planted-argument", "pin": "planted-pin", "n": n }),
        );
        message["params"]["_meta"] = json!({ Intent::META: format!("planted-intent-{n}") });
        match agent.send(&message).await {
            Ok(response) => drop(response.into_body().collect().await),
            Err(error) => said.push_str(&format!("{error} {error:?}")),
        }
    }
    agent.layer.journal().flush().await.unwrap();
    let reader = agent.layer.journal().reader().unwrap();
    let records = reader.executions(&Default::default()).unwrap();
    assert_eq!(records.len(), 8);
    for record in &records {
        said.push_str(&format!(
            "{record:?} {}",
            serde_json::to_string(record).unwrap()
        ));
        for entry in reader.record(record.execution_id).unwrap().unwrap().1 {
            said.push_str(&entry.text);
        }
    }
    drop(reader);
    agent.layer.journal().close().await.unwrap();
    drop(agent);

    let mut haystacks = vec![
        ("what was said".to_owned(), said.into_bytes()),
        ("the log".to_owned(), log.0.lock().unwrap().clone()),
    ];
    files(scratch.path(), &mut haystacks);
    assert!(
        haystacks
            .iter()
            .any(|(name, bytes)| name.ends_with("/db") && bytes.len() > 1000)
    );
    for (name, bytes) in &haystacks {
        for secret in PLANTED {
            // The inner service's own error text is its own to log; it came with no secret of ours.
            let theirs = name == "the log" && secret == "planted-token";
            assert!(
                theirs || memchr::memmem::find(bytes, secret.as_bytes()).is_none(),
                "{secret} in {name}"
            );
        }
    }
}
