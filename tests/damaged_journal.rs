//! Damage: whatever is done to a journal's files, opening it gives everything that was acknowledged, or a clear error that names
//! a file or an entry. Never a panic, never less without a word.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use reattach::identity::ExecutionId;
use reattach::journal::{Journal, JournalOptions, Reader};
use serde_json::json;
use support::{Agent, Server, json_answer, result};

/// A journal with some executions, closed.
async fn journal(dir: &Path) -> Vec<ExecutionId> {
    let server = Server::new(|seen| async move {
        let large = "x".repeat(if seen.n % 5 == 0 { 100_000 } else { 10 });
        Ok(json_answer(&result(&seen.id(), &large)))
    });
    let agent = Agent::with_journal(
        server,
        Journal::open(JournalOptions::new(dir)).await.unwrap(),
    )
    .await;
    for n in 0..12 {
        agent.call(n, "pay", json!({ "n": n })).await.unwrap();
    }
    agent.layer.journal().flush().await.unwrap();
    let known = Reader::executions(
        &agent.layer.journal().reader().unwrap(),
        &Default::default(),
    )
    .unwrap();
    agent.layer.journal().close().await.unwrap();
    known
        .into_iter()
        .map(|record| record.execution_id)
        .collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Opens a damaged copy: all of it, or an error that says where.
async fn whole_or_named(dir: PathBuf, known: &[ExecutionId], damage: &str) -> bool {
    match Journal::open(JournalOptions::new(&dir)).await {
        Ok(journal) => {
            let found = journal.reader().unwrap().executions(&Default::default());
            let found: Vec<_> = found
                .unwrap()
                .iter()
                .map(|record| record.execution_id)
                .collect();
            assert_eq!(
                found, known,
                "{damage}: something is missing without a word"
            );
            journal.close().await.unwrap();
            true
        }
        Err(error) => {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                text = format!("{text}: {cause}");
                source = cause.source();
            }
            let names = text.contains(dir.to_str().unwrap()) || text.contains("entry ");
            assert!(names && text.contains(';'), "{damage}: {text}");
            false
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_and_missing_bytes_are_never_a_panic_and_never_a_silent_loss() {
    let scratch = tempfile::tempdir().unwrap();
    let original = scratch.path().join("original");
    let known = journal(&original).await;
    let key = scratch.path().join("original.key");
    let used = fs::metadata(original.join("db")).unwrap().len();
    let (mut opened, mut refused) = (0, 0);
    let damaged = |name: &str| {
        let dir = scratch.path().join(name);
        copy(&original, &dir);
        fs::copy(&key, scratch.path().join(format!("{name}.key"))).unwrap();
        dir
    };
    for n in 0..48_u64 {
        let dir = damaged(&format!("flip-{n}"));
        let mut bytes = fs::read(dir.join("db")).unwrap();
        let filled = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        let at = usize::try_from(n).unwrap() * filled / 48;
        bytes[at] ^= 0x55;
        fs::write(dir.join("db"), bytes).unwrap();
        if whole_or_named(dir.clone(), &known, &format!("byte {at} flipped")).await {
            opened += 1
        } else {
            refused += 1
        }
        fs::remove_dir_all(dir).unwrap();
    }
    for n in 0..8 {
        let dir = damaged(&format!("cut-{n}"));
        let file = fs::OpenOptions::new()
            .write(true)
            .open(dir.join("db"))
            .unwrap();
        file.set_len(used * n / 8).unwrap();
        if whole_or_named(dir.clone(), &known, &format!("db cut at {}", used * n / 8)).await {
            opened += 1
        } else {
            refused += 1
        }
        fs::remove_dir_all(dir).unwrap();
    }
    println!("{opened} opened whole, {refused} refused with a reason");
    assert!(refused > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_file_that_is_missing_or_foreign_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let original = scratch.path().join("original");
    let known = journal(&original).await;
    let key = fs::read(scratch.path().join("original.key")).unwrap();
    type Damage = fn(&Path);
    let damages: [(&str, Damage, bool); 7] = [
        (
            "conf-gone",
            |dir| fs::remove_file(dir.join("conf")).unwrap(),
            false,
        ),
        (
            "conf-garbage",
            |dir| fs::write(dir.join("conf"), b"garbage").unwrap(),
            false,
        ),
        (
            "db-gone",
            |dir| fs::remove_file(dir.join("db")).unwrap(),
            false,
        ),
        (
            "db-empty",
            |dir| fs::write(dir.join("db"), b"").unwrap(),
            false,
        ),
        (
            "blob",
            |dir| fs::write(dir.join("blobs").join("7"), b"x").unwrap(),
            false,
        ),
        (
            "head-garbage",
            |dir| fs::write(dir.join("head"), b"garbage").unwrap(),
            true,
        ),
        (
            "snapshots-gone",
            |dir| {
                for entry in fs::read_dir(dir).unwrap() {
                    let path = entry.unwrap().path();
                    if path
                        .file_name()
                        .unwrap()
                        .to_string_lossy()
                        .starts_with("snap.")
                    {
                        fs::remove_file(path).unwrap();
                    }
                }
            },
            true,
        ),
    ];
    for (name, damage, opens) in damages {
        let dir = scratch.path().join(name);
        copy(&original, &dir);
        fs::write(scratch.path().join(format!("{name}.key")), &key).unwrap();
        fs::set_permissions(
            scratch.path().join(format!("{name}.key")),
            fs::Permissions::from_mode(0o600),
        )
        .unwrap();
        damage(&dir);
        assert_eq!(whole_or_named(dir, &known, name).await, opens, "{name}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_this_journals_is_refused_and_none_is_made_up() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("journal");
    journal(&dir).await;
    let path = scratch.path().join("journal.key");
    let right = fs::read(&path).unwrap();
    let mut wrong = right.clone();
    wrong[0] = if wrong[0] == b'0' { b'1' } else { b'0' };
    for (name, bytes, mode) in [
        ("others may read it", right.clone(), 0o644),
        ("too short", right[..10].to_vec(), 0o600),
        ("no key", b"not hexadecimal at all".to_vec(), 0o600),
        ("another key", wrong, 0o600),
    ] {
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = Journal::open(JournalOptions::new(&dir))
            .await
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("journal.key") && error.contains(';'),
            "{name}: {error}"
        );
        assert!(
            !error.contains(std::str::from_utf8(&right).unwrap().trim()),
            "{name}: it shows the key"
        );
    }
    fs::remove_file(&path).unwrap();
    let error = Journal::open(JournalOptions::new(&dir))
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("journal.key"), "{error}");
    assert!(!path.exists(), "a lost key is not replaced");
    fs::write(&path, &right).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    Journal::open(JournalOptions::new(&dir)).await.unwrap();
}
