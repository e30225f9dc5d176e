//! A generic retry layer above this one, and an agent that repeats on top of both: many attempts, one effect.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use reattach::layer::{BoxError, LayerError, ResponseBody};
use serde_json::{Value, json};
use support::{
    Agent, Server, answer_in, call, event, events, is_unknown, json_answer, priming, result,
    text_of,
};
use tower::retry::{Policy, RetryLayer};
use tower::{Layer, ServiceExt};

/// Repeats whatever failed, and whatever has a status of 500 or more: what people stack without thinking of side effects.
#[derive(Clone)]
struct Thrice(usize);

impl<R, E> Policy<Request<Full<Bytes>>, Response<R>, E> for Thrice {
    type Future = std::future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request<Full<Bytes>>,
        result: &mut Result<Response<R>, E>,
    ) -> Option<Self::Future> {
        let failed = result
            .as_ref()
            .map_or(true, |response| response.status().is_server_error());
        if !failed || self.0 == 0 {
            return None;
        }
        self.0 -= 1;
        Some(std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        Some(request.clone())
    }
}

fn request(id: i64) -> Request<Full<Bytes>> {
    Request::post("http://127.0.0.1:1/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Full::new(Bytes::from(
            call(id, "pay", json!({ "amount": 1 })).to_string(),
        )))
        .unwrap()
}

async fn through_retries(agent: &Agent, id: i64) -> Result<Response<ResponseBody>, LayerError> {
    RetryLayer::new(Thrice(3))
        .layer(agent.layer.layer(agent.server.clone()))
        .oneshot(request(id))
        .await
}

async fn answer(response: Response<ResponseBody>) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    answer_in(std::str::from_utf8(&body).unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn four_attempts_and_the_models_own_repeats_are_one_effect() {
    let effects = Arc::new(AtomicUsize::new(0));
    let server = Server::new({
        let effects = Arc::clone(&effects);
        move |_| {
            effects.fetch_add(1, Ordering::SeqCst); // the tool runs, and its answer is lost
            async { Err::<_, BoxError>("connection reset by peer".into()) }
        }
    });
    let agent = Agent::new(server).await;
    for id in [10, 11, 12] {
        let answer = answer(through_retries(&agent, id).await.unwrap()).await;
        assert!(
            is_unknown(&answer) && text_of(&answer).contains("Do not repeat"),
            "{answer}"
        );
        assert_eq!(answer["id"], id);
    }
    assert_eq!(effects.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn without_the_layer_the_same_stack_acts_four_times() {
    // What the promise is worth: the same retries, the same server, no layer.
    let effects = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&effects);
    let server = tower::service_fn(move |_: Request<Full<Bytes>>| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err::<Response<Full<Bytes>>, BoxError>("connection reset by peer".into()) }
    });
    RetryLayer::new(Thrice(3))
        .layer(server)
        .oneshot(request(1))
        .await
        .unwrap_err();
    assert_eq!(effects.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn resuming_succeeds_while_repeating_is_refused() {
    // Two decisions by two code paths: the stream comes back, the call does not go out again.
    let server = Server::new(|seen| async move {
        Ok(match seen.method.as_str() {
            "POST" => events(&[priming("0")], true),
            _ if seen.n < 3 => events(&[priming("0")], true),
            _ => events(&[event("1", &result(&json!(1), "paid"))], false),
        })
    });
    let agent = Agent::new(server).await;
    let answer = answer(through_retries(&agent, 1).await.unwrap()).await;
    assert_eq!(text_of(&answer), "paid");
    assert_eq!((agent.server.posts(), agent.server.gets().len()), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn every_call_dispatched_twice_a_moment_apart_is_one_execution() {
    let server = Server::new(|seen| async move {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        Ok(json_answer(&result(&seen.id(), "paid")))
    });
    let agent = Agent::new(server).await;
    let second = async {
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
        through_retries(&agent, 2).await
    };
    let (first, second) = tokio::join!(through_retries(&agent, 1), second);
    let (first, second) = (answer(first.unwrap()).await, answer(second.unwrap()).await);
    assert_eq!((&first["id"], &second["id"]), (&json!(1), &json!(2)));
    assert_eq!((text_of(&first), text_of(&second)), ("paid", "paid"));
    assert_eq!(agent.server.posts(), 1);
}
