//! What was acknowledged is there when the journal is opened again.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod journal;

use std::sync::Arc;

use journal::{accept, action, answer, deliver, open, request};
use reattach::execution::{Evidence, Permit, Priors, State};
use reattach::identity::EventId;
use reattach::identity::{IntentScope, SessionId};
use reattach::journal::store::faulty::{Fault, FaultyStore};
use reattach::journal::store::{MemoryStore, Store};
use reattach::journal::{Event, Journal, Reader, RunStarted, StreamCursor};

#[tokio::test]
async fn a_kept_answer_reads_back_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("journal");
    let large = "x".repeat(300_000);
    let id = {
        let journal = open(&dir).await;
        let lease = accept(&journal, "a").await.spend();
        lease.keep(&answer(&large)).await.unwrap();
        journal.close().await.unwrap();
        lease.execution()
    };
    let journal = open(&dir).await;
    let prior = journal
        .find(&action(&journal, "a").fingerprint)
        .executions
        .pop()
        .unwrap();
    assert_eq!(
        (prior.execution, prior.state, prior.owned),
        (id, State::CompletedResultNotDelivered, false)
    );
    assert_eq!(
        journal.kept(id).await.unwrap().unwrap().message,
        large.as_bytes()
    );
    journal.delivered(id, request(1).request());
    drop(journal);
    let journal = open(&dir).await;
    assert_eq!(
        journal.open_record(id).unwrap().state,
        State::CompletedResultDelivered
    );
}

#[tokio::test]
async fn dropping_the_last_clone_makes_everything_durable_and_gives_the_directory_up() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..5 {
        let journal = open(dir.path()).await;
        assert_eq!(journal.executions_in_memory(), n);
        deliver(&journal, &n.to_string()).await;
    }
}

#[tokio::test]
async fn an_execution_of_an_earlier_run_has_no_owner_and_goes_on_with_a_permit() {
    let dir = tempfile::tempdir().unwrap();
    let id = {
        let journal = open(dir.path()).await;
        accept(&journal, "a").await.spend().execution()
    };
    let journal = open(dir.path()).await;
    let lease = journal.take_over(id).unwrap();
    lease
        .append(Event::OutcomeUnknown {
            evidence: Evidence::OwnerGone,
        })
        .await
        .unwrap();
    let lease = lease
        .dispatch(Permit::SameKey, &request(9))
        .await
        .unwrap()
        .spend();
    lease.keep(&answer("{}")).await.unwrap();
    let record = journal.open_record(id).unwrap();
    assert_eq!(
        (record.state, record.dispatches.len()),
        (State::CompletedResultNotDelivered, 2)
    );
    assert_eq!(record.dispatches[1].permit, Some(Permit::SameKey));
}

#[tokio::test]
async fn the_way_back_to_a_stream_survives() {
    let dir = tempfile::tempdir().unwrap();
    let cursor = StreamCursor {
        session: Some(SessionId::new("session-secret-4711")),
        event: EventId::new("0/0").unwrap(),
        revision: Some("2025-11-25".into()),
    };
    let id = {
        let journal = open(dir.path()).await;
        let lease = accept(&journal, "a").await.spend();
        lease.stream_opened(1, &cursor);
        lease.execution()
    };
    let journal = open(dir.path()).await;
    assert_eq!(journal.cursor(id).unwrap(), Some(cursor));
}

#[tokio::test]
async fn a_durable_scope_keeps_its_answer_across_runs() {
    let dir = tempfile::tempdir().unwrap();
    {
        let journal = open(dir.path()).await;
        let mut new = action(&journal, "a");
        new.intent_scope = IntentScope::Durable;
        let lease = journal
            .accept(new, &Priors::default(), &request(1))
            .await
            .unwrap()
            .spend();
        lease.keep(&answer("first")).await.unwrap();
        journal.delivered(lease.execution(), request(1).request());
    }
    let journal = open(dir.path()).await;
    let prior = journal
        .find(&action(&journal, "a").fingerprint)
        .executions
        .pop()
        .unwrap();
    assert_eq!(prior.state, State::CompletedResultDelivered);
    assert_eq!(
        &journal
            .kept(prior.execution)
            .await
            .unwrap()
            .unwrap()
            .message[..],
        b"first"
    );
}

#[tokio::test]
async fn a_reader_shows_what_was_written_without_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("journal");
    let id = {
        let journal = open(&dir).await;
        journal
            .start_run(RunStarted::here(action(&journal, "a").run_id, "tester"))
            .await
            .unwrap();
        deliver(&journal, "b").await;
        let lease = accept(&journal, "a").await.spend();
        let live = journal
            .reader()
            .unwrap()
            .executions(&Default::default())
            .unwrap();
        assert_eq!(live.len(), 2);
        lease.execution()
    };
    std::fs::remove_file(dir.with_extension("key")).unwrap();
    let reader = Reader::open(&dir).unwrap();
    let records = reader.executions(&Default::default()).unwrap();
    let states: Vec<State> = records.iter().map(|record| record.state).collect();
    assert_eq!(states, [State::CompletedResultDelivered, State::Dispatched]);
    let (record, entries) = reader.record(id).unwrap().unwrap();
    assert_eq!((record.tool.as_str(), entries.len()), ("pay", 3));
    let mut sequences = Vec::new();
    reader
        .entries(&mut |entry| {
            sequences.push(entry.sequence);
            Ok(())
        })
        .unwrap();
    assert_eq!(sequences, (1..=sequences.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_closed_journal_says_so() {
    let journal = Journal::in_memory();
    journal.close().await.unwrap();
    assert!(
        journal
            .flush()
            .await
            .unwrap_err()
            .to_string()
            .contains("closed")
    );
    assert!(
        journal
            .accept(action(&journal, "a"), &Priors::default(), &request(1))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_group_of_which_a_part_arrived_is_no_obstacle() {
    let disk: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let id = {
        let store = Arc::new(FaultyStore::new(disk.clone()));
        let journal = journal::open_in(store.clone()).await;
        let lease = accept(&journal, "a").await.spend();
        store.fail_after(0, Fault::Torn);
        assert!(lease.keep(&answer(&"x".repeat(200_000))).await.is_err());
        lease.execution()
    };
    let journal = journal::open_in(disk).await;
    assert_eq!(journal.open_record(id).unwrap().state, State::Dispatched);
    assert!(journal.kept(id).await.unwrap().is_none());
    let lease = journal.take_over(id).unwrap();
    lease.keep(&answer("late")).await.unwrap();
    assert_eq!(
        &journal.kept(id).await.unwrap().unwrap().message[..],
        b"late"
    );
}
