//! Whatever happens to executions, in whatever order: the disk tells it as memory does.
#![allow(clippy::unwrap_used, reason = "a test")]

mod journal;

use std::sync::Arc;

use journal::{action, answer, open_in, request};
use proptest::prelude::*;
use reattach::execution::{Evidence, Permit, Priors};
use reattach::identity::{EventId, ExecutionId};
use reattach::journal::store::MemoryStore;
use reattach::journal::{Dispatch, Event, Journal, Lease, StreamCursor};

/// What somebody does to one of the executions. Most sequences hold steps that no execution takes; those are refused.
#[derive(Clone, Debug)]
enum Op {
    Accept,
    Dispatch(Permit),
    Settle(Evidence),
    Keep { asks: bool },
    Unknown,
    Stream,
    Resumed,
    Deliver,
    Reattach,
    DropUnspent,
    GiveUpAndTakeOver,
}

fn op() -> impl Strategy<Value = Op> {
    let permit = prop::sample::select(vec![
        Permit::NotSent,
        Permit::Rejected,
        Permit::SameKey,
        Permit::InputContinuation,
    ]);
    let evidence = prop::sample::select(vec![
        Evidence::BodyNeverPolled,
        Evidence::RefusedByStatus { status: 401 },
        Evidence::BodyCutShort,
    ]);
    prop_oneof![
        Just(Op::Accept),
        permit.prop_map(Op::Dispatch),
        evidence.prop_map(Op::Settle),
        any::<bool>().prop_map(|asks| Op::Keep { asks }),
        Just(Op::Unknown),
        Just(Op::Stream),
        Just(Op::Resumed),
        Just(Op::Deliver),
        Just(Op::Reattach),
        Just(Op::DropUnspent),
        Just(Op::GiveUpAndTakeOver),
    ]
}

struct Held {
    id: ExecutionId,
    n: u32,
    lease: Option<Lease>,
}

async fn act(journal: &Journal, held: &mut Vec<Held>, at: usize, op: Op) {
    if let (Op::Accept, _) | (_, true) = (&op, held.is_empty()) {
        let what = format!("{}", held.len());
        let dispatch = journal
            .accept(action(journal, &what), &Priors::default(), &request(1))
            .await
            .unwrap();
        held.push(Held {
            id: dispatch.execution(),
            n: 1,
            lease: Some(dispatch.spend()),
        });
        return;
    }
    let at = at % held.len();
    let slot = &mut held[at];
    let Some(lease) = slot.lease.take().or_else(|| journal.take_over(slot.id)) else {
        return;
    };
    let n = slot.n;
    let event = match op {
        Op::Accept => return,
        Op::Dispatch(permit) => {
            let dispatched = lease.dispatch(permit, &request(2)).await;
            if let Ok(dispatch) = dispatched {
                slot.n = dispatch.n();
                slot.lease = Some(dispatch.spend());
            }
            return;
        }
        Op::DropUnspent => {
            let dispatched = lease.dispatch(Permit::NotSent, &request(3)).await;
            slot.n = dispatched.as_ref().map_or(n, Dispatch::n);
            drop(dispatched);
            return;
        }
        Op::GiveUpAndTakeOver => return,
        Op::Keep { asks } => {
            let mut answer = answer("{}");
            answer.asks_for_input = asks;
            let _refused_or_kept = lease.keep(&answer).await;
            slot.lease = Some(lease);
            return;
        }
        Op::Stream => {
            let event = EventId::new("0/0").unwrap();
            lease.stream_opened(
                n,
                &StreamCursor {
                    session: None,
                    event,
                    revision: None,
                },
            );
            slot.lease = Some(lease);
            return;
        }
        Op::Settle(evidence) => Event::Settled { n, evidence },
        Op::Unknown => Event::OutcomeUnknown {
            evidence: Evidence::StreamLost,
        },
        Op::Resumed => Event::StreamResumed { n, times: 1 },
        Op::Deliver => Event::Delivered {
            request_id: request(4).request().clone(),
        },
        Op::Reattach => Event::Reattached {
            request_id: request(5).request().clone(),
            run_id: action(journal, "").run_id,
        },
    };
    let _refused_or_appended = lease.append(event).await;
    slot.lease = Some(lease);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_disk_tells_what_memory_knows(ops in prop::collection::vec((any::<usize>(), op()), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Arc::new(MemoryStore::default());
            let journal = open_in(store.clone()).await;
            let mut held = Vec::new();
            for (at, op) in ops {
                act(&journal, &mut held, at, op).await;
            }
            journal.flush().await.unwrap();
            let ids: Vec<_> = held.iter().map(|held| held.id).collect();
            let known: Vec<_> = ids.iter().map(|id| journal.open_record(*id).unwrap()).collect();
            let told = journal.reader().unwrap().executions(&Default::default()).unwrap();
            assert_eq!(told, known);
            held.clear();
            journal.close().await.unwrap();
            drop(journal);
            let journal = open_in(store).await;
            let replayed: Vec<_> = ids.iter().map(|id| journal.open_record(*id).unwrap()).collect();
            assert_eq!(replayed, known);
        });
    }
}
