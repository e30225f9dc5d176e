//! The server's memory of its streams, so that each can be resumed behind any event, also after its answer went out.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rmcp::transport::streamable_http_server::session::{
    EventStore, EventStoreError, EventStream, ServerSseMessage,
};

/// Events in memory, the newest of them.
#[derive(Default)]
pub(super) struct MemoryEvents(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    next: u64,
    /// Stream and event.
    events: VecDeque<(String, ServerSseMessage)>,
}

#[async_trait::async_trait]
impl EventStore for MemoryEvents {
    async fn store_event(
        &self,
        stream_id: &str,
        event: &ServerSseMessage,
    ) -> Result<String, EventStoreError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.next += 1;
        let id = format!("e{}", kept.next);
        let mut event = event.clone();
        event.event_id = Some(id.clone());
        if kept.events.len() == MAX_EVENTS {
            kept.events.pop_front();
        }
        kept.events.push_back((stream_id.to_owned(), event));
        Ok(id)
    }

    async fn replay_events_after(
        &self,
        last_event_id: &str,
    ) -> Result<EventStream, EventStoreError> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = |event: &ServerSseMessage| event.event_id.as_deref() == Some(last_event_id);
        let at = kept
            .events
            .iter()
            .position(|(_, event)| is_last(event))
            .ok_or("no such event")?;
        let stream = &kept.events[at].0;
        let later = kept
            .events
            .iter()
            .skip(at + 1)
            .filter(|(other, _)| other == stream);
        let later: Vec<_> = later.map(|(_, event)| event.clone()).collect();
        Ok(Box::pin(futures_util::stream::iter(later)))
    }
}

const MAX_EVENTS: usize = 10_000;
