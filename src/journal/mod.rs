//! What is known for good: the journal of runs and executions.
//!
//! [`Journal`] is the handle everything else uses. It keeps an index of what may still matter for a decision, hands
//! every change to one committer, which chains it, packs it into a frame and makes it durable through a [`Store`], and
//! seals results in the vault. The bytes are described in `docs/journal-format.md`.

mod error;
mod event;
mod handle;
mod options;
mod record;

pub use error::JournalError;
pub use event::{Event, RunStarted};
pub use handle::{
    AcceptError, Answer, Dispatch, Journal, Kept, Lease, NewExecution, Standing, StreamCursor,
};
pub use options::JournalOptions;
pub use record::{DispatchRecord, ExecutionRecord};
