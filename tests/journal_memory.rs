//! Memory is bounded by what is open, not by what ever happened; and what is open is bounded too.
#![allow(clippy::unwrap_used, reason = "a test")]

mod journal;

use std::sync::Arc;

use journal::{accept, action, answer, deliver, request};
use reattach::execution::{Evidence, Permit, Priors, State};
use reattach::journal::store::MemoryStore;
use reattach::journal::{AcceptError, Event, Journal, JournalOptions, KeySource};

async fn small(store: Arc<MemoryStore>) -> Journal {
    let mut options = JournalOptions::new("").with_key(KeySource::Bytes([7; 32].into()));
    options.closed_in_memory = 10;
    options.max_open_per_actor = 5;
    Journal::open_in(store, options).await.unwrap()
}

#[tokio::test]
async fn what_was_delivered_leaves_the_index() {
    let store = Arc::new(MemoryStore::default());
    {
        let journal = small(store.clone()).await;
        for n in 0..200 {
            deliver(&journal, &n.to_string()).await;
        }
        journal.flush().await.unwrap();
        assert!(
            journal.executions_in_memory() <= 11,
            "{}",
            journal.executions_in_memory()
        );
    }
    let journal = small(store).await;
    assert!(
        journal.executions_in_memory() <= 10,
        "{}",
        journal.executions_in_memory()
    );
    assert_eq!(
        journal
            .reader()
            .unwrap()
            .executions(&Default::default())
            .unwrap()
            .len(),
        200
    );
}

#[tokio::test]
async fn what_is_followed_or_held_stays() {
    let journal = small(Arc::default()).await;
    let lease = accept(&journal, "held").await.spend();
    lease.keep(&answer("held")).await.unwrap();
    journal.delivered(lease.execution(), request(1).request());
    for n in 0..50 {
        deliver(&journal, &n.to_string()).await;
    }
    journal.flush().await.unwrap();
    assert_eq!(
        &journal
            .kept(lease.execution())
            .await
            .unwrap()
            .unwrap()
            .message[..],
        b"held"
    );
}

#[tokio::test]
async fn what_may_be_dispatched_again_is_not_forgotten_while_it_is_read() {
    let store = Arc::new(MemoryStore::default());
    let id = {
        let journal = small(store.clone()).await;
        let lease = accept(&journal, "a").await.spend();
        lease
            .append(Event::Settled {
                n: 1,
                evidence: Evidence::BodyNeverPolled,
            })
            .await
            .unwrap();
        for n in 0..50 {
            deliver(&journal, &n.to_string()).await;
        }
        lease
            .dispatch(Permit::NotSent, &request(2))
            .await
            .unwrap()
            .spend()
            .execution()
    };
    let journal = small(store).await;
    let prior = journal
        .find(&action(&journal, "a").fingerprint)
        .executions
        .pop()
        .unwrap();
    assert_eq!((prior.execution, prior.state), (id, State::Dispatched));
}

#[tokio::test]
async fn an_actor_may_have_so_many_open_and_no_more() {
    let journal = small(Arc::default()).await;
    let mut leases = Vec::new();
    for n in 0..5 {
        leases.push(accept(&journal, &n.to_string()).await.spend());
    }
    let refused = journal
        .accept(action(&journal, "more"), &Priors::default(), &request(1))
        .await
        .err()
        .unwrap();
    assert!(
        matches!(refused, AcceptError::TooManyOpen { open: 5, limit: 5 }),
        "{refused}"
    );
    let mut other = action(&journal, "more");
    other.actor = "another".into();
    assert!(
        journal
            .accept(other, &Priors::default(), &request(1))
            .await
            .is_ok()
    );
    leases[0].keep(&answer("{}")).await.unwrap();
    journal.delivered(leases[0].execution(), request(1).request());
    journal.flush().await.unwrap();
    assert!(
        journal
            .accept(action(&journal, "further"), &Priors::default(), &request(1))
            .await
            .is_ok()
    );
}
