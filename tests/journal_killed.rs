//! A process is killed with SIGKILL in the middle of its commits: what it was told is durable is there on reopening, and
//! the chain is whole.
//!
//! The child is this test's own binary. 6 kills by default; `REATTACH_JOURNAL_KILLS` sets another number.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod journal;

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use journal::{accept, answer, open};
use reattach::entropy;
use reattach::execution::State;
use reattach::identity::ExecutionId;
use reattach::journal::{Journal, JournalOptions, Reader};

#[tokio::test]
async fn what_a_killed_process_was_told_is_durable_is_there() {
    let kills = std::env::var("REATTACH_JOURNAL_KILLS").map_or(6, |text| text.parse().unwrap());
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("journal");
    let mut told = HashSet::new();
    for kill in 0..kills {
        let lines = 1 + entropy::below(200);
        told.extend(run_and_kill(&dir, lines));
        let records = Reader::open(&dir)
            .unwrap()
            .executions(&Default::default())
            .unwrap();
        let journal = Journal::open(JournalOptions::new(&dir)).await.unwrap();
        for (id, size) in &told {
            let record = records.iter().find(|record| record.execution_id == *id);
            let state = record
                .unwrap_or_else(|| panic!("kill {kill} after {lines}: {id} is gone"))
                .state;
            assert!(
                state.is_completed(),
                "kill {kill} after {lines}: {id} was kept and is {state}"
            );
            if state == State::CompletedResultNotDelivered {
                let kept = journal.kept(*id).await.unwrap().unwrap();
                assert_eq!(kept.message.len(), *size, "kill {kill} after {lines}: {id}");
            }
        }
    }
    assert!(told.len() as u64 >= kills);
}

/// Runs the child until it has told of so many answers, and kills it. Returns all that it told.
fn run_and_kill(dir: &Path, lines: u64) -> Vec<(ExecutionId, usize)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child", "--ignored", "--nocapture"])
        .env("REATTACH_JOURNAL_CHILD", dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = Vec::new();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut take = |line: std::io::Result<String>| {
        let line = line.unwrap();
        let Some((_, rest)) = line.split_once("kept ") else {
            return;
        };
        // A line that the kill cut short told nothing.
        let Some((id, size)) = rest
            .strip_suffix(" bytes")
            .and_then(|rest| rest.split_once(' '))
        else {
            return;
        };
        told.push((id.parse().unwrap(), size.parse().unwrap()));
    };
    output.by_ref().take(lines as usize).for_each(&mut take);
    child.kill().unwrap();
    child.wait().unwrap();
    output.for_each(&mut take);
    told
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the child of the test above"]
async fn the_child() {
    let Some(dir) = std::env::var_os("REATTACH_JOURNAL_CHILD") else {
        return;
    };
    let journal = open(Path::new(&dir)).await;
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let journal = journal.clone();
            tokio::spawn(async move {
                for n in 0_u64.. {
                    let what = format!("{}-{task}-{n}", std::process::id());
                    let lease = accept(&journal, &what).await.spend();
                    let size = entropy::below(3_000) as usize + 60_000 * usize::from(n % 16 == 0);
                    lease.keep(&answer(&"x".repeat(size))).await.unwrap();
                    let line = format!("kept {} {size} bytes\n", lease.execution());
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}
