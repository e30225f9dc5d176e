//! A real disk that is full, and one that turns read-only: nothing is sent for a side-effecting call, the error says so,
//! reads still pass, and what was acknowledged is there afterwards. Needs the right to mount a tmpfs.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use std::path::Path;
use std::process::Command;

use reattach::journal::{Journal, JournalOptions, Reader};
use serde_json::json;
use support::{Agent, Server, is_unknown, json_answer, result, text_of};

/// A small file system of its own, gone with the value.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let disk = mount(
            &["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"],
            dir.path(),
        )
        .then_some(Self(dir));
        if disk.is_none() {
            println!("SKIPPED: this user may not mount a tmpfs");
        }
        disk
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

fn mount(arguments: &[&str], on: &Path) -> bool {
    let output = Command::new("mount").args(arguments).arg(on).output();
    output.is_ok_and(|output| output.status.success())
}

fn server() -> Server {
    Server::new(|seen| async move { Ok(json_answer(&result(&seen.id(), "done"))) })
}

async fn agent(dir: &Path) -> Agent {
    // The key lies beside the directory, so on the same disk.
    Agent::with_journal(
        server(),
        Journal::open(JournalOptions::new(dir.join("journal")))
            .await
            .unwrap(),
    )
    .await
}

#[tokio::test]
async fn a_disk_that_fills_up_stops_side_effects_before_they_are_sent() {
    let Some(disk) = Disk::new("48m") else { return };
    let agent = agent(disk.path()).await;
    let mut acknowledged = 0;
    let mut refused = None;
    for n in 0..100 {
        let answer = agent.call(n, "pay", json!({ "n": n })).await.unwrap();
        if answer.get("error").is_some() {
            refused = Some(answer);
            break;
        }
        // Either it was kept and delivered, or the disk filled up between the dispatch and the answer.
        assert!(
            text_of(&answer) == "done" || is_unknown(&answer),
            "{answer}"
        );
        acknowledged += 1;
        if n == 3 {
            std::fs::write(disk.path().join("ballast"), vec![0; 64 << 20]).unwrap_err();
        }
    }
    let refused = refused.expect("a full disk refuses");
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("not sent"),
        "{refused}"
    );
    assert_eq!(
        agent.server.posts(),
        acknowledged,
        "what was refused was not sent"
    );
    assert_eq!(
        text_of(&agent.call(1000, "look", json!({})).await.unwrap()),
        "done"
    );
    let _ = agent.layer.journal().close().await;
    drop(agent);

    std::fs::remove_file(disk.path().join("ballast")).unwrap();
    let reader = Reader::open(&disk.path().join("journal")).unwrap();
    let records = reader.executions(&Default::default()).unwrap();
    let dispatched = records
        .iter()
        .filter(|record| record.dispatched_at.is_some())
        .count();
    assert!(
        dispatched >= acknowledged,
        "{dispatched} of {acknowledged} are there"
    );
}

#[tokio::test]
async fn a_disk_that_turns_read_only_stops_side_effects_too() {
    let Some(disk) = Disk::new("48m") else { return };
    let agent = agent(disk.path()).await;
    assert_eq!(
        text_of(&agent.call(0, "pay", json!({ "n": 0 })).await.unwrap()),
        "done"
    );
    agent.layer.journal().close().await.unwrap();
    drop(agent);
    assert!(mount(&["-o", "remount,ro"], disk.path()));
    let error = Journal::open(JournalOptions::new(disk.path().join("journal")))
        .await
        .err()
        .unwrap();
    let text = error.to_string();
    assert!(
        text.contains("journal") && text.contains("nothing was written"),
        "{text}"
    );
    let nowhere = Journal::open(JournalOptions::new(disk.path().join("other")))
        .await
        .err()
        .unwrap();
    assert!(nowhere.to_string().contains("other"), "{nowhere}");
}
