//! Errors of the journal.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::keys::KeyError;
use super::store::StoreError;
use crate::execution::State;
use crate::identity::{ExecutionId, ResultId};

/// What failed, what is lost and what is not, and what to do. Cloneable, since one failure answers everybody who waits.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The journal was closed.
    #[error("the journal is closed; nothing was written; open it again")]
    Closed,
    /// Another process, or another part of this one, owns the directory.
    #[error("{} belongs to {}; nothing was written; stop it, or read when it is done", dir.display(), owner_text(*owner))]
    Owned {
        /// The journal's directory.
        dir: PathBuf,
        /// The process that owns it, when it says.
        owner: Option<u32>,
    },
    /// The directory can't be used.
    #[error("the journal's directory {} can't be used ({doing}); nothing was written; {advice}", dir.display())]
    Directory {
        /// The journal's directory.
        dir: PathBuf,
        /// What failed.
        doing: &'static str,
        /// What to do.
        advice: &'static str,
        /// Why, when the operating system said.
        source: Option<Arc<io::Error>>,
    },
    /// The key can't be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The store can't be opened or read.
    #[error(
        "the journal can't be read; nothing was written; keep a copy of its directory before anything else is tried"
    )]
    Store(#[source] StoreError),
    /// A commit group did not become durable.
    #[error(
        "{entries} entries are not durable and none was acknowledged; nothing was sent for them; free the disk and reopen the journal"
    )]
    NotDurable {
        /// How many entries waited for it.
        entries: usize,
        /// Why.
        source: StoreError,
    },
    /// An earlier commit group did not become durable.
    #[error(
        "the journal has failed and acknowledges nothing more; nothing was written or sent; free the disk and reopen the journal"
    )]
    Failed {
        /// What failed then.
        source: StoreError,
    },
    /// An entry does not follow its predecessor.
    #[error(
        "entry {entry} does not follow its predecessor; all before it are intact; keep a copy of the journal's directory"
    )]
    BrokenChain {
        /// The first entry that does not.
        entry: u64,
    },
    /// A stored frame or entry is not one.
    #[error(
        "entry {entry} can't be read: {what}; all before it are intact; keep a copy of the journal's directory"
    )]
    Unreadable {
        /// The entry, or the one that should be there.
        entry: u64,
        /// What was found.
        what: &'static str,
    },
    /// A step that no execution takes.
    #[error("{execution} can't go from {from} to {to}{}; nothing was written", entry.map(|e| format!(" (entry {e})")).unwrap_or_default())]
    Impossible {
        /// Which.
        execution: ExecutionId,
        /// The state it is in.
        from: State,
        /// The state it was to go to.
        to: State,
        /// The entry that says so, when it was read from disk.
        entry: Option<u64>,
    },
    /// An event that has its own way into the journal, or that says nothing about an execution.
    #[error("`{event}` has its own way into the journal; nothing was written")]
    Misplaced {
        /// The event.
        event: &'static str,
    },
    /// The journal does not know the execution, or forgot it because it is closed.
    #[error("{execution} is not open in this journal; nothing was written")]
    NotOpen {
        /// Which.
        execution: ExecutionId,
    },
    /// An entry is larger than a frame.
    #[error(
        "an entry of {bytes} bytes is larger than the {limit} that fit; nothing was written or sent; shorten its tool name, target or request id"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// The sealed result is not what was sealed.
    #[error("{result} of {execution} can't be unsealed: {what}; its record is intact")]
    Sealed {
        /// Which execution.
        execution: ExecutionId,
        /// Which result.
        result: ResultId,
        /// What was found.
        what: &'static str,
    },
    /// The sealed way back to a stream is not what was sealed.
    #[error("the way back to the stream of {execution} can't be unsealed; its record is intact")]
    SealedCursor {
        /// Which execution.
        execution: ExecutionId,
    },
    /// The journal was written by a version with another format.
    #[error(
        "the journal has format {found}, and this version reads {known}; nothing was written; use a newer version"
    )]
    Format {
        /// What the journal says.
        found: u64,
        /// What this version knows.
        known: u64,
    },
}

fn owner_text(owner: Option<u32>) -> String {
    owner.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}
