//! The command from outside: what it prints, and its exit codes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]
#![cfg(feature = "cli")]

mod support;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use reattach::journal::{Journal, JournalOptions};
use serde_json::{Value, json};
use support::{Agent, Server, json_answer, result};

fn reattach(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_reattach"))
        .args(arguments)
        .env("REATTACH_JOURNAL", dir)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A journal with one payment that was delivered and one whose answer was lost.
async fn journal(dir: &Path) {
    let server = Server::new(|seen| async move {
        if seen.body["params"]["arguments"]["amount"] == 2 {
            return Err("connection reset".into());
        }
        Ok(json_answer(&result(&seen.id(), "paid")))
    });
    let journal = Journal::open(JournalOptions::new(dir)).await.unwrap();
    let agent = Agent::with_journal(server, journal).await;
    agent
        .call(41, "pay", json!({ "amount": 1, "to": "planted-argument" }))
        .await
        .unwrap();
    agent
        .call("x", "pay\u{1b}[2J", json!({ "amount": 2 }))
        .await
        .unwrap();
    agent.layer.journal().close().await.unwrap();
}

#[tokio::test]
async fn a_journal_is_listed_shown_and_dumped() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("journal");
    journal(&dir).await;

    let all = reattach(&dir, &["journal", "list"]);
    assert_eq!(all.status.code(), Some(0), "{}", stderr(&all));
    let all = lines(&all);
    assert_eq!(all.len(), 2);
    for name in [
        "type",
        "schema",
        "execution_id",
        "fingerprint",
        "tool",
        "class",
        "actor",
        "run_id",
        "target",
        "intent_scope",
        "state",
        "accepted_at",
        "authorized_at",
        "dispatched_at",
        "completed_at",
        "target_status",
        "result_reference",
        "result_digest",
        "dispatches",
        "reason",
    ] {
        assert!(all[0].get(name).is_some(), "{name}: {}", all[0]);
    }
    assert_eq!(all[0]["dispatches"][0]["request_id"], 41);
    assert_eq!(all[0]["state"], "completed_result_delivered");
    assert_eq!(all[1]["state"], "outcome_unknown");

    let unknown = reattach(
        &dir,
        &[
            "journal",
            "list",
            "--state",
            "outcome_unknown",
            "--fail-if-any",
        ],
    );
    assert_eq!((unknown.status.code(), lines(&unknown).len()), (Some(1), 1));
    let none = reattach(
        &dir,
        &["journal", "list", "--tool", "refund", "--fail-if-any"],
    );
    assert_eq!((none.status.code(), lines(&none).len()), (Some(0), 0));

    let id = all[1]["execution_id"].as_str().unwrap();
    let shown = lines(&reattach(&dir, &["journal", "show", id]));
    assert_eq!(shown[0], all[1]);
    assert_eq!(shown[1]["event"]["event"], "accepted");
    assert_eq!(shown.last().unwrap()["event"]["event"], "outcome_unknown");

    let dump = reattach(&dir, &["journal", "dump"]);
    assert!(!String::from_utf8_lossy(&dump.stdout).contains("planted-argument"));
    let dump = lines(&dump);
    let of = |kind: &str| {
        dump.iter()
            .filter(|line| line["type"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!((of("run").len(), of("execution")), (1, all));
    let entries = of("entry");
    for (one, next) in entries.iter().zip(&entries[1..]) {
        assert_eq!(next["prev"], one["hash"], "the chain can be followed");
        assert_eq!(next["seq"].as_u64(), one["seq"].as_u64().map(|seq| seq + 1));
    }
}

#[tokio::test]
async fn a_journal_in_use_says_by_whom() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("journal");
    let _open = Journal::open(JournalOptions::new(&dir)).await.unwrap();
    let output = reattach(&dir, &["journal", "list"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains(&std::process::id().to_string()),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_is_not_there_is_said_and_not_made() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("nowhere");
    let output = reattach(&dir, &["journal", "list"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("nowhere") && stderr(&output).contains("--journal"),
        "{}",
        stderr(&output)
    );
    assert!(!dir.exists());
}

#[tokio::test]
async fn wrong_words_are_usage_errors() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("journal");
    journal(&dir).await;
    for words in [
        &["journal", "show", "exe_x"][..],
        &["journal", "list", "--state", "lost"],
        &["jurnal"],
        &[],
    ] {
        assert_eq!(reattach(&dir, words).status.code(), Some(2), "{words:?}");
    }
    let absent = reattach(&dir, &["journal", "show", "exe_01J4K8J7DX7V0Q3M5T9B2C4D6E"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(stderr(&absent).contains("journal list"));
}

#[tokio::test]
async fn a_closed_pipe_is_no_error() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("journal");
    journal(&dir).await;
    let mut child = Command::new(env!("CARGO_BIN_EXE_reattach"))
        .args(["journal", "dump"])
        .env("REATTACH_JOURNAL", &dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stderr.is_empty());
}

#[test]
fn help_teaches_and_completions_complete() {
    let scratch = tempfile::tempdir().unwrap();
    let help = reattach(scratch.path(), &["--help"]);
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    for part in ["demo", "journal", "REATTACH_JOURNAL", "Exit codes"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("demo-agent"));
    let script = reattach(scratch.path(), &["completions", "bash"]);
    assert!(String::from_utf8_lossy(&script.stdout).contains("reattach"));
}

#[test]
fn the_demo_proves_its_claims() {
    let scratch = tempfile::tempdir().unwrap();
    let started = std::time::Duration::from_secs(20);
    let mut child = Command::new(env!("CARGO_BIN_EXE_reattach"))
        .arg("demo")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (done, wait) = std::sync::mpsc::channel();
    let mut stdout = child.stdout.take().unwrap();
    std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stdout, &mut text).unwrap();
        done.send(text).unwrap();
    });
    let text = wait
        .recv_timeout(started)
        .expect("the demo takes less than 20 seconds");
    assert!(child.wait().unwrap().success(), "{text}");
    for part in [
        "2 payments (1 + 1)",
        "1 payment (1)",
        "All 12 claims hold",
        "outcome_unknown",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    drop(scratch);
}
