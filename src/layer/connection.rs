//! One connection of a response stream, cut into blocks.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use http::HeaderMap;
use http_body_util::BodyExt;

use super::exchange::UpstreamBody;
use crate::identity::EventId;
use crate::wire::{Block, Framer};

pub(super) struct Connection {
    body: UpstreamBody,
    framer: Framer,
}

pub(super) enum Next {
    Block(Block),
    Trailers(HeaderMap),
    TooLarge,
    Closed,
}

impl Connection {
    pub(super) fn new(body: UpstreamBody, max_event_bytes: usize) -> Self {
        Self {
            body,
            framer: Framer::new(max_event_bytes),
        }
    }

    /// What comes next. A failure and a clean end are one: neither says whether the answer is still to come.
    pub(super) async fn next(&mut self) -> Next {
        loop {
            match self.framer.next_block() {
                Ok(Some(block)) => return Next::Block(block),
                Ok(None) => {}
                Err(_) => return Next::TooLarge,
            }
            match self.body.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.framer.push(data),
                    Err(frame) => match frame.into_trailers() {
                        Ok(trailers) => return Next::Trailers(trailers),
                        Err(_) => continue,
                    },
                },
                Some(Err(error)) => {
                    tracing::debug!(
                        error = &*error as &dyn std::error::Error,
                        "response stream lost"
                    );
                    return Next::Closed;
                }
                None => return Next::Closed,
            }
        }
    }
}

/// The newest events, so that what a server sends again after a resume is not delivered twice. An event is known by its
/// id and its bytes: there are servers that give many events one id.
#[derive(Default)]
pub(super) struct Seen {
    events: HashSet<u64>,
    oldest_first: VecDeque<u64>,
}

impl Seen {
    /// False when it was there already.
    pub(super) fn add(&mut self, id: &EventId, block: &Block) -> bool {
        let mut hasher = DefaultHasher::new();
        (id, &block.bytes()[..]).hash(&mut hasher);
        let event = hasher.finish();
        if !self.events.insert(event) {
            return false;
        }
        self.oldest_first.push_back(event);
        if self.oldest_first.len() > SEEN_EVENTS
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.events.remove(&oldest);
        }
        true
    }
}

const SEEN_EVENTS: usize = 1024;
