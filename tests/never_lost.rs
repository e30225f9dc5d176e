//! Never lost: where the server made a result and the protocol has a way to it, the caller or its next attempt gets it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use reattach::journal::{Journal, JournalOptions};
use serde_json::{Value, json};
use support::{
    Agent, Server, answer_in, call, event, events, full, is_unknown, json_answer, messages_in,
    priming, respond, result, text_of,
};
use tokio::sync::Notify;

fn pay() -> Value {
    json!({ "amount": 1, "to": "alice" })
}

fn progress(n: u32) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": n } })
}

/// A server that answers with a stream of `stream`, cuts it behind byte `cut` on the POST, and goes on behind
/// `Last-Event-ID` on each GET, as the specification says. Each GET but the last one is cut again after `again` events.
fn resumable(stream: Vec<(String, String)>, cut: usize, fails: bool) -> Server {
    Server::new(move |seen| {
        let whole: String = stream.iter().map(|(_, text)| text.as_str()).collect();
        let text = if seen.method == "POST" {
            whole[..cut.min(whole.len())].to_owned()
        } else {
            let last = seen.headers["last-event-id"].to_str().unwrap();
            let at = stream
                .iter()
                .position(|(id, _)| id == last)
                .expect("an id of this stream");
            stream[at + 1..]
                .iter()
                .map(|(_, text)| text.as_str())
                .collect()
        };
        let fails = fails && seen.method == "POST";
        async move { Ok(events(&[text], fails)) }
    })
}

