//! Of all who ask for the same action, one gets the right to send, and only when its record is durable.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod journal;

use std::time::Duration;

use journal::{accept, action, answer, faulty, request};
use reattach::execution::{Evidence, Permit, Priors, State, Verdict};
use reattach::journal::store::faulty::Fault;
use reattach::journal::{AcceptError, Event, Journal, JournalError};

#[tokio::test(flavor = "multi_thread")]
async fn of_32_equal_calls_at_once_one_is_dispatched() {
    let journal = Journal::in_memory();
    let calls: Vec<_> = (0..32)
        .map(|n| {
            let journal = journal.clone();
            tokio::spawn(async move {
                journal
                    .accept(action(&journal, "a"), &Priors::default(), &request(n))
                    .await
            })
        })
        .collect();
    let (mut dispatches, mut conflicts) = (Vec::new(), 0);
    for call in calls {
        match call.await.unwrap() {
            Ok(dispatch) => dispatches.push(dispatch),
            Err(AcceptError::Conflict) => conflicts += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((dispatches.len(), conflicts), (1, 31));
}

#[tokio::test]
async fn while_the_commit_is_in_flight_the_same_call_sees_an_owner() {
    let (journal, store) = faulty().await;
    store.hold();
    let first = tokio::spawn({
        let journal = journal.clone();
        async move { accept(&journal, "a").await }
    });
    let fingerprint = action(&journal, "a").fingerprint;
    let prior = loop {
        match journal.find(&fingerprint).executions.pop() {
            Some(prior) => break prior,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(
        (prior.state, prior.owned),
        (State::Accepted, true),
        "not dispatched before it is durable"
    );
    assert!(journal.take_over(prior.execution).is_none());
    let mut follower = journal.watch(prior.execution).unwrap();
    store.release();
    let dispatch = first.await.unwrap();
    follower
        .wait_for(|standing| standing.state == State::Dispatched && standing.owned)
        .await
        .unwrap();
    assert_eq!(dispatch.execution(), prior.execution);
}

#[tokio::test]
async fn a_commit_that_fails_gives_no_dispatch_and_ends_the_journal() {
    for fault in [Fault::Full, Fault::Torn, Fault::Sync] {
        let (journal, store) = faulty().await;
        let before = accept(&journal, "before").await.spend();
        store.fail_after(0, fault);
        let new = action(&journal, "a");
        let refused = journal
            .accept(new.clone(), &Priors::default(), &request(1))
            .await
            .err()
            .unwrap();
        assert!(
            matches!(
                refused,
                AcceptError::Journal(JournalError::NotDurable { entries: 3, .. })
            ),
            "{refused}"
        );
        assert!(
            journal.find(&new.fingerprint).executions.is_empty(),
            "{fault:?}"
        );
        for again in ["a", "b"] {
            let refused = journal
                .accept(action(&journal, again), &Priors::default(), &request(1))
                .await
                .err()
                .unwrap();
            assert!(
                matches!(refused, AcceptError::Journal(JournalError::Failed { .. })),
                "{refused}"
            );
        }
        assert!(matches!(
            before.keep(&answer("{}")).await,
            Err(JournalError::Failed { .. })
        ));
        assert!(matches!(
            journal.flush().await,
            Err(JournalError::Failed { .. })
        ));
        assert_eq!(
            journal.open_record(before.execution()).unwrap().state,
            State::Dispatched
        );
    }
}

#[tokio::test]
async fn followers_of_what_never_became_durable_are_let_go() {
    let (journal, store) = faulty().await;
    store.hold();
    store.fail_after(0, Fault::Full);
    let first = tokio::spawn({
        let journal = journal.clone();
        async move {
            journal
                .accept(action(&journal, "a"), &Priors::default(), &request(1))
                .await
                .err()
        }
    });
    let fingerprint = action(&journal, "a").fingerprint;
    while journal.find(&fingerprint).executions.is_empty() {
        tokio::task::yield_now().await;
    }
    let id = journal.find(&fingerprint).executions[0].execution;
    let mut follower = journal.watch(id).unwrap();
    store.release();
    assert!(first.await.unwrap().is_some());
    assert!(
        follower
            .wait_for(|standing| standing.state != State::Accepted)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_dispatch_that_is_dropped_unspent_is_known_not_to_have_been_sent() {
    let journal = Journal::in_memory();
    let dispatch = accept(&journal, "a").await;
    let id = dispatch.execution();
    drop(dispatch);
    journal.flush().await.unwrap();
    let record = journal.open_record(id).unwrap();
    assert_eq!(record.state, State::NotExecuted);
    assert_eq!(
        record.dispatches[0].evidence,
        Some(Evidence::BodyNeverPolled)
    );
}

#[tokio::test]
async fn a_call_that_leaves_while_its_commit_is_in_flight_is_known_not_to_have_been_sent() {
    let (journal, store) = faulty().await;
    store.hold();
    let new = action(&journal, "a");
    let fingerprint = new.fingerprint;
    let left = tokio::time::timeout(
        Duration::ZERO,
        journal.accept(new, &Priors::default(), &request(1)),
    )
    .await;
    assert!(left.is_err());
    store.release();
    journal.flush().await.unwrap();
    let prior = journal.find(&fingerprint).executions.pop().unwrap();
    assert_eq!(
        (prior.state, prior.owned, prior.verdict),
        (State::NotExecuted, false, Some(Verdict::NotSent))
    );
}

#[tokio::test]
async fn a_lease_is_held_once_and_giving_it_up_wakes_followers() {
    let journal = Journal::in_memory();
    let lease = accept(&journal, "a").await.spend();
    let id = lease.execution();
    assert!(journal.take_over(id).is_none());
    let mut follower = journal.watch(id).unwrap();
    drop(lease);
    follower.wait_for(|standing| !standing.owned).await.unwrap();
    let lease = journal.take_over(id).unwrap();
    assert!(journal.take_over(id).is_none());
    drop(lease);
}

#[tokio::test]
async fn every_further_dispatch_has_a_permit_and_the_next_number() {
    let journal = Journal::in_memory();
    let lease = accept(&journal, "a").await.spend();
    let id = lease.execution();
    lease
        .append(Event::Settled {
            n: 1,
            evidence: Evidence::RefusedByStatus { status: 401 },
        })
        .await
        .unwrap();
    assert_eq!(journal.open_record(id).unwrap().state, State::NotExecuted);
    let dispatch = lease.dispatch(Permit::Rejected, &request(2)).await.unwrap();
    assert_eq!(dispatch.n(), 2);
    let lease = dispatch.spend();
    let refused = lease.first_dispatch(&request(3)).await.err().unwrap();
    assert!(
        matches!(refused, JournalError::Misplaced { .. }),
        "{refused}"
    );
}

#[tokio::test]
async fn an_unknown_stays_unknown_when_a_later_dispatch_was_not_sent() {
    let journal = Journal::in_memory();
    let lease = accept(&journal, "a").await.spend();
    let id = lease.execution();
    lease
        .append(Event::Settled {
            n: 1,
            evidence: Evidence::BodyCutShort,
        })
        .await
        .unwrap();
    let lease = lease
        .dispatch(Permit::SameKey, &request(2))
        .await
        .unwrap()
        .spend();
    lease
        .append(Event::Settled {
            n: 2,
            evidence: Evidence::BodyNeverPolled,
        })
        .await
        .unwrap();
    let prior = journal
        .find(&action(&journal, "a").fingerprint)
        .executions
        .pop()
        .unwrap();
    assert_eq!(
        (prior.state, prior.verdict),
        (State::OutcomeUnknown, Some(Verdict::Unknown))
    );
    assert_eq!(journal.open_record(id).unwrap().dispatches.len(), 2);
}

#[tokio::test]
async fn what_changed_since_it_was_looked_at_is_not_accepted() {
    let journal = Journal::in_memory();
    let new = action(&journal, "a");
    let seen = journal.find(&new.fingerprint);
    let lease = accept(&journal, "a").await.spend();
    let refused = journal
        .accept(new.clone(), &seen, &request(2))
        .await
        .err()
        .unwrap();
    assert!(matches!(refused, AcceptError::Conflict));
    let seen = journal.find(&new.fingerprint);
    lease.keep(&answer("{}")).await.unwrap();
    let refused = journal
        .accept(new.clone(), &seen, &request(2))
        .await
        .err()
        .unwrap();
    assert!(matches!(refused, AcceptError::Conflict));
    let seen = journal.find(&new.fingerprint);
    assert!(journal.accept(new, &seen, &request(2)).await.is_ok());
}

#[tokio::test]
async fn an_answer_is_kept_once() {
    let journal = Journal::in_memory();
    let lease = accept(&journal, "a").await.spend();
    lease.keep(&answer("first")).await.unwrap();
    assert!(matches!(
        lease.keep(&answer("second")).await,
        Err(JournalError::Impossible { .. })
    ));
    assert_eq!(
        &journal
            .kept(lease.execution())
            .await
            .unwrap()
            .unwrap()
            .message[..],
        b"first"
    );
}
