//! What is known for good: the journal of runs and executions.
//!
//! [`Journal`] is the handle everything else uses. It keeps an index of what may still matter for a decision, hands
//! every change to one committer, which chains it, packs it into a frame and makes it durable through a [`Store`], and
//! seals results in the vault. [`Reader`] reads it without the key. The bytes are described in `docs/journal-format.md`.
//!
//! [`Store`]: store::Store

mod answer;
mod chain;
mod committer;
mod directory;
mod entry;
mod error;
mod event;
mod frame;
mod handle;
mod hex;
mod index;
mod keys;
mod lease;
mod open;
mod options;
mod reader;
mod record;
pub mod store;
mod vault;

pub use answer::{Answer, Kept, StreamCursor};
pub use chain::Digest;
pub use entry::{Entry, Subject};
pub use error::JournalError;
pub use event::{Event, RunStarted};
pub use handle::{AcceptError, Journal, NewExecution, Standing};
pub use keys::{KeyError, KeySource};
pub use lease::{Dispatch, Lease};
pub use options::JournalOptions;
pub use reader::{Filter, Reader};
pub use record::{DispatchRecord, ExecutionRecord};
