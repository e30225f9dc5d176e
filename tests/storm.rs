//! A seeded storm: many callers, few actions, a server that does everything a server can do wrong, callers that leave. At the
//! end the server's ledger, the journal and what callers were told have to agree. 20 storms; `REATTACH_STORMS=500` for more,
//! `REATTACH_SEED=n` for one.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reattach::execution::{State, Verdict};
use serde_json::{Value, json};
use support::{
    Agent, Seen, Server, chunks, event, events, full, is_unknown, json_answer, priming, respond,
    result, text_of,
};

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What the server did: requests per execution, and effects per execution.
#[derive(Default)]
struct Ledger {
    posts: HashMap<String, usize>,
    effects: HashMap<String, usize>,
    /// Streams by their first event id: the answer that is still to come.
    streams: HashMap<String, (Value, u64)>,
}

type Shared = Arc<Mutex<(Ledger, Dice)>>;

async fn serve(
    seen: Seen,
    shared: Shared,
) -> Result<http::Response<support::Body>, reattach::layer::BoxError> {
    if seen.method == "GET" {
        let cursor = seen.headers["last-event-id"].to_str().unwrap().to_owned();
        let (deed, answer) = {
            let (ledger, dice) = &mut *shared.lock().unwrap();
            let (answer, left) = ledger.streams.get_mut(&cursor).unwrap();
            *left = left.saturating_sub(1);
            let answer = (*left == 0).then(|| answer.clone());
            (dice.below(6), answer)
        };
        return Ok(match (deed, answer) {
            (0, _) => return Err("reset".into()),
            (1, _) => respond(503, "text/html", full("<html>")),
            (_, Some(answer)) => events(
                &[
                    priming(&cursor),
                    event(&format!("{cursor}-answer"), &answer),
                ],
                deed == 2,
            ),
            (_, None) => events(&[priming(&cursor)], deed == 3),
        });
    }
    let (deed, pause) = {
        let (_, dice) = &mut *shared.lock().unwrap();
        (dice.below(12), dice.below(400))
    };
    tokio::time::sleep(Duration::from_millis(pause)).await;
    let answer = result(&seen.id(), &format!("done by {}", seen.execution()));
    let (ledger, dice) = &mut *shared.lock().unwrap();
    *ledger.posts.entry(seen.execution()).or_default() += 1;
    // Refused before anything runs; all other deeds act.
    match deed {
        0 => return Ok(respond(401, "", full(""))),
        1 => return Ok(respond(404, "", full(""))),
        2 => {
            let mut busy = respond(429, "", full(""));
            busy.headers_mut()
                .insert("retry-after", "1".parse().unwrap());
            return Ok(busy);
        }
        _ => {}
    }
    let acts = deed != 3 && deed != 4;
    if acts {
        *ledger.effects.entry(seen.execution()).or_default() += 1;
    }
    Ok(match deed {
        3 | 5 => return Err("connection reset".into()),
        4 | 6 => respond(502, "text/html", full("<html>bad gateway</html>")),
        7 => respond(
            200,
            "application/json",
            chunks(
                vec![answer.to_string()[..30].to_owned().into()],
                dice.below(2) == 0,
            ),
        ),
        8 | 9 => {
            let cursor = format!("s{}", ledger.streams.len());
            ledger
                .streams
                .insert(cursor.clone(), (answer, 1 + dice.below(4)));
            events(&[priming(&cursor)], dice.below(2) == 0)
        }
        _ => json_answer(&answer),
    })
}

async fn storm(seed: u64) {
    let shared: Shared = Arc::new(Mutex::new((Ledger::default(), Dice(seed))));
    let server = Server::new({
        let shared = Arc::clone(&shared);
        move |seen| serve(seen, Arc::clone(&shared))
    });
    let agent = Agent::new(server).await;
    let mut dice = Dice(!seed);
    let callers: Vec<_> = (0..200_u64)
        .map(|id| {
            let agent = agent.clone();
            let (action, start, patience) =
                (dice.below(24), dice.below(3000), 50 + dice.below(3000));
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(start)).await;
                let call = agent.call(id, "pay", json!({ "action": action }));
                let told = tokio::time::timeout(Duration::from_millis(patience), call).await;
                (
                    id,
                    told.ok()
                        .map(|told| told.map_err(|error| error.to_string())),
                )
            })
        })
        .collect();
    let mut told = Vec::new();
    for caller in callers {
        told.push(
            tokio::time::timeout(Duration::from_secs(3600), caller)
                .await
                .expect("nobody waits for ever")
                .unwrap(),
        );
    }
    assert_eq!(
        agent
            .layer
            .shutdown(Duration::from_secs(3600))
            .await
            .unwrap(),
        0,
        "every detached call ends"
    );

    let (ledger, _) = &*shared.lock().unwrap();
    let reader = agent.layer.journal().reader().unwrap();
    let records = reader.executions(&Default::default()).unwrap();
    let by_id: HashMap<_, _> = records
        .iter()
        .map(|record| (record.execution_id.to_string(), record))
        .collect();
    for (execution, posts) in &ledger.posts {
        let record = by_id[execution];
        assert!(
            *posts <= record.dispatches.len(),
            "{execution}: {posts} requests, {} dispatches",
            record.dispatches.len()
        );
        assert!(
            record.dispatches[1..]
                .iter()
                .all(|dispatch| dispatch.permit.is_some()),
            "{record:?}"
        );
    }
    for (execution, effects) in &ledger.effects {
        assert_eq!(*effects, 1, "seed {seed}: {:?}", by_id[execution]);
        assert_ne!(
            by_id[execution].state,
            State::NotExecuted,
            "seed {seed}: it acted: {:?}",
            by_id[execution]
        );
    }
    for record in &records {
        if record.state.is_completed() {
            assert_eq!(
                ledger.effects.get(&record.execution_id.to_string()),
                Some(&1),
                "{record:?}"
            );
        }
        // All but the newest dispatch of an execution were proved to have done nothing.
        let earlier = &record.dispatches[..record.dispatches.len() - 1];
        let proved = |verdict| matches!(verdict, Some(Verdict::NotSent | Verdict::Rejected));
        assert!(
            earlier
                .iter()
                .all(|dispatch| proved(dispatch.evidence.map(|evidence| evidence.verdict()))),
            "{record:?}"
        );
    }
    for (id, told) in told {
        let Some(Ok(answer)) = told else { continue }; // it left, or saw the server's refusal
        assert_eq!(answer["id"], id, "seed {seed}");
        if !is_unknown(&answer) && text_of(&answer).starts_with("done by ") {
            assert_eq!(
                ledger.effects.get(&text_of(&answer)["done by ".len()..]),
                Some(&1),
                "seed {seed}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ledger_journal_and_callers_agree_after_a_storm() {
    let seeds = match std::env::var("REATTACH_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => {
            let storms =
                std::env::var("REATTACH_STORMS").map_or(20, |storms| storms.parse().unwrap());
            (1..=storms).collect()
        }
    };
    for seed in seeds {
        println!("REATTACH_SEED={seed}");
        storm(seed).await;
    }
}
