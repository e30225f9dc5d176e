//! Reads a response stream over all its connections: passes events on, keeps the answer, resumes what is lost.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Uri, Version};
use http_body::Frame;

use super::caller::Outlet;
use super::connection::{Connection, Next, Seen};
use super::exchange::{Exchange, UpstreamBody};
use super::lesson::{self, Lesson};
use super::shared::Shared;
use crate::entropy;
use crate::execution::{Action, Evidence, Input, ResponseStream, verdict};
use crate::identity::{EventId, RequestId, SessionId};
use crate::journal::{Answer, Event, JournalError, Lease, StreamCursor};
use crate::recovery::{self, Opened};
use crate::wire::{self, Block};

/// A response stream, and what it takes to open it again.
pub(super) struct Stream {
    pub(super) machine: ResponseStream,
    /// The id that its answer has.
    pub(super) request: RequestId,
    pub(super) session: Option<SessionId>,
    pub(super) revision: Option<String>,
    pub(super) uri: Uri,
    pub(super) version: Version,
    /// The headers of the POST.
    pub(super) post: HeaderMap,
    pub(super) target: String,
    /// What its answer teaches.
    pub(super) lesson: Option<Lesson>,
}

/// Keeps what a side-effecting call brings. A stream of another request has none.
pub(super) struct Keeper<'a> {
    pub(super) lease: &'a Lease,
    /// Which dispatch.
    pub(super) n: u32,
    pub(super) status: Option<u16>,
}

/// How a stream ended.
pub(super) enum End {
    /// The answer is kept, and handed on.
    Answered,
    /// The answer says that nothing ran; it is handed on.
    Refused(Evidence),
    /// The answer came, and the journal could not keep it.
    NotKept,
    /// There is no way back.
    Lost,
    /// One event was larger than the limit.
    TooLarge,
}

/// Reads a stream to its end. `first` is the open connection; none where there is only a cursor.
///
/// # Cancel safety
/// Dropping it closes the connection; what was kept is kept.
pub(super) async fn read(
    stream: Stream,
    first: Option<UpstreamBody>,
    shared: &Arc<Shared>,
    exchange: &mut dyn Exchange,
    keeper: Option<Keeper<'_>>,
    outlet: &mut impl Outlet,
) -> End {
    let limit = shared.limits.max_event_bytes;
    let mut connection = first.map(|body| Connection::new(body, limit));
    let mut pump = Pump {
        stream,
        shared,
        keeper,
        outlet,
        seen: Seen::default(),
        answered: false,
        refused: None,
        cursor_kept: false,
    };
    loop {
        if let Some(evidence) = pump.refused {
            return End::Refused(evidence);
        }
        let next = match &mut connection {
            Some(connection) => connection.next().await,
            None => Next::Closed,
        };
        match next {
            Next::Block(block) => match pump.block(&block).await {
                Ok(()) => {}
                Err(NotKept) => return End::NotKept,
            },
            Next::Trailers(trailers) => pump.trailers(trailers).await,
            Next::TooLarge => return pump.end(End::TooLarge),
            Next::Closed => match pump.reopen(exchange).await {
                Some(body) => connection = Some(Connection::new(body, limit)),
                None => return pump.end(End::Lost),
            },
        }
    }
}

struct Pump<'a, O> {
    stream: Stream,
    shared: &'a Arc<Shared>,
    keeper: Option<Keeper<'a>>,
    outlet: &'a mut O,
    seen: Seen,
    answered: bool,
    refused: Option<Evidence>,
    cursor_kept: bool,
}

/// The answer is here, and it is not durable.
struct NotKept;

