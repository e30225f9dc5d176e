//! What makes two calls the same action: contracts and intents, through the layer.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use reattach::contract::{
    Channel, Class, Contract, Contracts, FingerprintRules, OnOpenMatch, Pointer, Session404,
};
use reattach::identity::RunId;
use reattach::journal::Journal;
use reattach::layer::{Intent, ReattachLayer};
use serde_json::{Value, json};
use support::{Agent, Server, answer_in, call, is_unknown, json_answer, result, text_of};
use tokio::sync::Semaphore;
use tower::{Layer, ServiceExt};

/// Acts, and loses every answer.
fn losing() -> Server {
    Server::new(|_| async { Err("connection reset".into()) })
}

fn answering() -> Server {
    Server::new(|seen| async move { Ok(json_answer(&result(&seen.id(), "done"))) })
}

async fn agent(server: Server, contract: Contract) -> Agent {
    let contracts = Contracts::builder().tool("act", contract).build();
    let layer = ReattachLayer::builder(Journal::in_memory())
        .actor("process:a")
        .contracts(contracts)
        .build()
        .await
        .unwrap();
    Agent {
        layer,
        ..Agent::new(server).await
    }
}

fn pointer(text: &str) -> Pointer {
    text.parse().unwrap()
}

/// How often the server was asked when these calls are made one after the other, each losing its answer.
async fn posts(contract: Contract, calls: &[Value]) -> usize {
    let agent = agent(losing(), contract).await;
    for (id, arguments) in calls.iter().enumerate() {
        assert!(is_unknown(
            &agent.call(id, "act", arguments.clone()).await.unwrap()
        ));
    }
    agent.server.posts()
}

fn with(rules: impl FnOnce(&mut FingerprintRules)) -> Contract {
    let mut fingerprint = FingerprintRules::default();
    rules(&mut fingerprint);
    Contract::of(Class::Irreversible).with_fingerprint(fingerprint)
}

