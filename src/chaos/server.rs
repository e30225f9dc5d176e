//! A real MCP server on loopback, with a ledger: rmcp's own, in both protocol families on one endpoint.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::Ledger;
use super::events::MemoryEvents;
use super::tools::Bank;

/// How the server behaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Sessions and resumable streams for revisions up to 2025-11-25.
    pub sessions: bool,
    /// Whether a stream can be resumed behind any of its events, also after its answer went out.
    pub remembers: bool,
    /// JSON in place of streams; only without sessions.
    pub json: bool,
    /// What the priming event tells clients to wait before they come back.
    pub retry: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            sessions: true,
            remembers: true,
            json: false,
            retry: Duration::from_millis(100),
        }
    }
}

/// A running server. Dropping it ends it and all its connections.
pub struct TestServer {
    address: SocketAddr,
    ledger: Ledger,
    connections: watch::Receiver<usize>,
    sessions: Arc<LocalSessionManager>,
    task: AbortHandle,
}

impl TestServer {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(options: ServerOptions) -> io::Result<Self> {
        let ledger = Ledger::default();
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.sse_retry = Some(options.retry);
        if options.remembers {
            sessions = sessions.with_event_store(Arc::new(MemoryEvents::default()));
        }
        let sessions = Arc::new(sessions);
        let bank = Bank {
            ledger: ledger.clone(),
        };
        let config = StreamableHttpServerConfig::default()
            .with_sse_keep_alive(None)
            .with_sse_retry(Some(options.retry))
            .with_legacy_session_mode(options.sessions)
            .with_json_response(options.json);
        let service =
            StreamableHttpService::new(move || Ok(bank.clone()), Arc::clone(&sessions), config);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (count, connections) = watch::channel(0);
        let task = tokio::spawn(async move {
            let mut open = JoinSet::new(); // ends with this task
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let Ok((socket, _)) = accepted else { continue };
                        let _ = socket.set_nodelay(true); // a delay of 40 ms is not among the faults
                        count.send_modify(|count| *count += 1);
                        let service = TowerToHyperService::new(service.clone());
                        open.spawn(async move {
                            let io = TokioIo::new(socket);
                            let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(io, service).await;
                        });
                    }
                    Some(_) = open.join_next() => {}
                }
            }
        });
        Ok(Self {
            address,
            ledger,
            connections,
            sessions,
            task: task.abort_handle(),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its MCP endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What happened.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// How many connections it has accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        *self.connections.borrow()
    }

    /// Forgets every session, as a restart does: the next request of each is answered 404.
    pub async fn forget_sessions(&self) {
        self.sessions.sessions.write().await.clear();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