#[tokio::test(start_paused = true)]
async fn a_stream_cut_at_any_byte_brings_every_event_once_and_in_order() {
    let mut stream = vec![("p".to_owned(), priming("p"))];
    for n in 0..40 {
        stream.push((n.to_string(), event(&n.to_string(), &progress(n))));
    }
    stream.push((
        "answer".into(),
        event("answer", &result(&json!(1), "paid \u{20ac}")),
    ));
    let whole: String = stream.iter().map(|(_, text)| text.as_str()).collect();
    let wanted = messages_in(&whole);
    let primed = priming("p").len();
    for cut in (primed..whole.len()).filter(|cut| whole.is_char_boundary(*cut)) {
        let agent = Agent::new(resumable(stream.clone(), cut, cut % 2 == 0)).await;
        let (_, text) = agent.post(&call(1, "pay", pay())).await.unwrap();
        assert_eq!(messages_in(&text), wanted, "cut at {cut}");
        assert_eq!(
            (agent.server.posts(), agent.server.gets().len()),
            (1, 1),
            "cut at {cut}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_cut_on_each_of_three_resumes_is_one_unbroken_stream() {
    let server = Server::new(|seen| async move {
        Ok(match seen.n {
            0 => events(&[priming("0"), event("1", &progress(1))], true),
            1 => events(&[], false),
            2 => events(&[priming("1")], true),
            3 => events(&[event("1", &progress(1)), event("2", &progress(2))], true),
            _ => events(&[event("3", &result(&json!(1), "paid"))], false),
        })
    });
    let agent = Agent::new(server).await;
    let (_, text) = agent.post(&call(1, "pay", pay())).await.unwrap();
    let messages = messages_in(&text);
    assert_eq!(messages.len(), 3, "{text}");
    assert_eq!(text_of(&messages[2]), "paid");
    let cursors: Vec<_> = agent
        .server
        .gets()
        .iter()
        .map(|get| get.headers["last-event-id"].clone())
        .collect();
    assert_eq!(cursors, ["1", "1", "1", "2"]);
    assert_eq!(agent.states().await, ["completed_result_delivered"]);
}

#[tokio::test(start_paused = true)]
async fn requests_without_a_side_effect_are_resumed_too() {
    let server = Server::new(|seen| async move {
        Ok(match seen.n {
            0 => events(&[priming("0")], false),
            _ => events(&[event("1", &result(&json!("x"), "listed"))], false),
        })
    });
    let agent = Agent::new(server).await;
    for message in [
        call("x", "look", json!({})),
        json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/list" }),
    ] {
        let before = agent.server.seen().len();
        let (_, text) = agent.post(&message).await.unwrap();
        if before == 0 {
            assert_eq!(text_of(&answer_in(&text).unwrap()), "listed");
        }
    }
    assert!(
        agent.states().await.is_empty(),
        "the journal is for side effects"
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_that_nobody_took_is_given_to_the_next_attempt() {
    let server = Server::new(|seen| async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok(json_answer(&result(&seen.id(), "paid")))
    });
    let agent = Agent::new(server).await;
    let left = tokio::time::timeout(Duration::from_secs(1), agent.call(1, "pay", pay())).await;
    assert!(left.is_err());
    assert_eq!(
        agent.layer.shutdown(Duration::from_secs(60)).await.unwrap(),
        0,
        "the detached call ends by itself"
    );
    assert_eq!(agent.states().await, ["completed_result_not_delivered"]);
    let answer = agent.call("two", "pay", pay()).await.unwrap();
    assert_eq!((&answer["id"], text_of(&answer)), (&json!("two"), "paid"));
    assert_eq!(agent.server.posts(), 1);
    assert_eq!(agent.states().await, ["completed_result_delivered"]);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_dropped_unread_is_not_delivered() {
    let server = Server::new(|seen| async move { Ok(json_answer(&result(&seen.id(), "paid"))) });
    let agent = Agent::new(server).await;
    drop(agent.send(&call(1, "pay", pay())).await.unwrap());
    assert_eq!(agent.states().await, ["completed_result_not_delivered"]);
    assert_eq!(text_of(&agent.call(2, "pay", pay()).await.unwrap()), "paid");
    assert_eq!(agent.server.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_is_read_on_and_resumed_without_its_caller() {
    let release = Arc::new(Notify::new());
    let server = Server::new({
        let release = Arc::clone(&release);
        move |seen| {
            let release = Arc::clone(&release);
            async move {
                if seen.n == 0 {
                    return Ok(events(&[priming("0"), event("1", &progress(1))], true));
                }
                release.notified().await;
                Ok(events(&[event("2", &result(&json!(1), "paid"))], false))
            }
        }
    });
    let agent = Agent::new(server).await;
    let mut response = agent.send(&call(1, "pay", pay())).await.unwrap();
    response.body_mut().frame().await.unwrap().unwrap();
    drop(response);
    release.notify_one();
    assert_eq!(
        agent.layer.shutdown(Duration::from_secs(60)).await.unwrap(),
        0
    );
    assert_eq!(text_of(&agent.call(2, "pay", pay()).await.unwrap()), "paid");
    assert_eq!(agent.server.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_detached_read_ends_at_its_limit() {
    let agent = Agent::new(Server::new(|_| std::future::pending())).await;
    let left = tokio::time::timeout(Duration::from_secs(1), agent.call(1, "pay", pay())).await;
    assert!(left.is_err());
    assert_eq!(
        agent
            .layer
            .shutdown(Duration::from_secs(3600))
            .await
            .unwrap(),
        0
    );
    assert_eq!(agent.states().await, ["outcome_unknown"]);
    assert!(is_unknown(&agent.call(2, "pay", pay()).await.unwrap()));
}

#[tokio::test]
async fn a_restarted_process_resumes_the_stream_that_the_first_one_lost() {
    let dir = tempfile::tempdir().unwrap();
    let open = || async {
        Journal::open(JournalOptions::new(dir.path().join("journal")))
            .await
            .unwrap()
    };
    let opened = Arc::new(Notify::new());
    let server = Server::new({
        let opened = Arc::clone(&opened);
        move |seen| {
            let opened = Arc::clone(&opened);
            async move {
                if seen.method == "POST" {
                    opened.notify_one();
                    let primed = bytes::Bytes::from(priming("stream-9/0"));
                    let stalled = tokio_stream::StreamExt::chain(
                        tokio_stream::once(Ok(http_body::Frame::data(primed))),
                        tokio_stream::pending(),
                    );
                    return Ok(respond(
                        200,
                        "text/event-stream",
                        http_body_util::StreamBody::new(stalled).boxed_unsync(),
                    ));
                }
                assert_eq!(seen.headers["last-event-id"], "stream-9/0");
                assert_eq!(
                    seen.headers["mcp-session-id"], "session-1",
                    "the session of the first process"
                );
                Ok(events(
                    &[
                        priming("stream-9/0"),
                        event("stream-9/1", &result(&json!(41), "paid")),
                    ],
                    false,
                ))
            }
        }
    });
    let first = Agent::with_journal(server.clone(), open().await).await;
    let mut response = first.send(&call(41, "pay", pay())).await.unwrap();
    response.body_mut().frame().await.unwrap().unwrap();
    opened.notified().await;
    first.layer.journal().close().await.unwrap(); // the process dies; the task that reads is cut off from the journal
    drop((response, first));

    let mut second = Agent::with_journal(server, open().await).await;
    second.session = Some("session-2");
    let answer = second.call("new-id", "pay", pay()).await.unwrap();
    assert_eq!(
        (&answer["id"], text_of(&answer)),
        (&json!("new-id"), "paid")
    );
    assert_eq!(second.server.posts(), 1, "resuming is not sending");
    assert_eq!(second.states().await, ["completed_result_delivered"]);
}

#[tokio::test]
async fn a_kept_result_outlives_the_process_and_is_delivered_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let open = || async {
        Journal::open(JournalOptions::new(dir.path().join("journal")))
            .await
            .unwrap()
    };
    let server = Server::new(|seen| async move { Ok(json_answer(&result(&seen.id(), "paid"))) });
    let first = Agent::with_journal(server.clone(), open().await).await;
    drop(first.send(&call(0, "pay", pay())).await.unwrap());
    first.layer.journal().close().await.unwrap();
    drop(first);
    let second = Agent::with_journal(server, open().await).await;
    assert_eq!(
        text_of(&second.call(0, "pay", pay()).await.unwrap()),
        "paid"
    );
    assert_eq!(second.server.posts(), 1);
}

#[tokio::test]
async fn a_session_that_is_gone_after_a_restart_ends_in_an_honest_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let open = || async {
        Journal::open(JournalOptions::new(dir.path().join("journal")))
            .await
            .unwrap()
    };
    let server = Server::new(|seen| async move {
        if seen.method == "GET" {
            return Ok(respond(404, "", full("")));
        }
        let stalled = tokio_stream::StreamExt::chain(
            tokio_stream::once(Ok(http_body::Frame::data(bytes::Bytes::from(priming("7"))))),
            tokio_stream::pending(),
        );
        Ok(respond(
            200,
            "text/event-stream",
            http_body_util::StreamBody::new(stalled).boxed_unsync(),
        ))
    });
    let first = Agent::with_journal(server.clone(), open().await).await;
    let mut response = first.send(&call(1, "pay", pay())).await.unwrap();
    response.body_mut().frame().await.unwrap().unwrap();
    first.layer.journal().close().await.unwrap();
    drop((response, first));
    let second = Agent::with_journal(server, open().await).await;
    for id in [1, 2] {
        assert!(is_unknown(&second.call(id, "pay", pay()).await.unwrap()));
    }
    assert_eq!(second.server.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_of_the_server_is_no_end_and_its_answers_continue_the_same_execution() {
    let server = Server::new(|seen| async move {
        let question = json!({ "jsonrpc": "2.0", "id": seen.id(), "result": {
            "resultType": "input_required", "requestState": "opaque", "inputRequests": {} } });
        let paid = result(&seen.id(), "paid");
        Ok(json_answer(
            if seen.body["params"].get("requestState").is_some() {
                &paid
            } else {
                &question
            },
        ))
    });
    let mut agent = Agent::new(server).await;
    (agent.revision, agent.session) = ("2026-07-28", None);
    let question = agent.call(1, "pay", pay()).await.unwrap();
    assert_eq!(question["result"]["resultType"], "input_required");
    assert_eq!(agent.states().await, ["input_required"]);
    let mut next = call(2, "pay", pay());
    next["params"]["requestState"] = "opaque".into();
    next["params"]["inputResponses"] = json!({});
    let (_, text) = agent.post(&next).await.unwrap();
    assert_eq!(text_of(&answer_in(&text).unwrap()), "paid");
    let seen = agent.server.seen();
    assert_eq!(seen[0].execution(), seen[1].execution());
    assert_eq!(agent.states().await, ["completed_result_delivered"]);
}
