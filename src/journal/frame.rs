//! Frames: the entries of one commit group, or as many of them as fit, as one value of the store.
//!
//! ```text
//! "rjf1" (4) | count of entries (4) | hash that the first entry follows (32) | entries
//! ```

use super::JournalError;
use super::chain::{Digest, Tip};
use super::entry::{Draft, Entry};
use super::store::{MAX_VALUE_BYTES, Space, Write};

/// Packs batches of entries into frames and moves the tip past them. A batch is split only when it does not fit a frame.
pub(super) fn pack<'a>(
    tip: &mut Tip,
    batches: impl IntoIterator<Item = &'a [Draft]>,
) -> Vec<Write> {
    let mut packer = Packer {
        tip,
        frames: Vec::new(),
        open: None,
    };
    for batch in batches {
        let bytes: usize = batch.iter().map(Draft::len).sum();
        if bytes <= MAX_FRAME_BYTES - HEADER_BYTES {
            packer.make_room(bytes);
        }
        for draft in batch {
            packer.make_room(draft.len());
            packer.push(draft);
        }
    }
    packer.close();
    packer.frames
}

/// Shows `visit` the entries of a frame, verified against the tip, and moves the tip past each.
pub(super) fn unpack(
    key: &[u8],
    frame: &[u8],
    tip: &mut Tip,
    visit: &mut dyn FnMut(Entry) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    let fail = |what| JournalError::Unreadable {
        entry: tip.next,
        what,
    };
    if key != tip.frame.to_be_bytes() {
        return Err(fail("its frame is missing"));
    }
    let (magic, rest) = frame
        .split_first_chunk::<4>()
        .ok_or_else(|| fail("its frame is cut short"))?;
    let (count, rest) = rest
        .split_first_chunk::<4>()
        .ok_or_else(|| fail("its frame is cut short"))?;
    let (prev, mut rest) = rest
        .split_first_chunk::<{ Digest::LEN }>()
        .ok_or_else(|| fail("its frame is cut short"))?;
    if magic != MAGIC {
        return Err(fail("its frame has another format"));
    }
    if Digest::from_bytes(*prev) != tip.last {
        return Err(JournalError::BrokenChain { entry: tip.next });
    }
    for _ in 0..u32::from_be_bytes(*count) {
        let (entry, behind) = Entry::read(rest, tip.next, &tip.last)?;
        tip.next += 1;
        tip.last = entry.hash;
        rest = behind;
        visit(entry)?;
    }
    if !rest.is_empty() {
        return Err(JournalError::Unreadable {
            entry: tip.next,
            what: "its frame is too long",
        });
    }
    tip.frame += 1;
    Ok(())
}

struct Packer<'a> {
    tip: &'a mut Tip,
    frames: Vec<Write>,
    open: Option<Open>,
}

struct Open {
    count: u32,
    bytes: Vec<u8>,
}

impl Packer<'_> {
    /// Closes the open frame when `bytes` more do not fit.
    fn make_room(&mut self, bytes: usize) {
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.bytes.len() + bytes > MAX_FRAME_BYTES)
        {
            self.close();
        }
    }

    fn push(&mut self, draft: &Draft) {
        let tip = &mut *self.tip;
        let open = self.open.get_or_insert_with(|| {
            let mut bytes = Vec::with_capacity(FIRST_CAPACITY);
            bytes.extend_from_slice(MAGIC);
            bytes.extend_from_slice(&[0; 4]);
            bytes.extend_from_slice(tip.last.as_bytes());
            Open { count: 0, bytes }
        });
        let hash = draft.write(tip.next, &tip.last, &mut open.bytes);
        open.count += 1;
        tip.next += 1;
        tip.last = hash;
    }

    fn close(&mut self) {
        if let Some(mut open) = self.open.take() {
            open.bytes[4..8].copy_from_slice(&open.count.to_be_bytes());
            let key = self.tip.frame.to_be_bytes().to_vec();
            self.tip.frame += 1;
            self.frames.push(Write::Put {
                space: Space::Frames,
                key,
                value: open.bytes,
            });
        }
    }
}

