//! Write before send: what can't be made durable is not sent, and the caller is told so. Reads still pass.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use std::sync::Arc;

use reattach::journal::store::MemoryStore;
use reattach::journal::store::faulty::{Fault, FaultyStore};
use reattach::journal::{Journal, JournalOptions};
use serde_json::json;
use support::{Agent, Server, call, is_unknown, json_answer, result, text_of};

fn server() -> Server {
    Server::new(|seen| async move { Ok(json_answer(&result(&seen.id(), "done"))) })
}

async fn over(store: &Arc<FaultyStore>) -> Agent {
    let options =
        JournalOptions::new("").with_key(reattach::journal::KeySource::Bytes([7; 32].into()));
    Agent::with_journal(
        server(),
        Journal::open_in(Arc::clone(store) as _, options)
            .await
            .unwrap(),
    )
    .await
}

#[tokio::test]
async fn a_journal_that_cannot_be_written_stops_side_effects_and_nothing_else() {
    for fault in [Fault::Full, Fault::Torn, Fault::Sync] {
        let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::default())));
        let agent = over(&store).await;
        store.fail_after(0, fault);
        for id in [1, 2] {
            let answer = agent.call(id, "pay", json!({})).await.unwrap();
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(message.starts_with("not sent"), "{fault:?}: {answer}");
            assert_eq!(answer["id"], id);
        }
        assert_eq!(agent.server.posts(), 0, "{fault:?}");
        assert_eq!(
            text_of(&agent.call(3, "look", json!({})).await.unwrap()),
            "done"
        );
        let (status, _) = agent
            .post(&json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/list" }))
            .await
            .unwrap();
        assert_eq!(status, 200);
    }
}

#[tokio::test]
async fn the_request_leaves_only_after_its_dispatch_is_durable() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::default())));
    let agent = over(&store).await;
    store.hold();
    let caller = tokio::spawn({
        let agent = agent.clone();
        async move {
            agent
                .call(1, "pay", json!({}))
                .await
                .map_err(support::BoxErrorText::from)
        }
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        agent.server.posts(),
        0,
        "the commit is held, so nothing has left"
    );
    store.release();
    assert_eq!(text_of(&caller.await.unwrap().unwrap()), "done");
    assert_eq!(agent.server.posts(), 1);
}

#[tokio::test]
async fn a_caller_that_leaves_while_the_dispatch_is_written_leaves_no_unknown_behind() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::default())));
    let agent = over(&store).await;
    store.hold();
    let caller = tokio::spawn({
        let agent = agent.clone();
        async move { drop(agent.send(&call(1, "pay", json!({}))).await) }
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    caller.abort();
    let _ = caller.await;
    store.release();
    agent
        .layer
        .shutdown(std::time::Duration::from_secs(10))
        .await
        .unwrap();
    // It was accepted, so it ran on detached, and its result waits.
    assert_eq!(
        text_of(&agent.call(2, "pay", json!({})).await.unwrap()),
        "done"
    );
    assert_eq!(agent.server.posts(), 1);
}

#[tokio::test]
async fn a_result_that_cannot_be_kept_is_withheld_and_reported_as_unknown() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::default())));
    let agent = over(&store).await;
    store.fail_after(1, Fault::Sync); // the dispatch is durable, the result is not
    let answer = agent.call(1, "pay", json!({})).await.unwrap();
    assert!(is_unknown(&answer), "{answer}");
    assert!(text_of(&answer).contains("could not be kept"));
    assert_eq!(agent.server.posts(), 1);
}

#[tokio::test]
async fn a_body_that_was_never_taken_is_sent_again_by_permit_and_counts_once() {
    use http::{Request, Response};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tower::{Layer, ServiceExt};

    let refused = Arc::new(AtomicUsize::new(0));
    let agent = Agent::new(server()).await;
    let inner = {
        let (server, refused) = (agent.server.clone(), Arc::clone(&refused));
        tower::service_fn(move |request: Request<reattach::layer::RequestBody>| {
            let (server, refused) = (server.clone(), Arc::clone(&refused));
            async move {
                if refused.fetch_add(1, Ordering::SeqCst) < 2 {
                    return Err::<Response<support::Body>, _>("connection refused".into());
                }
                server.oneshot(request).await
            }
        })
    };
    let request =
        Request::post("http://127.0.0.1:1/mcp").header("content-type", "application/json");
    let body = http_body_util::Full::new(bytes::Bytes::from(call(1, "pay", json!({})).to_string()));
    let response = agent
        .layer
        .layer(inner)
        .oneshot(request.body(body).unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        (refused.load(Ordering::SeqCst), agent.server.posts()),
        (3, 1)
    );
    let reader = agent.layer.journal().reader().unwrap();
    let record = &reader.executions(&Default::default()).unwrap()[0];
    let permits: Vec<_> = record
        .dispatches
        .iter()
        .map(|dispatch| dispatch.permit.map(|permit| permit.name()))
        .collect();
    assert_eq!(permits, [None, Some("not_sent"), Some("not_sent")]);
}

#[tokio::test]
async fn what_never_leaves_ends_as_not_sent_and_may_be_called_again() {
    use http::{Request, Response};
    use reattach::layer::LayerError;
    use tower::{Layer, ServiceExt};

    let agent = Agent::new(server()).await;
    let down = tower::service_fn(|_: Request<reattach::layer::RequestBody>| async {
        Err::<Response<support::Body>, reattach::layer::BoxError>("connection refused".into())
    });
    let request = || {
        let body =
            http_body_util::Full::new(bytes::Bytes::from(call(1, "pay", json!({})).to_string()));
        Request::post("http://127.0.0.1:1/mcp")
            .header("content-type", "application/json")
            .body(body)
            .unwrap()
    };
    let error = agent
        .layer
        .layer(down)
        .oneshot(request())
        .await
        .unwrap_err();
    assert!(matches!(error, LayerError::NotSent { .. }), "{error}");
    assert_eq!(agent.states().await, ["not_executed"]);
    assert_eq!(
        text_of(&agent.call(1, "pay", json!({})).await.unwrap()),
        "done"
    );
    assert_eq!(
        agent.states().await,
        ["completed_result_delivered"],
        "the same execution, by permit"
    );
}
