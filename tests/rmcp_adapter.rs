//! What rmcp is told about each kind of HTTP response, row by row: as by rmcp's own clients.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]
#![cfg(feature = "rmcp")]

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, Request, Response};
use http_body_util::Full;
use reattach::sdk::rmcp::{TowerClient, TowerError};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use serde_json::json;

type Outcome<T> = Result<T, StreamableHttpError<TowerError>>;

/// A server that always answers this.
#[derive(Clone, Copy)]
struct Row {
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    body: &'static str,
}

const JSON: &[(&str, &str)] = &[("content-type", "Application/JSON; charset=utf-8")];
const SSE: &[(&str, &str)] = &[
    ("content-type", "text/event-stream"),
    ("mcp-session-id", "s-1"),
];

fn row(status: u16, headers: &'static [(&'static str, &'static str)], body: &'static str) -> Row {
    Row {
        status,
        headers,
        body,
    }
}

fn client(row: Row) -> impl StreamableHttpClient<Error = TowerError> {
    TowerClient::new(tower::service_fn(
        move |_: Request<Full<Bytes>>| async move {
            let mut response = Response::builder().status(row.status);
            for (name, value) in row.headers {
                response = response.header(*name, *value);
            }
            Ok::<_, std::io::Error>(response.body(Full::new(Bytes::from(row.body))).unwrap())
        },
    ))
}

fn message(method: &str) -> ClientJsonRpcMessage {
    let mut message = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
    if method.starts_with("notifications/") {
        message.as_object_mut().unwrap().remove("id");
    }
    serde_json::from_value(message).unwrap()
}

async fn post_as(
    row: Row,
    method: &str,
    session: Option<&str>,
) -> Outcome<StreamableHttpPostResponse> {
    let mut limits = StreamableHttpResponseLimits::default();
    limits.max_json_response_size = 200;
    limits.max_error_response_size = 20;
    let uri: Arc<str> = "http://127.0.0.1:1/mcp".into();
    let session = session.map(Into::into);
    client(row)
        .post_message_with_response_limits(
            uri,
            message(method),
            session,
            None,
            HashMap::new(),
            limits,
        )
        .await
}

async fn post(row: Row) -> Outcome<StreamableHttpPostResponse> {
    post_as(row, "ping", Some("s")).await
}

const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const ERROR: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom"}}"#;
const LONG: &str = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\
    0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890";

#[tokio::test]
async fn answers_are_json_or_a_stream() {
    assert!(matches!(
        post(row(200, JSON, RESULT)).await,
        Ok(StreamableHttpPostResponse::Json(..))
    ));
    let Ok(StreamableHttpPostResponse::Sse(mut stream, session)) =
        post(row(200, SSE, "id: 1\ndata: {}\n\n")).await
    else {
        panic!("no stream")
    };
    assert_eq!(session.as_deref(), Some("s-1"));
    assert_eq!(
        stream.next().await.unwrap().unwrap().id.as_deref(),
        Some("1")
    );
    for status in [202, 204] {
        assert!(matches!(
            post(row(status, &[], "")).await,
            Ok(StreamableHttpPostResponse::Accepted)
        ));
    }
}

#[tokio::test]
async fn what_a_request_cannot_use_is_an_error_and_a_notification_does_not_care() {
    assert!(matches!(
        post(row(200, JSON, "{")).await,
        Err(StreamableHttpError::UnexpectedServerResponse(_))
    ));
    assert!(matches!(
        post(row(200, &[("content-type", "text/html")], "x")).await,
        Err(StreamableHttpError::UnexpectedContentType(Some(_)))
    ));
    assert!(matches!(
        post(row(200, &[], "x")).await,
        Err(StreamableHttpError::UnexpectedContentType(None))
    ));
    for unusable in [
        row(200, &[], ""),
        row(200, JSON, "{"),
        row(200, &[("content-type", "text/html")], "x"),
    ] {
        let told = post_as(unusable, "notifications/initialized", Some("s")).await;
        assert!(matches!(told, Ok(StreamableHttpPostResponse::Accepted)));
    }
}

#[tokio::test]
async fn challenges_carry_what_the_server_asks_for() {
    const BASIC: &[(&str, &str)] = &[(
        "www-authenticate",
        r#"Bearer error="insufficient_scope", scope="a b""#,
    )];
    let Err(StreamableHttpError::AuthRequired(asked)) = post(row(401, BASIC, "")).await else {
        panic!("no challenge")
    };
    assert!(asked.www_authenticate_header.contains("scope"));
    let Err(StreamableHttpError::InsufficientScope(asked)) = post(row(403, BASIC, "")).await else {
        panic!("no challenge")
    };
    assert_eq!(asked.get_required_scope(), Some("a b"));
    // Without a challenge the status is all there is, whatever the body says.
    for status in [401, 403] {
        assert!(matches!(
            post(row(status, JSON, ERROR)).await,
            Err(StreamableHttpError::UnexpectedServerResponse(_))
        ));
    }
}

#[tokio::test]
async fn a_404_ends_a_session_only_where_there_was_one() {
    assert!(matches!(
        post(row(404, &[], "")).await,
        Err(StreamableHttpError::SessionExpired)
    ));
    let without = post_as(row(404, &[], "not here"), "ping", None).await;
    assert!(matches!(
        without,
        Err(StreamableHttpError::UnexpectedServerResponse(_))
    ));
}

