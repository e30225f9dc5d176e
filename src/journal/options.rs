//! How to open a journal.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::keys::KeySource;
use super::store::SledOptions;
use crate::clock::{Clock, SystemClock};

/// Where a journal lies and how it works.
#[derive(Clone)]
#[non_exhaustive]
pub struct JournalOptions {
    /// The journal's directory.
    pub dir: PathBuf,
    /// Where the master key comes from.
    pub key: KeySource,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// How many executions of one actor may be open; further ones are refused.
    pub max_open_per_actor: usize,
    /// How many closed executions stay in memory, so that a late caller still finds them there.
    pub closed_in_memory: usize,
    /// How the embedded store works.
    pub store: SledOptions,
}

impl JournalOptions {
    /// A journal in `dir`, with defaults for everything else.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            key: KeySource::default(),
            clock: Arc::new(SystemClock),
            max_open_per_actor: 10_000,
            closed_in_memory: 1_024,
            store: SledOptions::default(),
        }
    }

    /// The same with this key.
    #[must_use]
    pub fn with_key(mut self, key: KeySource) -> Self {
        self.key = key;
        self
    }

    /// The same with this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

impl fmt::Debug for JournalOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            dir,
            key,
            clock: _,
            max_open_per_actor,
            closed_in_memory,
            store,
        } = self;
        f.debug_struct("JournalOptions")
            .field("dir", dir)
            .field("key", key)
            .field("max_open_per_actor", max_open_per_actor)
            .field("closed_in_memory", closed_in_memory)
            .field("store", store)
            .finish_non_exhaustive()
    }
}