#[tokio::test(start_paused = true)]
async fn a_time_of_sending_makes_a_new_action_unless_the_contract_says_that_it_means_nothing() {
    let calls = [
        json!({ "amount": 1, "sent_at": 1 }),
        json!({ "amount": 1, "sent_at": 2 }),
    ];
    assert_eq!(posts(Contract::of(Class::Irreversible), &calls).await, 2);
    assert_eq!(
        posts(
            with(|rules| rules.ignore = vec![pointer("/sent_at")]),
            &calls
        )
        .await,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_loop_that_mints_a_fresh_key_for_each_attempt_is_caught() {
    let calls = [
        json!({ "to": "a", "idempotency_key": "k-1" }),
        json!({ "to": "a", "idempotency_key": "k-2" }),
    ];
    assert_eq!(
        posts(
            with(|rules| rules.ignore = vec![pointer("/idempotency_key")]),
            &calls
        )
        .await,
        1
    );
    let channel = Contract::of(Class::Irreversible)
        .with_idempotency(Channel::Argument("idempotency_key".into()));
    assert_eq!(
        posts(channel, &calls).await,
        1,
        "a channel is not part of the effect"
    );
}

#[tokio::test(start_paused = true)]
async fn a_default_that_one_side_fills_in_matches_the_side_that_left_it_out() {
    let rules =
        with(|rules| rules.defaults = Some([(pointer("/region"), "us-east-1".into())].into()));
    assert_eq!(
        posts(
            rules.clone(),
            &[json!({ "n": 1 }), json!({ "n": 1, "region": "us-east-1" })]
        )
        .await,
        1
    );
    assert_eq!(
        posts(
            rules,
            &[json!({ "n": 1 }), json!({ "n": 1, "region": "eu-west-1" })]
        )
        .await,
        2
    );
}

#[tokio::test(start_paused = true)]
async fn two_actors_and_one_actor_with_two_credentials_never_match() {
    let server = losing();
    let journal = Journal::in_memory();
    for (actor, credential) in [
        ("process:a", "one"),
        ("process:b", "one"),
        ("process:a", "two"),
    ] {
        let contract = Contract::of(Class::Irreversible).with_credential_ref(credential);
        let contracts = Contracts::builder().tool("act", contract).build();
        let layer = ReattachLayer::builder(journal.clone())
            .actor(actor)
            .contracts(contracts)
            .build()
            .await
            .unwrap();
        let agent = Agent {
            layer,
            ..Agent::new(server.clone()).await
        };
        agent.call(1, "act", json!({})).await.unwrap();
    }
    assert_eq!(server.posts(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_same_request_id_from_two_sessions_or_with_two_intents_is_no_reason_to_match() {
    let mut agent = agent(answering(), Contract::of(Class::Irreversible)).await;
    agent.call(0, "act", json!({ "n": 1 })).await.unwrap();
    agent.session = Some("session-2");
    assert_eq!(
        text_of(&agent.call(0, "act", json!({ "n": 2 })).await.unwrap()),
        "done"
    );
    assert_eq!(agent.server.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_scope_of_one_run_ends_with_the_run() {
    let (server, journal) = (losing(), Journal::in_memory());
    let contracts = Contracts::builder()
        .tool("act", Contract::of(Class::IdempotentWrite))
        .build();
    let first = RunId::generate(reattach::clock::Timestamp::UNIX_EPOCH);
    for (run, posts) in [
        (first, 1),
        (first, 1),
        (RunId::generate(reattach::clock::Timestamp::now()), 2),
    ] {
        let builder = ReattachLayer::builder(journal.clone())
            .actor("process:a")
            .run_id(run);
        let layer = builder.contracts(contracts.clone()).build().await.unwrap();
        let agent = Agent {
            layer,
            ..Agent::new(server.clone()).await
        };
        agent.call(1, "act", json!({})).await.unwrap();
        assert_eq!(server.posts(), posts);
    }
}

fn intending(id: i64, arguments: Value, intent: &str) -> Value {
    let mut message = call(id, "act", arguments);
    message["params"]["_meta"] = json!({ Intent::META: intent });
    message
}

#[tokio::test(start_paused = true)]
async fn two_deliberate_equal_calls_at_once_both_run_and_without_intents_the_second_attaches() {
    for (intents, effects) in [([Some("first"), Some("second")], 2), ([None, None], 1)] {
        let gate = Arc::new(Semaphore::new(0));
        let server = Server::new({
            let gate = Arc::clone(&gate);
            move |seen| {
                let gate = Arc::clone(&gate);
                async move {
                    let _passed = gate.acquire().await.unwrap();
                    Ok(json_answer(&result(&seen.id(), "done")))
                }
            }
        });
        let agent = agent(server, Contract::of(Class::Irreversible)).await;
        let callers: Vec<_> = intents
            .into_iter()
            .enumerate()
            .map(|(id, intent)| {
                let id = i64::try_from(id).unwrap();
                let message = match intent {
                    Some(intent) => intending(id, json!({}), intent),
                    None => call(id, "act", json!({})),
                };
                let agent = agent.clone();
                tokio::spawn(async move { agent.post(&message).await.unwrap().1 })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        gate.add_permits(2);
        for (id, caller) in callers.into_iter().enumerate() {
            let answer = answer_in(&caller.await.unwrap()).unwrap();
            assert_eq!(
                (answer["id"].as_u64(), text_of(&answer)),
                (Some(id as u64), "done")
            );
        }
        assert_eq!(agent.server.posts(), effects);
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_intent_is_one_execution_for_good_and_another_action_under_it_is_refused() {
    let agent = agent(answering(), Contract::of(Class::Irreversible)).await;
    for id in [1, 2] {
        let (_, text) = agent
            .post(&intending(id, json!({ "n": 1 }), "invoice 7"))
            .await
            .unwrap();
        assert_eq!(text_of(&answer_in(&text).unwrap()), "done");
    }
    assert_eq!(
        agent.server.posts(),
        1,
        "also after the first was delivered"
    );
    let (_, text) = agent
        .post(&intending(3, json!({ "n": 2 }), "invoice 7"))
        .await
        .unwrap();
    let refused = answer_in(&text).unwrap();
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("used for another action"),
        "{refused}"
    );
    assert_eq!(agent.server.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_intent_can_be_a_request_extension() {
    let agent = agent(answering(), Contract::of(Class::Irreversible)).await;
    for _ in 0..2 {
        let body = Full::new(Bytes::from(call(1, "act", json!({})).to_string()));
        let mut request = http::Request::post("http://127.0.0.1:1/mcp")
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        request.extensions_mut().insert(Intent::new("once"));
        let response = agent
            .layer
            .layer(agent.server.clone())
            .oneshot(request)
            .await
            .unwrap();
        response.into_body().collect().await.unwrap();
    }
    assert_eq!(agent.server.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_contracts_channel_is_filled_on_every_dispatch_with_the_same_value() {
    type At = fn(&support::Seen) -> Value;
    let channels: [(Channel, At); 3] = [
        (
            Channel::Header("idempotency-key".parse().unwrap()),
            |seen| seen.headers["idempotency-key"].to_str().unwrap().into(),
        ),
        (Channel::Argument("key".into()), |seen| {
            seen.body["params"]["arguments"]["key"].clone()
        }),
        (Channel::Meta("example/key".into()), |seen| {
            seen.body["params"]["_meta"]["example/key"].clone()
        }),
    ];
    for (channel, at) in channels {
        let server = Server::new(|seen| async move {
            Ok(if seen.n == 0 {
                support::respond(401, "", support::full(""))
            } else {
                json_answer(&result(&seen.id(), "done"))
            })
        });
        let agent = agent(
            server,
            Contract::of(Class::IdempotentWrite).with_idempotency(channel.clone()),
        )
        .await;
        for id in [1, 2, 3] {
            // An agent mints a fresh key for each attempt; where the key is no argument, nothing differs.
            let arguments = match &channel {
                Channel::Argument(name) => json!({ name: format!("minted-{id}") }),
                Channel::Header(_) | Channel::Meta(_) => json!({}),
            };
            agent.post(&call(id, "act", arguments)).await.unwrap();
        }
        let seen = agent.server.seen();
        let keys: Vec<_> = seen.iter().map(at).collect();
        assert_eq!(keys[0], seen[0].execution(), "{channel:?}");
        assert_eq!(keys[0], keys[1], "one execution, one key: {channel:?}");
        assert_ne!(
            keys[1], keys[2],
            "another execution, another key: {channel:?}"
        );
    }
    let plain = agent(answering(), Contract::of(Class::Irreversible)).await;
    plain.call(1, "act", json!({})).await.unwrap();
    assert!(
        plain.server.seen()[0]
            .headers
            .get("idempotency-key")
            .is_none(),
        "only where the contract says so"
    );
}

#[tokio::test(start_paused = true)]
async fn a_repeat_of_an_open_execution_may_be_told_so_at_once() {
    let contract = Contract::of(Class::Irreversible).with_on_open_match(OnOpenMatch::Refuse);
    let agent = agent(Server::new(|_| std::future::pending()), contract).await;
    let first = tokio::spawn({
        let agent = agent.clone();
        async move {
            agent
                .call(1, "act", json!({}))
                .await
                .map_err(support::BoxErrorText::from)
        }
    });
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let started = tokio::time::Instant::now();
    let answer = agent.call(2, "act", json!({})).await.unwrap();
    assert!(text_of(&answer).starts_with("STILL RUNNING"), "{answer}");
    assert!(
        started.elapsed() < std::time::Duration::from_secs(1),
        "at once"
    );
    assert_eq!(agent.server.posts(), 1);
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn where_a_session_can_die_while_a_tool_runs_a_404_proves_nothing() {
    for (session_404, unknown) in [(Session404::Rejected, false), (Session404::Unknown, true)] {
        let server = Server::new(|seen| async move {
            Ok(if seen.n == 0 {
                support::respond(404, "", support::full(""))
            } else {
                json_answer(&result(&seen.id(), "done"))
            })
        });
        let agent = agent(
            server,
            Contract::of(Class::Irreversible).with_session_404(session_404),
        )
        .await;
        let (status, text) = agent.post(&call(1, "act", json!({}))).await.unwrap();
        assert_eq!(status.as_u16(), if unknown { 200 } else { 404 });
        let again = agent.call(2, "act", json!({})).await.unwrap();
        assert_eq!(is_unknown(&again), unknown, "{text}");
        assert_eq!(agent.server.posts(), if unknown { 1 } else { 2 });
    }
}