#[tokio::test]
async fn failures_keep_their_status_and_their_json_rpc_error() {
    const LATER: &[(&str, &str)] = &[("retry-after", "7"), ("content-type", "application/json")];
    let Err(StreamableHttpError::HttpStatus(error)) = post(row(429, LATER, ERROR)).await else {
        panic!("no status")
    };
    assert_eq!(
        (error.status, error.retry_after.as_deref()),
        (429, Some("7"))
    );
    assert!(matches!(
        post(row(503, &[], "x")).await,
        Err(StreamableHttpError::HttpStatus(_))
    ));
    assert!(matches!(
        post(row(500, JSON, ERROR)).await,
        Ok(StreamableHttpPostResponse::Json(..))
    ));
    assert!(matches!(
        post(row(400, JSON, ERROR)).await,
        Ok(StreamableHttpPostResponse::Json(..))
    ));
    assert!(matches!(
        post(row(500, JSON, "{")).await,
        Err(StreamableHttpError::HttpStatus(_))
    ));
    let Err(StreamableHttpError::UnexpectedServerResponse(said)) = post(row(400, &[], LONG)).await
    else {
        panic!()
    };
    assert!(said.len() < 60, "bounded: {said}");
}

#[tokio::test]
async fn limits_hold() {
    for status in [200, 400] {
        let told = post(row(status, JSON, LONG)).await;
        assert!(
            matches!(
                told,
                Err(StreamableHttpError::ResponseBodyTooLarge { max_size: 200 })
            ),
            "{status}"
        );
    }
    assert!(matches!(
        post(row(500, JSON, LONG)).await,
        Err(StreamableHttpError::HttpStatus(_))
    ));
    let uri: Arc<str> = "http://127.0.0.1:1/mcp".into();
    let told = client(row(200, SSE, LONG))
        .post_message_with_max_sse_event_size(uri, message("ping"), None, None, HashMap::new(), 50)
        .await;
    let Ok(StreamableHttpPostResponse::Sse(mut stream, _)) = told else {
        panic!("no stream")
    };
    assert!(stream.next().await.unwrap().is_err());
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_refused_discovery_is_an_answer_under_its_own_id() {
    let discover = json!({ "jsonrpc": "2.0", "id": 9, "method": "server/discover", "params": { "_meta": {} } });
    let discover: ClientJsonRpcMessage = serde_json::from_value(discover).unwrap();
    for refusal in [
        row(400, &[], "Bad Request"),
        row(404, &[], ""),
        row(
            400,
            JSON,
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"x"}}"#,
        ),
    ] {
        let uri: Arc<str> = "http://127.0.0.1:1/mcp".into();
        let told = client(refusal)
            .post_message(uri, discover.clone(), None, None, HashMap::new())
            .await;
        let Ok(StreamableHttpPostResponse::Json(answer, _)) = told else {
            panic!("no answer")
        };
        assert_eq!(serde_json::to_value(answer).unwrap()["id"], 9);
    }
}

#[tokio::test]
async fn streams_and_sessions_by_get_and_delete() {
    let uri = || Arc::<str>::from("http://127.0.0.1:1/mcp");
    let get = |row: Row| async move {
        client(row)
            .get_stream(
                uri(),
                Some("s".into()),
                Some("e".into()),
                None,
                HashMap::new(),
            )
            .await
            .map(drop)
    };
    assert!(get(row(200, SSE, "")).await.is_ok());
    assert!(matches!(
        get(row(405, &[], "")).await,
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    ));
    assert!(matches!(
        get(row(200, &[("content-type", "text/html")], "")).await,
        Err(StreamableHttpError::UnexpectedContentType(_))
    ));
    assert!(matches!(
        get(row(503, &[], "")).await,
        Err(StreamableHttpError::HttpStatus(_))
    ));
    assert!(matches!(
        get(row(404, &[], "")).await,
        Err(StreamableHttpError::Client(TowerError::Status(_)))
    ));
    let delete = |row: Row| async move {
        client(row)
            .delete_session(uri(), "s".into(), None, HashMap::new())
            .await
    };
    assert!(delete(row(200, &[], "")).await.is_ok() && delete(row(405, &[], "")).await.is_ok());
    assert!(delete(row(404, &[], "")).await.is_err());
}

#[tokio::test]
async fn what_goes_out_is_what_rmcp_asked_for() {
    let sent = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&sent);
    let client = TowerClient::new(tower::service_fn(move |request: Request<Full<Bytes>>| {
        seen.lock()
            .unwrap()
            .push((request.method().clone(), request.headers().clone()));
        async {
            Ok::<_, std::io::Error>(
                Response::builder()
                    .status(202)
                    .body(Full::new(Bytes::new()))
                    .unwrap(),
            )
        }
    }));
    let uri: Arc<str> = "http://127.0.0.1:1/mcp".into();
    let custom = HashMap::from([(
        "mcp-protocol-version".parse().unwrap(),
        "2025-11-25".parse().unwrap(),
    )]);
    client
        .post_message(
            uri.clone(),
            message("ping"),
            Some("s".into()),
            Some("token".into()),
            custom,
        )
        .await
        .unwrap();
    let _ = client
        .get_stream(uri, None, Some("7".into()), None, HashMap::new())
        .await;
    let sent = sent.lock().unwrap();
    let (method, headers) = &sent[0];
    assert_eq!(method, Method::POST);
    assert_eq!(headers["authorization"], "Bearer token");
    assert_eq!(headers["mcp-session-id"], "s");
    assert_eq!(headers["mcp-protocol-version"], "2025-11-25");
    assert_eq!(headers["accept"], "text/event-stream, application/json");
    let (method, headers) = &sent[1];
    assert_eq!(
        (method, &headers["last-event-id"]),
        (&Method::GET, &http::HeaderValue::from_static("7"))
    );
    assert!(headers.get("mcp-session-id").is_none());
}
