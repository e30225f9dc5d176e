//! What MCP over HTTP looks like: bytes to values, and back. Pure; knows nothing of executions.

mod answer;
mod envelope;
mod header;
mod members;
mod revision;
mod splice;
mod sse;

pub use answer::{Response, response};
pub use envelope::{Asks, Body, INTENT_META, Refusal, ToolCall, read};
pub use header::{
    Accepts, IDEMPOTENCY_KEY, LAST_EVENT_ID, MCP_PROTOCOL_VERSION, MCP_SESSION_ID, MediaType,
    accepts, media_type, resume_headers, retry_after, session, target,
};
pub use revision::Revision;
pub use splice::{EXECUTION_ID_META, KeyPlace, Slot, Splice, answer_as};
pub use sse::{Block, Event, Framer, TooLarge, event_for};
