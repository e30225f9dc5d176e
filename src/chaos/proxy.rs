//! The fault proxy: HTTP/1.1 on loopback, one request per connection, broken where the plan says.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::fault::{Cut, Fault, FaultPlan};
use super::http1::{self, Received};

/// What came through a proxy so far.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Traffic {
    /// Connections accepted.
    pub connections: usize,
    /// POSTs of a `tools/call` that arrived.
    pub calls: usize,
    /// Those of them that were sent on.
    pub calls_forwarded: usize,
    /// The `Last-Event-ID` of each GET that had one.
    pub resumes: Vec<String>,
    /// Faults that struck.
    pub faults: usize,
}

/// A proxy that misbehaves. Dropping it ends it and every connection through it.
pub struct FaultProxy {
    address: SocketAddr,
    traffic: watch::Receiver<Traffic>,
    task: AbortHandle,
}

impl FaultProxy {
    /// Listens on a free port of loopback and sends requests on to `upstream`.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(upstream: SocketAddr, plan: FaultPlan) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (seen, traffic) = watch::channel(Traffic::default());
        let proxy = Arc::new(Proxy {
            upstream,
            plan,
            seen,
        });
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new(); // ends with this task
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let Ok((socket, _)) = accepted else { continue };
                        let proxy = Arc::clone(&proxy);
                        connections.spawn(async move {
                            if let Err(error) = proxy.serve(socket).await {
                                tracing::debug!(%error, "a connection through the fault proxy ended");
                            }
                        });
                    }
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok(Self {
            address,
            traffic,
            task: task.abort_handle(),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The MCP endpoint behind it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What came through so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.traffic.borrow().clone()
    }

    /// Waits until the traffic is as wanted.
    pub async fn until(&self, wanted: impl FnMut(&Traffic) -> bool) -> Traffic {
        let mut traffic = self.traffic.clone();
        traffic
            .wait_for(wanted)
            .await
            .map(|traffic| traffic.clone())
            .unwrap_or_default()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Proxy {
    upstream: SocketAddr,
    plan: FaultPlan,
    seen: watch::Sender<Traffic>,
}

impl Proxy {
    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        self.seen.send_modify(|seen| seen.connections += 1);
        client.set_nodelay(true)?;
        let Some(request) = http1::read(&mut client).await? else {
            return Ok(());
        };
        let fault = self.fault_for(&request);
        if fault.is_some() {
            self.seen.send_modify(|seen| seen.faults += 1);
        }
        match fault {
            None => {
                self.relay(client, &request, Until::TheEnd, Cut::Close)
                    .await
            }
            Some(Fault::LoseRequest(cut)) => end(client, cut),
            Some(Fault::StatusBefore(status, body)) => page(client, status, body).await,
            Some(Fault::Delay(pause)) => {
                tokio::time::sleep(pause).await;
                self.relay(client, &request, Until::TheEnd, Cut::Close)
                    .await
            }
            Some(Fault::DelayAnswer(pause)) => {
                let answer = self.whole_answer(&request).await?;
                tokio::time::sleep(pause).await;
                client.write_all(&with_close(&answer)).await?;
                end(client, Cut::Close)
            }
            Some(Fault::LoseAnswer(cut)) => {
                self.whole_answer(&request).await?;
                end(client, cut)
            }
            Some(Fault::StatusAfter(status, body)) => {
                self.whole_answer(&request).await?;
                page(client, status, body).await
            }
            Some(Fault::Stall) => {
                self.whole_answer(&request).await?;
                let gone =
                    async { while !matches!(client.read(&mut [0; 1024]).await, Ok(0) | Err(_)) {} };
                let _ = tokio::time::timeout(LONGEST_STALL, gone).await;
                Ok(())
            }
            Some(Fault::CutAfterHead(cut)) => {
                self.relay(client, &request, Until::Body(0), cut).await
            }
            Some(Fault::CutBody(bytes, cut)) => {
                self.relay(client, &request, Until::Body(bytes), cut).await
            }
            Some(Fault::CutEvents(events, cut)) => {
                self.relay(client, &request, Until::Events(events), cut)
                    .await
            }
        }
    }

    /// Counts the request, and says what happens to it.
    fn fault_for(&self, request: &Received) -> Option<Fault> {
        let mut fault = None;
        self.seen.send_modify(|seen| {
            if request.is_tool_call() {
                seen.calls += 1;
                fault = self.plan.fault(&Method::POST, seen.calls);
            } else if let (&Method::GET, Some(id)) =
                (&request.method, request.headers.get("last-event-id"))
            {
                seen.resumes
                    .push(String::from_utf8_lossy(id.as_bytes()).into_owned());
                fault = self.plan.fault(&Method::GET, seen.resumes.len());
            }
        });
        fault
    }

    async fn forward(&self, request: &Received) -> io::Result<TcpStream> {
        let mut server = TcpStream::connect(self.upstream).await?;
        server.set_nodelay(true)?;
        server.write_all(&request.to_http10()).await?;
        if request.is_tool_call() {
            self.seen.send_modify(|seen| seen.calls_forwarded += 1);
        }
        Ok(server)
    }

    /// The server's whole answer. The server never sees that the client left.
    async fn whole_answer(&self, request: &Received) -> io::Result<Vec<u8>> {
        let mut server = self.forward(request).await?;
        let mut answer = Vec::new();
        let mut bounded = (&mut server).take(MAX_ANSWER);
        bounded.read_to_end(&mut answer).await?;
        Ok(answer)
    }

    /// Sends the answer on, as far as `until`, and ends the connection.
    async fn relay(
        &self,
        mut client: TcpStream,
        request: &Received,
        until: Until,
        cut: Cut,
    ) -> io::Result<()> {
        let mut server = self.forward(request).await?;
        let mut seen = Vec::new(); // as long as it is not known where the head ends
        let mut progress = Progress::default();
        loop {
            let mut chunk = Vec::with_capacity(16 * 1024);
            let (mut read_half, _) = client.split();
            let mut ignored = [0; 1024];
            tokio::select! {
                read = server.read_buf(&mut chunk) => if read? == 0 { break },
                // The client left: so does the proxy, and the server sees it.
                read = read_half.read(&mut ignored) => if read? == 0 { return Ok(()) } else { continue },
            }
            if progress.in_body {
                let pass = progress.allowed(&chunk, until);
                client.write_all(&chunk[..pass]).await?;
                if pass < chunk.len() || progress.done(until) {
                    return end(client, cut);
                }
                continue;
            }
            seen.extend_from_slice(&chunk);
            let Some(at) = memchr::memmem::find(&seen, b"\r\n\r\n") else {
                continue;
            };
            progress.in_body = true;
            let body = seen.split_off(at + 4);
            client.write_all(&with_close(&seen)).await?;
            let pass = progress.allowed(&body, until);
            client.write_all(&body[..pass]).await?;
            if pass < body.len() || progress.done(until) {
                return end(client, cut);
            }
        }
        end(
            client,
            if until == Until::TheEnd {
                Cut::Close
            } else {
                cut
            },
        )
    }
}

/// How far an answer passes.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Until {
    TheEnd,
    Body(usize),
    Events(usize),
}

