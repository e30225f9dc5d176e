//! An entry: one event, when it became known, of whom, and its place in the chain.

use std::fmt;

use super::event::Event;
use super::{JournalError, chain::Digest};
use crate::clock::Timestamp;
use crate::identity::{ExecutionId, RunId};

/// Of whom an entry tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the format has these two")]
pub enum Subject {
    /// A run.
    Run(RunId),
    /// An execution.
    Execution(ExecutionId),
}

/// An entry as it was read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Its number; the first is 1.
    pub sequence: u64,
    /// Wall time. It does not step back within one execution.
    pub at: Timestamp,
    /// Of whom it tells.
    pub subject: Subject,
    /// What became known.
    pub event: Event,
    /// The event as it is stored: the text that the chain runs over.
    pub text: Box<str>,
    /// The hash of its predecessor.
    pub prev: Digest,
    /// Its own.
    pub hash: Digest,
}

/// An entry that has no place in the chain yet.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) at: Timestamp,
    pub(super) subject: Subject,
    pub(super) event: Event,
    pub(super) text: Vec<u8>,
}

impl Draft {
    /// Drafts an entry.
    pub(super) fn new(at: Timestamp, subject: Subject, event: Event) -> Result<Self, JournalError> {
        let text = serde_json::to_vec(&event).expect("an event is plain data with text keys");
        let bytes = FIXED_BYTES + text.len();
        if bytes > MAX_ENTRY_BYTES {
            return Err(JournalError::TooLarge {
                bytes,
                limit: MAX_ENTRY_BYTES,
            });
        }
        Ok(Self {
            at,
            subject,
            event,
            text,
        })
    }

    /// How many bytes it takes in a frame.
    pub(super) fn len(&self) -> usize {
        FIXED_BYTES + self.text.len()
    }

    /// Appends the entry to a frame, following `prev`; returns its hash.
    pub(super) fn write(&self, sequence: u64, prev: &Digest, frame: &mut Vec<u8>) -> Digest {
        let length = u32::try_from(self.len() - LENGTH_BYTES).expect("entries are bounded");
        frame.extend_from_slice(&length.to_be_bytes());
        let start = frame.len();
        frame.extend_from_slice(&sequence.to_be_bytes());
        frame.extend_from_slice(&self.at.as_millisecond().to_be_bytes());
        let (kind, id) = match self.subject {
            Subject::Run(id) => (KIND_RUN, id.to_bytes()),
            Subject::Execution(id) => (KIND_EXECUTION, id.to_bytes()),
        };
        frame.push(kind);
        frame.extend_from_slice(&id);
        frame.extend_from_slice(&self.text);
        let hash = prev.followed_by(&frame[start..]);
        frame.extend_from_slice(hash.as_bytes());
        hash
    }
}

impl Entry {
    /// Reads the entry at the front of `bytes`, which has to follow `prev` as number `sequence`; returns what is behind it.
    pub(super) fn read<'a>(
        bytes: &'a [u8],
        sequence: u64,
        prev: &Digest,
    ) -> Result<(Self, &'a [u8]), JournalError> {
        let fail = |what| JournalError::Unreadable {
            entry: sequence,
            what,
        };
        let (length, rest) = bytes
            .split_first_chunk::<LENGTH_BYTES>()
            .ok_or_else(|| fail("it is cut short"))?;
        let length = u32::from_be_bytes(*length) as usize;
        let (entry, rest) = rest
            .split_at_checked(length)
            .ok_or_else(|| fail("it is cut short"))?;
        let (chained, stored) = entry
            .split_last_chunk::<{ Digest::LEN }>()
            .ok_or_else(|| fail("it is cut short"))?;
        // Hashed before anything in it is believed.
        let hash = prev.followed_by(chained);
        if hash.as_bytes() != stored {
            return Err(JournalError::BrokenChain { entry: sequence });
        }
        let (number, chained) = chained
            .split_first_chunk::<8>()
            .ok_or_else(|| fail("it is cut short"))?;
        let (at, chained) = chained
            .split_first_chunk::<8>()
            .ok_or_else(|| fail("it is cut short"))?;
        let (kind, chained) = chained
            .split_first()
            .ok_or_else(|| fail("it is cut short"))?;
        let (id, text) = chained
            .split_first_chunk::<16>()
            .ok_or_else(|| fail("it is cut short"))?;
        if u64::from_be_bytes(*number) != sequence {
            return Err(JournalError::BrokenChain { entry: sequence });
        }
        let at = Timestamp::from_millisecond(i64::from_be_bytes(*at))
            .map_err(|_| fail("its time is none"))?;
        let subject = if *kind == KIND_RUN {
            Subject::Run(RunId::from_bytes(*id))
        } else if *kind == KIND_EXECUTION {
            Subject::Execution(ExecutionId::from_bytes(*id))
        } else {
            return Err(fail("it tells of something this version does not know"));
        };
        let text = std::str::from_utf8(text).map_err(|_| fail("its event is not text"))?;
        let event = serde_json::from_str(text)
            .map_err(|_| fail("its event is not one this version knows"))?;
        Ok((
            Self {
                sequence,
                at,
                subject,
                event,
                text: text.into(),
                prev: *prev,
                hash,
            },
            rest,
        ))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(id) => id.fmt(f),
            Self::Execution(id) => id.fmt(f),
        }
    }
}

/// The largest entry: a frame with nothing else in it.
pub(super) const MAX_ENTRY_BYTES: usize =
    super::frame::MAX_FRAME_BYTES - super::frame::HEADER_BYTES;
const LENGTH_BYTES: usize = 4;
/// Everything but the event's text: length, sequence, time, kind, id, hash.
const FIXED_BYTES: usize = LENGTH_BYTES + 8 + 8 + 1 + 16 + Digest::LEN;
const KIND_RUN: u8 = 0;
const KIND_EXECUTION: u8 = 1;
