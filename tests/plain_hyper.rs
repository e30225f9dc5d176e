//! The layer over the client that we supply, against servers that speak bytes: what hyper does is evidence, and it holds.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]
#![cfg(feature = "client")]

mod support;

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use reattach::journal::Journal;
use reattach::layer::{LayerError, ReattachLayer};
use serde_json::{Value, json};
use support::{answer_in, call, is_unknown, text_of};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, ServiceExt};

type Service = reattach::layer::Reattach<reattach::client::Client>;

async fn agent() -> (ReattachLayer, Service) {
    let layer = ReattachLayer::builder(Journal::in_memory())
        .actor("process:test")
        .build()
        .await
        .unwrap();
    let service = layer.layer(reattach::client::new());
    (layer, service)
}

fn request(url: &str, id: i64) -> Request<Full<Bytes>> {
    Request::post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Full::new(Bytes::from(
            call(id, "pay", json!({ "amount": 1 })).to_string(),
        )))
        .unwrap()
}

async fn answer(service: &Service, url: &str, id: i64) -> Value {
    let response = service.clone().oneshot(request(url, id)).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    answer_in(std::str::from_utf8(&body).unwrap()).unwrap()
}

/// Reads one request and returns its body.
async fn read_request(socket: &mut TcpStream) -> Option<Value> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let n = socket.read(&mut chunk).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&chunk[..n]);
        let text = String::from_utf8_lossy(&bytes);
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return Some(body);
        }
    }
}

async fn write_json(socket: &mut TcpStream, id: &Value) {
    let body = support::result(id, "paid").to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket
        .write_all(format!("{head}{body}").as_bytes())
        .await
        .unwrap();
}

fn permits(layer: &ReattachLayer) -> Vec<Vec<Option<&'static str>>> {
    let reader = layer.journal().reader().unwrap();
    let records = reader.executions(&Default::default()).unwrap();
    let of = |record: &reattach::journal::ExecutionRecord| {
        record
            .dispatches
            .iter()
            .map(|dispatch| dispatch.permit.map(|permit| permit.name()))
            .collect()
    };
    records.iter().map(of).collect()
}

#[tokio::test]
async fn a_refused_connection_is_proof_that_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let (layer, service) = agent().await;
    let error = service.clone().oneshot(request(&url, 1)).await.unwrap_err();
    assert!(matches!(error, LayerError::NotSent { .. }), "{error}");
    assert_eq!(
        permits(&layer),
        [[None, Some("not_sent"), Some("not_sent")]]
    );
}

#[tokio::test]
async fn a_connection_that_closes_with_the_request_on_its_way_is_no_proof_of_anything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut bodies = 0;
        while let Ok(Ok((mut socket, _))) =
            tokio::time::timeout(Duration::from_secs(1), listener.accept()).await
        {
            if read_request(&mut socket).await.is_some() {
                bodies += 1; // the server has all of it, and says nothing
            }
        }
        bodies
    });
    let (_, service) = agent().await;
    for id in [1, 2] {
        assert!(is_unknown(&answer(&service, &url, id).await));
    }
    assert_eq!(
        server.await.unwrap(),
        1,
        "\"connection closed before message completed\" is not a permit"
    );
}

#[tokio::test]
async fn a_keep_alive_connection_that_the_server_closed_costs_no_second_dispatch_without_a_permit()
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        // Each connection answers one request, as if it were to be kept, and is closed at once.
        let mut bodies = Vec::new();
        while let Ok(Ok((mut socket, _))) =
            tokio::time::timeout(Duration::from_secs(1), listener.accept()).await
        {
            if let Some(body) = read_request(&mut socket).await {
                write_json(&mut socket, &body["id"]).await;
                bodies.push(body);
            }
        }
        bodies
    });
    let (layer, service) = agent().await;
    for id in 0..20 {
        let answer = answer(&service, &url, id).await;
        assert!(
            text_of(&answer) == "paid" || is_unknown(&answer),
            "{answer}"
        );
    }
    let bodies = server.await.unwrap();
    let dispatched: usize = permits(&layer).iter().map(Vec::len).sum();
    assert!(
        bodies.len() <= dispatched,
        "every request that arrived has a dispatch in the journal"
    );
    for dispatches in permits(&layer) {
        assert!(
            dispatches[1..]
                .iter()
                .all(|permit| *permit == Some("not_sent")),
            "{dispatches:?}"
        );
    }
}

#[tokio::test]
async fn a_read_time_out_above_the_layer_is_a_detach() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (asked, answer_now) = (
        std::sync::Arc::new(tokio::sync::Notify::new()),
        std::sync::Arc::new(tokio::sync::Notify::new()),
    );
    let server = tokio::spawn({
        let (asked, answer_now) = (asked.clone(), answer_now.clone());
        async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let body = read_request(&mut socket).await.unwrap();
            asked.notify_one();
            answer_now.notified().await;
            write_json(&mut socket, &body["id"]).await;
            let more = tokio::time::timeout(Duration::from_millis(300), listener.accept()).await;
            assert!(more.is_err(), "no second connection");
        }
    });
    let (layer, service) = agent().await;
    let impatient = tokio::spawn(service.clone().oneshot(request(&url, 1)));
    asked.notified().await;
    impatient.abort();
    let _ = impatient.await;
    answer_now.notify_one();
    assert_eq!(layer.shutdown(Duration::from_secs(10)).await.unwrap(), 0);
    assert_eq!(text_of(&answer(&service, &url, 2).await), "paid");
    server.await.unwrap();
}