/// What of an answer has passed.
#[derive(Default)]
struct Progress {
    in_body: bool,
    bytes: usize,
    events: usize,
    after_line_end: bool,
}

impl Progress {
    /// How many of these bytes pass.
    fn allowed(&mut self, bytes: &[u8], until: Until) -> usize {
        let mut pass = 0;
        for byte in bytes {
            if self.done(until) {
                break;
            }
            pass += 1;
            self.bytes += 1;
            if *byte == b'\n' && self.after_line_end {
                self.events += 1;
            }
            self.after_line_end = *byte == b'\n';
        }
        pass
    }

    fn done(&self, until: Until) -> bool {
        match until {
            Until::TheEnd => false,
            Until::Body(bytes) => self.bytes >= bytes,
            Until::Events(events) => self.events >= events,
        }
    }
}

/// The answer's head in HTTP/1.1, for one request per connection.
fn with_close(answer: &[u8]) -> Vec<u8> {
    let rest = answer
        .strip_prefix(b"HTTP/1.0".as_slice())
        .unwrap_or(answer);
    let Some(at) = memchr::memmem::find(rest, b"\r\n\r\n") else {
        return answer.to_vec();
    };
    [
        b"HTTP/1.1",
        &rest[..at],
        b"\r\nconnection: close",
        &rest[at..],
    ]
    .concat()
}

fn end(client: TcpStream, cut: Cut) -> io::Result<()> {
    match cut {
        Cut::Reset => socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)),
        Cut::Close => Ok(()),
    }
}

async fn page(mut client: TcpStream, status: u16, body: &str) -> io::Result<()> {
    let kind = if body.starts_with('<') {
        "text/html"
    } else {
        "application/json"
    };
    let head = format!(
        "HTTP/1.1 {status} Fault\r\ncontent-type: {kind}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await?;
    client.write_all(body.as_bytes()).await?;
    client.shutdown().await
}

const LONGEST_STALL: Duration = Duration::from_secs(120);
const MAX_ANSWER: u64 = 64 << 20;
