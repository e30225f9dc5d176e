//! How to open a journal.

use std::path::PathBuf;

/// Where a journal lies and how it works.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JournalOptions {
    /// The journal's directory.
    pub dir: PathBuf,
}

impl JournalOptions {
    /// A journal in `dir`, with defaults for everything else.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }
}
