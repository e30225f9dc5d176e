//! Never twice: whatever happens to the answer, and whoever repeats the call, the action is dispatched once.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use reattach::identity::ExecutionId;
use serde_json::{Value, json};
use support::{
    Agent, BoxErrorText, Server, answer_in, call, chunks, event, events, full, is_unknown,
    json_answer, priming, respond, result, text_of,
};
use tokio::sync::Semaphore;

fn pay() -> Value {
    json!({ "amount": 1, "to": "alice" })
}

/// Calls, and calls again with a new id as agents do; nothing may go out twice, and both must be told the truth.
async fn lost_and_repeated(server: Server, evidence: &str) {
    let agent = Agent::new(server).await;
    for id in [1, 2, 3] {
        let answer = agent.call(id, "pay", pay()).await.unwrap();
        assert!(is_unknown(&answer), "{answer}");
        assert_eq!(answer["id"], id);
        assert!(text_of(&answer).contains("was not sent again"));
        assert!(
            text_of(&answer).contains(evidence),
            "the first reason stays the reason"
        );
    }
    assert_eq!(agent.server.posts(), 1);
    assert_eq!(agent.states().await, ["outcome_unknown"]);
    let reader = agent.layer.journal().reader().unwrap();
    let record = &reader.executions(&Default::default()).unwrap()[0];
    let seen = serde_json::to_value(record.dispatches[0].evidence)
        .unwrap()
        .to_string()
        + record.reason.as_deref().unwrap_or("");
    assert!(seen.contains(evidence), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_fails_after_the_body_was_taken() {
    lost_and_repeated(
        Server::new(|_| async { Err("connection closed before message completed".into()) }),
        "handed over",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_json_body_that_is_cut() {
    let server = Server::new(|seen| async move {
        let whole = result(&seen.id(), "paid").to_string();
        Ok(respond(
            200,
            "application/json",
            chunks(vec![whole[..20].to_owned().into()], true),
        ))
    });
    lost_and_repeated(server, "before the result was complete").await;
}

#[tokio::test(start_paused = true)]
async fn statuses_that_say_nothing_about_the_tool() {
    for status in [
        202, 200, 204, 400, 404, 408, 409, 422, 429, 500, 502, 503, 504, 524, 302, 307,
    ] {
        let server = Server::new(move |seen| async move {
            // 404 without a session says nothing about the session
            let html = if status >= 400 {
                "<html>Gateway</html>"
            } else {
                ""
            };
            let _ = seen;
            Ok(respond(
                status,
                if html.is_empty() { "" } else { "text/html" },
                full(html),
            ))
        });
        let mut agent = Agent::new(server).await;
        agent.session = None;
        for id in [1, 2] {
            let answer = agent.call(id, "pay", pay()).await.unwrap();
            assert!(is_unknown(&answer), "{status}: {answer}");
            assert!(
                !answer.to_string().contains("Gateway"),
                "no text of the server reaches the model"
            );
        }
        assert_eq!(agent.server.posts(), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_without_an_id_settles_promptly() {
    for fails in [false, true] {
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": 1 } });
        let server = Server::new(move |_| {
            let events = events(&[format!("data: {progress}\n\n")], fails);
            async { Ok(events) }
        });
        let agent = Agent::new(server).await;
        let started = tokio::time::Instant::now();
        assert!(is_unknown(&agent.call(1, "pay", pay()).await.unwrap()));
        assert!(
            started.elapsed() < Duration::from_secs(1),
            "no cursor, no waiting"
        );
        assert!(agent.server.gets().is_empty(), "no cursor, no GET");
        assert!(is_unknown(&agent.call(2, "pay", pay()).await.unwrap()));
        assert_eq!(agent.server.posts(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_lost_again_on_each_resume() {
    let server = Server::new(|_| async { Ok(events(&[priming("0")], true)) });
    let agent = Agent::new(server).await;
    assert!(is_unknown(&agent.call(1, "pay", pay()).await.unwrap()));
    assert_eq!(agent.server.posts(), 1);
    let gets = agent.server.gets();
    assert_eq!(gets.len(), 32, "bounded by count");
    assert!(
        gets.iter().all(|get| get.headers["last-event-id"] == "0"),
        "the cursor survives"
    );
    assert!(
        gets.iter()
            .all(|get| get.headers["mcp-session-id"] == "session-1")
    );
    assert!(
        gets.iter()
            .all(|get| get.headers["authorization"] == "Bearer planted-token")
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_without_resuming_is_asked_once() {
    for (status, kind) in [
        (405, ""),
        (404, ""),
        (200, "text/html"),
        (400, "application/json"),
    ] {
        let server = Server::new(move |seen| async move {
            Ok(if seen.method == "GET" {
                respond(status, kind, full("<html>"))
            } else {
                events(&[priming("0")], false)
            })
        });
        let agent = Agent::new(server).await;
        assert!(is_unknown(&agent.call(1, "pay", pay()).await.unwrap()));
        assert_eq!(
            (agent.server.posts(), agent.server.gets().len()),
            (1, 1),
            "{status}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_stateless_revision_is_never_resumed_and_never_re_issued() {
    let server = Server::new(|_| async { Ok(events(&[priming("0")], true)) });
    let mut agent = Agent::new(server).await;
    (agent.revision, agent.session) = ("2026-07-28", None);
    for id in [1, 2] {
        let answer = agent.call(id, "pay", pay()).await.unwrap();
        assert!(is_unknown(&answer));
        assert_eq!(answer["result"]["resultType"], "complete");
    }
    assert_eq!((agent.server.posts(), agent.server.gets().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn thirty_two_equal_calls_at_once_are_one_execution_and_each_has_its_answer() {
    let gate = Arc::new(Semaphore::new(0));
    let server = Server::new({
        let gate = Arc::clone(&gate);
        move |seen| {
            let gate = Arc::clone(&gate);
            async move {
                let _passed = gate.acquire().await.unwrap();
                Ok(json_answer(&result(&seen.id(), "paid")))
            }
        }
    });
    let agent = Agent::new(server).await;
    let callers: Vec<_> = (0..32)
        .map(|id| {
            let agent = agent.clone();
            tokio::spawn(async move { agent.call(id, "pay", pay()).await.unwrap() })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await; // paused time: all of them have come as far as they can
    gate.add_permits(1);
    for (id, caller) in callers.into_iter().enumerate() {
        let answer = caller.await.unwrap();
        assert_eq!(
            (answer["id"].as_u64(), text_of(&answer)),
            (Some(id as u64), "paid")
        );
    }
    assert_eq!(agent.server.posts(), 1);
    assert_eq!(agent.states().await, ["completed_result_delivered"]);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_whose_attaching_takes_too_long_is_told_that_it_still_runs() {
    let agent = Agent::new(Server::new(|_| std::future::pending())).await;
    let first = tokio::spawn({
        let agent = agent.clone();
        async move {
            agent
                .call(1, "pay", pay())
                .await
                .map_err(BoxErrorText::from)
        }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let answer = agent.call(2, "pay", pay()).await.unwrap();
    assert!(text_of(&answer).contains("STILL RUNNING"), "{answer}");
    assert!(!is_unknown(&answer), "still running is not unknown");
    assert_eq!(
        answer["result"]["_meta"]["dev.reattach/execution"]["options"]["wait"],
        "available"
    );
    assert_eq!(agent.server.posts(), 1);
    first.abort();
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_times_out_and_calls_again_attaches() {
    let server = Server::new(|seen| async move {
        tokio::time::sleep(Duration::from_secs(90)).await;
        Ok(json_answer(&result(&seen.id(), "scanned")))
    });
    let agent = Agent::new(server).await;
    let impatient =
        tokio::time::timeout(Duration::from_secs(60), agent.call(1, "scan", json!({}))).await;
    assert!(impatient.is_err());
    let answer = agent.call(2, "scan", json!({})).await.unwrap();
    assert_eq!((&answer["id"], text_of(&answer)), (&json!(2), "scanned"));
    assert_eq!(agent.server.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_tool_are_received_results_and_are_never_repeated() {
    let errors = [
        json!({ "error": { "code": -32602, "message": "invalid params" } }),
        json!({ "error": { "code": -32603, "message": "boom" } }),
        json!({ "result": { "content": [], "isError": true } }),
    ];
    for error in errors {
        for status in [200, 400, 500] {
            let body = error.clone();
            let server = Server::new(move |seen| {
                let mut body = body.clone();
                body["jsonrpc"] = "2.0".into();
                body["id"] = seen.id();
                async move { Ok(respond(status, "application/json", full(body.to_string()))) }
            });
            let agent = Agent::new(server).await;
            let (got, text) = agent.post(&call(7, "pay", pay())).await.unwrap();
            assert_eq!(got.as_u16(), status);
            let answer = answer_in(&text).unwrap();
            assert_eq!(answer.get("error"), error.get("error"));
            assert_eq!(agent.server.posts(), 1);
            assert_eq!(
                agent.states().await,
                ["completed_result_delivered"],
                "{status} {error}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refused_calls_go_out_again_under_the_same_execution_when_the_caller_repeats_them() {
    for status in [401, 403, 404, 405, 421] {
        let server = Server::new(move |seen| async move {
            Ok(if seen.n == 0 {
                respond(status, "", full(""))
            } else {
                json_answer(&result(&seen.id(), "paid"))
            })
        });
        let agent = Agent::new(server).await;
        let (refused, _) = agent.post(&call(1, "pay", pay())).await.unwrap();
        assert_eq!(
            refused.as_u16(),
            status,
            "the refusal reaches the SDK as it is"
        );
        let answer = agent.call(2, "pay", pay()).await.unwrap();
        assert_eq!(text_of(&answer), "paid");
        let seen = agent.server.seen();
        assert_eq!(
            seen[0].execution(),
            seen[1].execution(),
            "one execution, two dispatches"
        );
        assert!(seen[0].execution().parse::<ExecutionId>().is_ok());
        let reader = agent.layer.journal().reader().unwrap();
        let record = &reader.executions(&Default::default()).unwrap()[0];
        assert_eq!(record.dispatches.len(), 2);
        assert_eq!(
            record.dispatches[1].permit.map(|permit| permit.name()),
            Some("rejected")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for_and_only_where_the_server_said_when() {
    let server = Server::new(|seen| async move {
        let mut busy = respond(429, "", full(""));
        busy.headers_mut()
            .insert("retry-after", "3".parse().unwrap());
        Ok(if seen.n == 0 {
            busy
        } else {
            json_answer(&result(&seen.id(), "paid"))
        })
    });
    let agent = Agent::new(server).await;
    let started = tokio::time::Instant::now();
    assert_eq!(text_of(&agent.call(1, "pay", pay()).await.unwrap()), "paid");
    assert!(started.elapsed() >= Duration::from_secs(3));
    assert_eq!(agent.states().await, ["completed_result_delivered"]);
}

#[tokio::test(start_paused = true)]
async fn a_delivered_call_that_is_made_again_is_a_new_action() {
    let server = Server::new(|seen| async move { Ok(json_answer(&result(&seen.id(), "paid"))) });
    let agent = Agent::new(server).await;
    for id in [1, 2] {
        assert_eq!(
            text_of(&agent.call(id, "pay", pay()).await.unwrap()),
            "paid"
        );
    }
    let seen = agent.server.seen();
    assert_ne!(seen[0].execution(), seen[1].execution());
}

#[tokio::test(start_paused = true)]
async fn an_answer_for_another_request_is_never_taken_for_this_ones() {
    let server = Server::new(|seen| async move {
        let foreign = event("0", &result(&json!("7"), "somebody else's"));
        let own = event("0", &result(&json!(7), "mine"));
        let _ = seen;
        Ok(events(&[priming("0"), foreign, own.clone(), own], false))
    });
    let agent = Agent::new(server).await;
    let (_, text) = agent.post(&call(7, "pay", pay())).await.unwrap();
    let messages = support::messages_in(&text);
    assert_eq!(
        messages.len(),
        1,
        "one answer, and not the one for \"7\": {text}"
    );
    assert_eq!(text_of(&messages[0]), "mine");
}

#[tokio::test(start_paused = true)]
async fn bodies_that_two_readers_could_read_differently_are_refused_and_not_sent() {
    let agent = Agent::new(Server::new(|_| async { Ok(respond(200, "", full(""))) })).await;
    let deep = format!("{}1{}", "[".repeat(80), "]".repeat(80));
    let deep: Value = serde_json::from_str(&deep).unwrap();
    let answer = agent.call(1, "pay", json!({ "deep": deep })).await.unwrap();
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("not sent"),
        "{answer}"
    );
    let batch = json!([call(1, "pay", pay()), call(2, "look", json!({}))]);
    let (_, text) = agent.post(&batch).await.unwrap();
    assert!(text.contains("not sent"), "{text}");
    assert!(agent.server.seen().is_empty());
}
