//! The chain: each entry's hash covers its predecessor's hash and its own stored bytes.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::hex;

/// A SHA-256 in the chain. Shown as `sha256:` and 64 hex digits.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Digest([u8; Self::LEN]);

impl Digest {
    pub(super) const LEN: usize = 32;

    /// Where the chain of the journal with this id begins: no two journals share a beginning.
    pub(super) fn genesis(journal: &[u8; 16]) -> Self {
        let mut sha = Sha256::new();
        sha.update(b"reattach/1/genesis");
        sha.update(journal);
        Self(sha.finalize().into())
    }

    /// The hash of the entry with these bytes that follows this one.
    pub(super) fn followed_by(&self, entry: &[u8]) -> Self {
        let mut sha = Sha256::new();
        sha.update(self.0);
        sha.update(entry);
        Self(sha.finalize().into())
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(super) const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", hex::encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The end of the chain: what the next entry follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Tip {
    /// The number of the next frame.
    pub(super) frame: u64,
    /// The number of the next entry.
    pub(super) next: u64,
    /// The hash it follows.
    pub(super) last: Digest,
}

impl Tip {
    /// The tip of a journal without entries.
    pub(super) fn genesis(journal: &[u8; 16]) -> Self {
        Self {
            frame: 1,
            next: 1,
            last: Digest::genesis(journal),
        }
    }
}
