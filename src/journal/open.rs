//! Opening a journal: the directory, the key, the store, and the index rebuilt from the frames.

use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::chain::Tip;
use super::entry::{Entry, Subject};
use super::index::Index;
use super::keys::{CURRENT, Keys, MasterKey};
use super::store::{SledOptions, SledStore, Space, Store, StoreError, Visit, Write};
use super::{JournalError, directory, frame, hex};
use crate::entropy;

/// A sled store in a directory that is ours. Fields are dropped in order: the store, then the ownership.
pub(super) struct OwnedStore {
    store: SledStore,
    _owner: directory::Owner,
}

impl OwnedStore {
    /// Becomes the owner of the directory and opens the store; `before` runs in between, and is told whether it is new.
    pub(super) fn open<T>(
        dir: &Path,
        options: SledOptions,
        before: impl FnOnce(bool) -> Result<T, JournalError>,
    ) -> Result<(Self, T), JournalError> {
        let owner = directory::own(dir)?;
        let done = before(!SledStore::exists(dir))?;
        let store = SledStore::open(dir, options).map_err(JournalError::Store)?;
        Ok((
            Self {
                store,
                _owner: owner,
            },
            done,
        ))
    }
}

impl Store for OwnedStore {
    fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        self.store.commit(writes)
    }

    fn read(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.read(space, key)
    }

    fn scan(&self, space: Space, from: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.store.scan(space, from, visit)
    }
}

/// What the journal says of itself.
#[derive(Deserialize, Serialize)]
struct About {
    format: u64,
    /// Its id: 32 hexadecimal digits.
    journal: String,
    /// The key it was made with, and a value that recognises it.
    key: String,
    check: String,
}

/// Derives the journal's keys, and gives a new journal its id. Returns where the chain begins.
pub(super) fn keys(store: &dyn Store, master: &MasterKey) -> Result<(Keys, Tip), JournalError> {
    if let Some(about) = about(store)? {
        let journal = about.id()?;
        let keys = master.derive(&journal);
        if about.check != keys.check {
            return Err(master.wrong().into());
        }
        return Ok((keys, Tip::genesis(&journal)));
    }
    let journal = entropy::bytes();
    let keys = master.derive(&journal);
    let about = About {
        format: FORMAT,
        journal: hex::encode(&journal),
        key: CURRENT.to_string(),
        check: keys.check.clone(),
    };
    let value = serde_json::to_vec(&about).expect("plain data with text keys");
    store
        .commit(&[Write::Put {
            space: Space::Meta,
            key: ABOUT.to_vec(),
            value,
        }])
        .map_err(|source| JournalError::NotDurable { entries: 0, source })?;
    Ok((keys, Tip::genesis(&journal)))
}

/// Where the chain of a journal begins that was made earlier; none when there is no journal yet.
pub(super) fn genesis(store: &dyn Store) -> Result<Option<Tip>, JournalError> {
    about(store)?
        .map(|about| about.id().map(|journal| Tip::genesis(&journal)))
        .transpose()
}

/// Shows `visit` every entry, verified, in order; returns the end of the chain. Holds one frame at a time.
pub(super) fn read_all(
    store: &dyn Store,
    genesis: Tip,
    visit: &mut dyn FnMut(Entry) -> Result<(), JournalError>,
) -> Result<Tip, JournalError> {
    let mut tip = genesis;
    let mut failed = None;
    store
        .scan(
            Space::Frames,
            &[],
            &mut |key, bytes| match frame::unpack(key, bytes, &mut tip, visit) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            },
        )
        .map_err(JournalError::Store)?;
    failed.map_or(Ok(tip), Err)
}

/// Rebuilds the index; every execution in it is without an owner.
pub(super) fn replay(
    store: &dyn Store,
    genesis: Tip,
    index: &mut Index,
) -> Result<Tip, JournalError> {
    let tip = read_all(store, genesis, &mut |entry| match entry.subject {
        Subject::Execution(id) => index
            .replay(id, entry.at, &entry.event)
            .map_err(|error| at_entry(error, entry.sequence)),
        Subject::Run(_) => Ok(()),
    })?;
    index.replayed();
    Ok(tip)
}

/// Says which entry tells of a step that no execution takes.
pub(super) fn at_entry(error: JournalError, sequence: u64) -> JournalError {
    match error {
        JournalError::Impossible {
            execution,
            from,
            to,
            entry: _,
        } => JournalError::Impossible {
            execution,
            from,
            to,
            entry: Some(sequence),
        },
        JournalError::Misplaced { .. } => JournalError::Unreadable {
            entry: sequence,
            what: "its event has no place in its execution",
        },
        other => other,
    }
}

fn about(store: &dyn Store) -> Result<Option<About>, JournalError> {
    let unreadable = |what| JournalError::Unreadable { entry: 1, what };
    let Some(bytes) = store
        .read(Space::Meta, ABOUT)
        .map_err(JournalError::Store)?
    else {
        let mut has_frames = false;
        store
            .scan(Space::Frames, &[], &mut |_, _| {
                has_frames = true;
                ControlFlow::Break(())
            })
            .map_err(JournalError::Store)?;
        return if has_frames {
            Err(unreadable("what the journal says of itself is missing"))
        } else {
            Ok(None)
        };
    };
    let about: About = serde_json::from_slice(&bytes)
        .map_err(|_| unreadable("what the journal says of itself is damaged"))?;
    if about.format == FORMAT {
        Ok(Some(about))
    } else {
        Err(JournalError::Format {
            found: about.format,
            known: FORMAT,
        })
    }
}

impl About {
    fn id(&self) -> Result<[u8; 16], JournalError> {
        let id = hex::decode(&self.journal).and_then(|id| id.try_into().ok());
        id.ok_or(JournalError::Unreadable {
            entry: 1,
            what: "what the journal says of itself is damaged",
        })
    }
}

const ABOUT: &[u8] = b"journal";
const FORMAT: u64 = 1;
