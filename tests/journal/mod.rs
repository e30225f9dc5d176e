//! What the tests of the journal share.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use reattach::clock::{Clock, SystemClock};
use reattach::contract::Class;
use reattach::execution::Priors;
use reattach::identity::{Correlation, IntentScope, RequestId, RunId, SessionId};
use reattach::journal::store::faulty::FaultyStore;
use reattach::journal::store::{MemoryStore, Store};
use reattach::journal::{Answer, Dispatch, Journal, JournalOptions, KeySource, NewExecution};

/// An action that differs by `what`.
pub(crate) fn action(journal: &Journal, what: &str) -> NewExecution {
    NewExecution {
        fingerprint: journal.fingerprint_key().fingerprint(what.as_bytes()),
        tool: "pay".into(),
        class: Class::Irreversible,
        actor: "tester".into(),
        run_id: RunId::generate(SystemClock.now()),
        target: "https://bank.example/mcp".into(),
        credential_ref: None,
        intent_scope: IntentScope::Actor,
        intent: None,
    }
}

pub(crate) fn request(id: u64) -> Correlation {
    Correlation::new(
        RequestId::Number(id.into()),
        Some(SessionId::new("session-secret-4711")),
        Some("2025-11-25"),
    )
}

pub(crate) fn answer(text: &str) -> Answer {
    Answer {
        message: Bytes::copy_from_slice(text.as_bytes()),
        status: Some(200),
        is_error: false,
        asks_for_input: false,
    }
}

/// Accepts an action that nobody asked for before.
pub(crate) async fn accept(journal: &Journal, what: &str) -> Dispatch {
    journal
        .accept(action(journal, what), &Priors::default(), &request(1))
        .await
        .expect("it is accepted")
}

/// A whole life, to the delivery.
pub(crate) async fn deliver(journal: &Journal, what: &str) {
    let lease = accept(journal, what).await.spend();
    lease.keep(&answer("{}")).await.expect("it is kept");
    journal.delivered(lease.execution(), request(1).request());
}

pub(crate) async fn open(dir: &Path) -> Journal {
    Journal::open(JournalOptions::new(dir))
        .await
        .expect("it opens")
}

/// A journal in memory on a store that can be made to fail, and the store.
pub(crate) async fn faulty() -> (Journal, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::default())));
    (open_in(store.clone()).await, store)
}

pub(crate) async fn open_in(store: Arc<dyn Store>) -> Journal {
    let options = JournalOptions::new("").with_key(KeySource::Bytes([7; 32].into()));
    Journal::open_in(store, options).await.expect("it opens")
}