impl<O: Outlet> Pump<'_, O> {
    /// Once the answer is handed on, no later end of the stream takes it back.
    fn end(&self, otherwise: End) -> End {
        if self.answered {
            End::Answered
        } else {
            otherwise
        }
    }

    async fn block(&mut self, block: &Block) -> Result<(), NotKept> {
        let event = block.event();
        let now = self.shared.clock.moment();
        let machine = &mut self.stream.machine;
        let mut repeated = false;
        if let Some(id) = &event.id {
            machine.handle(Input::Id(id.clone()), now);
            if let Some(id) = id {
                repeated =
                    event.message().is_some() && !self.seen.add(id, block) && machine.resumes() > 0;
                self.keep_cursor(id);
            }
        }
        if let Some(pause) = event.retry {
            self.stream.machine.handle(Input::Retry(pause), now);
        }
        match event.message() {
            // A priming event of a further connection is between the server and us.
            None if self.stream.machine.resumes() > 0 => {}
            None => self.outlet.frame(Frame::data(block.bytes().clone())).await,
            Some(_) if repeated => {}
            Some(message) => self.message(message, block).await?,
        }
        Ok(())
    }

    async fn message(&mut self, message: &[u8], block: &Block) -> Result<(), NotKept> {
        let now = self.shared.clock.moment();
        let Some(response) = wire::response(message) else {
            self.stream.machine.handle(Input::Message, now);
            if lesson::voids(message) {
                self.shared.learned.forget(&self.stream.target);
            }
            self.outlet.frame(Frame::data(block.bytes().clone())).await;
            return Ok(());
        };
        if response.id.as_ref() != Some(&self.stream.request) {
            self.ignore("a response to another request on this stream");
            return Ok(());
        }
        match self.stream.machine.handle(Input::Answer, now) {
            Action::Keep => {
                let message = Bytes::copy_from_slice(message);
                if let Some(keeper) = &self.keeper {
                    self.refused = response.error.and_then(verdict::of_error);
                    if self.refused.is_some() {
                        self.outlet.frame(Frame::data(block.bytes().clone())).await;
                        return Ok(());
                    }
                    keep(keeper, &message, &response)
                        .await
                        .map_err(|_| NotKept)?;
                }
                if let Some(lesson) = &self.stream.lesson {
                    lesson.learn(self.shared, &self.stream.target, &message);
                }
                self.answered = true;
                self.outlet.kept(block.bytes().clone()).await;
            }
            Action::Pass | Action::Resume { .. } | Action::GiveUp | Action::Done => {
                self.ignore("a second response to the same request");
            }
        }
        Ok(())
    }

    /// Trailers end a body, so they pass only where nothing can follow.
    async fn trailers(&mut self, trailers: HeaderMap) {
        if self.answered {
            self.outlet.frame(Frame::trailers(trailers)).await;
        }
    }

    /// The first id leads to all that follows it, so one entry is enough.
    fn keep_cursor(&mut self, id: &EventId) {
        let Some(keeper) = self.keeper.as_ref().filter(|_| !self.cursor_kept) else {
            return;
        };
        let cursor = StreamCursor {
            session: self.stream.session.clone(),
            event: id.clone(),
            revision: self.stream.revision.clone(),
        };
        keeper.lease.stream_opened(keeper.n, &cursor);
        self.cursor_kept = true;
    }

    /// Tries until a connection is open again. `None` when there is no way back, or no need for one.
    async fn reopen(&mut self, exchange: &mut dyn Exchange) -> Option<UpstreamBody> {
        let mut input = Input::Closed;
        loop {
            let (cursor, after) = match self
                .stream
                .machine
                .handle(input, self.shared.clock.moment())
            {
                Action::Resume { cursor, after } => (cursor, after),
                Action::GiveUp | Action::Done | Action::Pass | Action::Keep => return None,
            };
            tokio::time::sleep(after + jitter(after)).await;
            let Stream {
                session,
                uri,
                version,
                target,
                ..
            } = &self.stream;
            let mut headers = self.stream.post.clone();
            self.shared
                .sessions
                .refresh(target, session.as_ref(), &mut headers);
            input =
                match recovery::open(exchange, uri, *version, &headers, session.as_ref(), &cursor)
                    .await
                {
                    Opened::Stream(body) => {
                        self.resumed();
                        return Some(body);
                    }
                    Opened::Failed => Input::Failed,
                    Opened::Refused => Input::Refused,
                };
        }
    }

    fn resumed(&self) {
        let times = self.stream.machine.resumes();
        tracing::debug!(reattach.resume = times, "response stream resumed");
        if let Some(keeper) = &self.keeper {
            keeper
                .lease
                .append_soon(Event::StreamResumed { n: keeper.n, times });
        }
    }

    fn ignore(&self, what: &str) {
        tracing::warn!("ignored {what}");
        if let Some(keeper) = &self.keeper {
            keeper.lease.append_soon(Event::Ignored {
                what: what.to_owned(),
            });
        }
    }
}

/// Keeps an answer before the caller sees it (law 3).
pub(super) async fn keep(
    keeper: &Keeper<'_>,
    message: &Bytes,
    response: &wire::Response,
) -> Result<(), JournalError> {
    let answer = Answer {
        message: message.clone(),
        status: keeper.status,
        is_error: response.is_tool_error || response.error.is_some(),
        asks_for_input: response.asks_for_input,
    };
    keeper.lease.keep(&answer).await.map(drop)
}

/// Up to a tenth more than the pause, so that clients which lost a server together do not come back together.
fn jitter(pause: Duration) -> Duration {
    let tenth = u64::try_from(pause.as_millis() / 10).unwrap_or(u64::MAX);
    Duration::from_millis(entropy::below(tenth.min(MAX_JITTER_MILLIS)))
}

/// Clients are tested for coming back within 200 ms of the pause that the server asked for.
const MAX_JITTER_MILLIS: u64 = 100;