/// Where a frame begins.
pub(super) const MAGIC: &[u8; 4] = b"rjf1";
pub(super) const HEADER_BYTES: usize = 4 + 4 + Digest::LEN;
pub(super) const MAX_FRAME_BYTES: usize = MAX_VALUE_BYTES;
const FIRST_CAPACITY: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::identity::ExecutionId;
    use crate::journal::entry::{MAX_ENTRY_BYTES, Subject};
    use crate::journal::event::Event;
    use proptest::prelude::*;

    fn draft(bytes: usize) -> Draft {
        let id = ExecutionId::generate(Timestamp::UNIX_EPOCH);
        Draft::new(
            Timestamp::UNIX_EPOCH,
            Subject::Execution(id),
            Event::Ignored {
                what: "x".repeat(bytes),
            },
        )
        .unwrap()
    }

    fn read(frames: &[Write]) -> Result<Vec<Entry>, JournalError> {
        let (mut tip, mut entries) = (Tip::genesis(&[0; 16]), Vec::new());
        for frame in frames {
            let Write::Put { key, value, .. } = frame else {
                panic!("frames are put")
            };
            unpack(key, value, &mut tip, &mut |entry| {
                entries.push(entry);
                Ok(())
            })?;
        }
        Ok(entries)
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(batches in prop::collection::vec(prop::collection::vec(0..20_000_usize, 0..8), 0..12)) {
            let batches: Vec<Vec<Draft>> = batches.into_iter().map(|batch| batch.into_iter().map(draft).collect()).collect();
            let mut tip = Tip::genesis(&[0; 16]);
            let frames = pack(&mut tip, batches.iter().map(Vec::as_slice));
            for frame in &frames {
                let Write::Put { value, .. } = frame else { panic!("frames are put") };
                prop_assert!(value.len() <= MAX_FRAME_BYTES);
            }
            let entries = read(&frames).unwrap();
            let drafts: Vec<&Draft> = batches.iter().flatten().collect();
            prop_assert_eq!(entries.len(), drafts.len());
            for (entry, draft) in entries.iter().zip(drafts) {
                prop_assert_eq!(&entry.event, &draft.event);
                prop_assert_eq!(entry.text.as_bytes(), &draft.text[..]);
            }
            prop_assert_eq!(tip.next, entries.len() as u64 + 1);
        }

        #[test]
        fn any_flipped_bit_is_noticed(at in 0..2000_usize, bit in 0..8_u8) {
            let mut frames = pack(&mut Tip::genesis(&[0; 16]), [&[draft(100), draft(200)][..], &[draft(300)]]);
            let Write::Put { value, .. } = &mut frames[0] else { panic!("frames are put") };
            let at = at % value.len();
            value[at] ^= 1 << bit;
            prop_assert!(read(&frames).is_err());
        }

        #[test]
        fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let frame = Write::Put { space: Space::Frames, key: 1_u64.to_be_bytes().to_vec(), value: bytes };
            prop_assert!(read(&[frame]).is_err());
        }
    }

    #[test]
    fn the_largest_entry_fits_alone() {
        let overhead = draft(0).len();
        let largest = draft(MAX_ENTRY_BYTES - overhead);
        let frames = pack(
            &mut Tip::genesis(&[0; 16]),
            [&[draft(1), largest, draft(1)][..]],
        );
        assert_eq!(frames.len(), 3);
        assert_eq!(read(&frames).unwrap().len(), 3);
        let event = Event::Ignored {
            what: "x".repeat(MAX_ENTRY_BYTES - overhead + 1),
        };
        let id = ExecutionId::generate(Timestamp::UNIX_EPOCH);
        assert!(Draft::new(Timestamp::UNIX_EPOCH, Subject::Execution(id), event).is_err());
    }

    #[test]
    fn a_batch_that_fits_a_frame_is_not_split() {
        let batches = [vec![draft(20_000)], vec![draft(5_000), draft(10_000)]];
        let frames = pack(
            &mut Tip::genesis(&[0; 16]),
            batches.iter().map(Vec::as_slice),
        );
        let Write::Put { key, .. } = &frames[1] else {
            panic!("frames are put")
        };
        assert_eq!((frames.len(), &key[..]), (2, &2_u64.to_be_bytes()[..]));
    }

    #[test]
    fn a_missing_frame_is_noticed() {
        let frames = pack(
            &mut Tip::genesis(&[0; 16]),
            [&[draft(20_000), draft(20_000)][..]],
        );
        assert_eq!(frames.len(), 2);
        assert!(read(&frames[1..]).is_err());
    }
}
