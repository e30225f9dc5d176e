//! Traffic that is not a side-effecting call passes through untouched, and is not held back.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

mod support;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use reattach::layer::{BoxError, Limits, RequestBody};
use serde_json::{Value, json};
use support::{Agent, Server, call, json_answer, respond, result};
use tokio::sync::mpsc;
use tower::{Layer, ServiceExt};

#[tokio::test]
async fn a_body_that_is_no_mcp_streams_through_frame_by_frame_in_both_directions() {
    let agent = Agent::new(Server::new(|_| async {
        Ok(respond(200, "", support::full("")))
    }))
    .await;
    // The inner service echoes frame by frame: an answer to the first frame before the second is sent proves it.
    let echo = tower::service_fn(|request: Request<RequestBody>| async move {
        Ok::<_, BoxError>(
            Response::builder()
                .header("content-type", "application/octet-stream")
                .body(request.into_body())
                .unwrap(),
        )
    });
    let (frames, sent) = mpsc::channel::<Result<Frame<Bytes>, BoxError>>(1);
    let body = StreamBody::new(tokio_stream::wrappers::ReceiverStream::new(sent));
    let request = Request::post("http://127.0.0.1:1/upload")
        .header("content-type", "application/octet-stream")
        .body(body);
    let mut response = agent
        .layer
        .layer(echo)
        .oneshot(request.unwrap())
        .await
        .unwrap();
    for n in 0..3_u8 {
        frames
            .send(Ok(Frame::data(Bytes::from(vec![n; 3]))))
            .await
            .unwrap();
        let frame = response
            .body_mut()
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_data()
            .unwrap();
        assert_eq!(frame, vec![n; 3]);
    }
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-checksum", "1".parse().unwrap());
    frames
        .send(Ok(Frame::trailers(trailers.clone())))
        .await
        .unwrap();
    drop(frames);
    let frame = response.body_mut().frame().await.unwrap().unwrap();
    assert_eq!(frame.into_trailers().unwrap(), trailers);
    assert!(response.body_mut().frame().await.is_none());
}

#[tokio::test]
async fn bytes_and_headers_of_every_other_message_arrive_as_they_were_sent() {
    let bodies = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{ "capabilities":{} }}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}"#,
        r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"look","arguments":{"n":1.0}}}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#,
        "{not json",
        "",
    ];
    for body in bodies {
        let echo = tower::service_fn(|request: Request<RequestBody>| async move {
            let (head, body) = request.into_parts();
            let mut response = Response::new(body);
            *response.headers_mut() = head.headers;
            Ok::<_, BoxError>(response)
        });
        let agent = Agent::new(Server::new(|_| async {
            Ok(respond(200, "", support::full("")))
        }))
        .await;
        let request = Request::post("http://127.0.0.1:1/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("accept-encoding", "gzip")
            .header("x-two", "a")
            .header("x-two", "b")
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let sent = request.headers().clone();
        let response = agent.layer.layer(echo).oneshot(request).await.unwrap();
        assert_eq!(response.headers(), &sent, "{body}");
        assert_eq!(
            response.into_body().collect().await.unwrap().to_bytes(),
            body
        );
    }
}

#[tokio::test]
async fn a_side_effecting_call_gains_the_execution_id_and_nothing_else() {
    let agent = Agent::new(Server::new(|seen| async move {
        Ok(json_answer(&result(&seen.id(), "paid")))
    }))
    .await;
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "pay", "arguments": { "amount": 1.50 }, "_meta": { "progressToken": "t" } } });
    agent.post(&message).await.unwrap();
    let seen = agent.server.seen().remove(0);
    let mut body = seen.body.clone();
    let meta = body["params"]["_meta"].as_object_mut().unwrap();
    assert!(meta.remove("dev.reattach/execution-id").is_some());
    assert_eq!(body, message);
    let mut names: Vec<_> = seen.headers.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accept",
            "authorization",
            "content-type",
            "mcp-protocol-version",
            "mcp-session-id"
        ]
    );
}

#[tokio::test]
async fn gets_and_deletes_pass() {
    let agent = Agent::new(Server::new(|seen| async move {
        Ok(respond(
            if seen.method == Method::DELETE {
                405
            } else {
                200
            },
            "text/event-stream",
            support::full("data: x\n\n"),
        ))
    }))
    .await;
    for (method, status) in [(Method::GET, 200), (Method::DELETE, 405)] {
        let request = Request::builder()
            .method(method)
            .uri("http://127.0.0.1:1/mcp")
            .body(Full::new(Bytes::new()))
            .unwrap();
        let response = agent
            .layer
            .layer(agent.server.clone())
            .oneshot(request)
            .await
            .unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(
            response.into_body().collect().await.unwrap().to_bytes(),
            "data: x\n\n"
        );
    }
}

#[tokio::test]
async fn a_body_too_large_to_look_into_is_refused_where_it_could_hold_a_call() {
    let mut limits = Limits::default();
    limits.max_request_bytes = 100;
    let agent = Agent::new(Server::new(|seen| async move {
        Ok(json_answer(&result(&seen.id(), "paid")))
    }))
    .await;
    let layer = reattach::layer::ReattachLayer::builder(agent.layer.journal().clone())
        .limits(limits)
        .build()
        .await
        .unwrap();
    let agent = Agent { layer, ..agent };
    let large = call(1, "pay", json!({ "note": "x".repeat(200) }));
    let error = agent.post(&large).await.unwrap_err();
    assert!(error.to_string().contains("nothing was sent"), "{error}");
    assert!(agent.server.seen().is_empty());
    // What could not be an MCP client's request passes, however large.
    let request =
        Request::post("http://127.0.0.1:1/oauth").header("content-type", "application/json");
    let request = request
        .body(Full::new(Bytes::from(large.to_string())))
        .unwrap();
    let accepted = request.headers().get("accept").is_none();
    assert!(accepted);
    agent
        .layer
        .layer(agent.server.clone())
        .oneshot(request)
        .await
        .unwrap();
    assert_eq!(agent.server.seen().len(), 1);
}

#[tokio::test]
async fn a_compressed_call_is_refused_since_nobody_looked_into_it() {
    let agent = Agent::new(Server::new(|_| async {
        Ok(respond(200, "", support::full("")))
    }))
    .await;
    let request = Request::post("http://127.0.0.1:1/mcp")
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .header("accept", "application/json, text/event-stream")
        .body(Full::new(Bytes::from_static(b"\x1f\x8b")))
        .unwrap();
    let response = agent
        .layer
        .layer(agent.server.clone())
        .oneshot(request)
        .await
        .unwrap();
    let answer: Value =
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("not sent")
    );
    assert!(agent.server.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn errors_of_the_http_client_reach_the_caller_where_nothing_was_at_stake() {
    let agent = Agent::new(Server::new(|_| async { Err("no route to host".into()) })).await;
    let error = agent.call(1, "look", json!({})).await.unwrap_err();
    let text = std::iter::successors(Some(&*error as &dyn std::error::Error), |e| e.source())
        .map(|e| e.to_string());
    assert!(
        text.collect::<Vec<_>>()
            .join(": ")
            .contains("no route to host")
    );
    assert!(agent.states().await.is_empty());
}
