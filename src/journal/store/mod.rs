//! Where the journal's bytes lie: a trait, and the stores behind it.
//!
//! A store keeps pairs of key and value in four [`Space`]s. It knows nothing of entries, chains or keys. It promises one
//! thing, [`Store::commit`]: what it acknowledged survives a power cut, and of what it did not, a prefix in order may.
//! Every store passes the same [`suite`].

mod error;
#[doc(hidden)]
pub mod faulty;
mod head;
mod memory;
mod sled;
#[doc(hidden)]
pub mod suite;

use std::ops::ControlFlow;

pub use error::StoreError;
pub use memory::MemoryStore;
pub use sled::{SledOptions, SledStore};

/// What kind of thing a pair is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(clippy::exhaustive_enums, reason = "a store has to know them all")]
pub enum Space {
    /// What the journal says of itself.
    Meta,
    /// Frames of entries, by their numbers (8 bytes, big-endian), which are consecutive.
    Frames,
    /// Wrapped data keys of results, by result id.
    ResultKeys,
    /// Sealed chunks of results, by result id and index.
    Chunks,
}

/// One change of a commit group.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a store has to know them all")]
pub enum Write {
    /// Puts a value, over an earlier one if there is one.
    Put {
        /// Where.
        space: Space,
        /// Under which key.
        key: Vec<u8>,
        /// What: at least a byte, at most [`MAX_VALUE_BYTES`].
        value: Vec<u8>,
    },
    /// Takes a value away.
    Remove {
        /// Where.
        space: Space,
        /// Which.
        key: Vec<u8>,
    },
}

/// No value is larger, so that no page of the store ever outgrows a segment, and few pages are much memory.
pub const MAX_VALUE_BYTES: usize = 32 * 1024;

/// Looks at a pair, and says whether it wants more.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// What a store promises. Calls block; the journal keeps them off the async threads.
pub trait Store: Send + Sync + 'static {
    /// Carries out the writes in order and makes them durable before it returns.
    ///
    /// # Errors
    /// None of the writes is promised then; after a crash, a prefix of them in order may be there.
    fn commit(&self, writes: &[Write]) -> Result<(), StoreError>;

    /// The value under a key.
    ///
    /// # Errors
    /// When it can't be read. An absent value is not an error.
    fn read(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Shows `visit` every pair from `from` on, in the order of the keys, until it breaks.
    ///
    /// # Errors
    /// When a pair can't be read; `visit` has seen all before it.
    fn scan(&self, space: Space, from: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError>;
}
