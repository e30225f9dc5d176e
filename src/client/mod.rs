//! The HTTP client that this crate supplies: hyper, with TLS by rustls, and nothing that sends a request twice.
//!
//! ```no_run
//! # async fn example(layer: reattach::layer::ReattachLayer) {
//! use tower::Layer;
//!
//! let service = layer.layer(reattach::client::new());
//! # }
//! ```

use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::layer::{BoxError, RequestBody};

/// The client. HTTP/1.1 and HTTP/2 (by ALPN), `https` and `http`.
pub type Client<B = RequestBody> = legacy::Client<HttpsConnector<HttpConnector>, B>;

/// A client with defaults, to go under the layer.
pub fn new() -> Client {
    builder().build()
}

/// Starts with defaults.
pub fn builder() -> ClientBuilder {
    ClientBuilder::default()
}

/// Collects what a client needs.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ClientBuilder {
    idle_for: Duration,
    connect_within: Duration,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        Self {
            idle_for: IDLE_FOR,
            connect_within: CONNECT_WITHIN,
        }
    }
}

impl ClientBuilder {
    /// How long an idle connection is kept; zero: every request gets a fresh one. Default: 2 s.
    ///
    /// The most common avoidable *unknown* is a call written to a keep-alive connection that the server has just closed:
    /// the write may succeed, the answer never comes. Servers close idle connections after 5 s and more, so what was used
    /// within 2 s is very probably alive.
    pub const fn idle_for(mut self, idle_for: Duration) -> Self {
        self.idle_for = idle_for;
        self
    }

    /// How long a connection may take to come about, DNS and TCP, for each address. Default: 10 s.
    pub const fn connect_within(mut self, connect_within: Duration) -> Self {
        self.connect_within = connect_within;
        self
    }

    /// The client, for any request body.
    #[must_use]
    pub fn build<B>(self) -> Client<B>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(self.connect_within));
        http.set_keepalive(Some(KEEPALIVE));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls())
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(http);
        legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(self.idle_for)
            .pool_max_idle_per_host(if self.idle_for.is_zero() { 0 } else { MAX_IDLE })
            // hyper-util's own repeat of what came back unstarted from a reused connection. It is safe, and invisible: the
            // journal would know of one dispatch where there were two (law 2). The layer does the same by a permit.
            .retry_canceled_requests(false)
            .build(https)
    }
}

/// The web's own certificate authorities, with ring, whatever provider the process has installed for others.
fn tls() -> rustls::ClientConfig {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}

const IDLE_FOR: Duration = Duration::from_secs(2);
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
const KEEPALIVE: Duration = Duration::from_secs(30);
const MAX_IDLE: usize = 32;
