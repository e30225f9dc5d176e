//! Errors of a store.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What a store could not do. Cloneable, since one failure answers everybody who waits.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused.
    #[error("{} could not be {doing}", file.display())]
    Io {
        /// Which file.
        file: PathBuf,
        /// What was tried, as a participle.
        doing: &'static str,
        /// Why.
        source: Arc<io::Error>,
    },
    /// Bytes on disk are not what was written there.
    #[error("{} is damaged: {what}", file.display())]
    Damaged {
        /// Which file.
        file: PathBuf,
        /// What was found.
        what: String,
    },
    /// A value is larger than any that may be stored.
    #[error("a value of {bytes} bytes is larger than the {limit} that may be stored")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
}

impl StoreError {
    pub(super) fn io(file: impl Into<PathBuf>, doing: &'static str, source: io::Error) -> Self {
        Self::Io {
            file: file.into(),
            doing,
            source: Arc::new(source),
        }
    }
}
