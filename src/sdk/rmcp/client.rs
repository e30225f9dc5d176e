//! The client.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::Full;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use sse_stream::Sse;
use tower::{Service, ServiceExt};

use super::answer;
use super::request::{Failure, Outgoing};
use crate::layer::BoxError;

/// rmcp's Streamable HTTP client over a tower service: over [`Reattach`](crate::layer::Reattach), or over anything else
/// that answers HTTP requests. Each message is sent once.
#[derive(Clone, Debug)]
pub struct TowerClient<S> {
    service: S,
}

/// Why a message got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TowerError {
    /// The service failed. Its error says whether anything was sent.
    #[error("the HTTP service failed")]
    Service(#[source] BoxError),
    /// The response body failed before it was whole.
    #[error("the response could not be read to its end")]
    Body(#[source] BoxError),
    /// A status that says that the request failed.
    #[error("the server answered HTTP {0}")]
    Status(StatusCode),
    /// A part of the request can't be sent.
    #[error("nothing was sent; {what} can't be put into a request")]
    Unusable {
        /// Which part; never its value.
        what: &'static str,
    },
}

impl<S> TowerClient<S> {
    /// The client over a service.
    #[must_use]
    pub const fn new(service: S) -> Self {
        Self { service }
    }
}

impl<S, B> TowerClient<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    async fn send(&self, outgoing: Outgoing<'_>) -> Result<Response<B>, Failure> {
        let request = outgoing.into_request()?;
        let sent = self.service.clone().oneshot(request).await;
        sent.map_err(|error| StreamableHttpError::Client(TowerError::Service(error.into())))
    }
}

impl<S, B> StreamableHttpClient for TowerClient<S>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Error = TowerError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut limits = StreamableHttpResponseLimits::default();
        limits.max_sse_event_size = max_sse_event_size;
        self.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        )
        .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let outgoing = Outgoing {
            method: Method::POST,
            uri: &uri,
            session: session_id.as_deref(),
            last_event: None,
            token: auth_header.as_deref(),
            custom: custom_headers,
            body: Some(Bytes::from(serde_json::to_vec(&message)?)),
        };
        let response = self.send(outgoing).await?;
        answer::to_post(response, &message, session_id.is_some(), limits).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let outgoing = Outgoing {
            method: Method::DELETE,
            uri: &uri,
            session: Some(&session_id),
            last_event: None,
            token: auth_header.as_deref(),
            custom: custom_headers,
            body: None,
        };
        answer::to_delete(self.send(outgoing).await?)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let limit = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            limit,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let outgoing = Outgoing {
            method: Method::GET,
            uri: &uri,
            session: session_id.as_deref(),
            last_event: last_event_id.as_deref(),
            token: auth_header.as_deref(),
            custom: custom_headers,
            body: None,
        };
        Ok(answer::to_get(self.send(outgoing).await?, max_sse_event_size)?.boxed())
    }
}
