//! Reading a journal: records and entries, in order, without the key.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::entry::{Entry, Subject};
use super::open::{self, OwnedStore};
use super::store::{SledOptions, Store};
use super::{ExecutionRecord, JournalError};
use crate::clock::Timestamp;
use crate::execution::State;
use crate::identity::ExecutionId;

/// Reads a journal. Everything it shows was verified against the chain first.
pub struct Reader {
    store: Arc<dyn Store>,
}

/// Which executions are wanted. The default wants all.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data; every field has a default"
)]
pub struct Filter {
    /// Of this tool.
    pub tool: Option<String>,
    /// In one of these states; in any when there are none.
    pub states: Vec<State>,
    /// Of this actor.
    pub actor: Option<String>,
    /// Accepted at this time or later.
    pub since: Option<Timestamp>,
    /// Accepted before this time.
    pub until: Option<Timestamp>,
}

impl Reader {
    /// Opens the journal in a directory that nobody owns now. Makes nothing.
    ///
    /// # Errors
    /// When there is none, somebody owns it, or it can't be read.
    pub fn open(dir: &Path) -> Result<Self, JournalError> {
        let missing = |_is_new: bool| -> Result<(), JournalError> {
            if super::store::SledStore::exists(dir) {
                Ok(())
            } else {
                Err(no_journal(dir))
            }
        };
        if !dir.is_dir() {
            return Err(no_journal(dir));
        }
        let (store, ()) = OwnedStore::open(dir, SledOptions::default(), missing)?;
        Self::of(Arc::new(store))
    }

    pub(super) fn of(store: Arc<dyn Store>) -> Result<Self, JournalError> {
        Ok(Self { store })
    }

    /// Shows `visit` every entry, in order.
    ///
    /// # Errors
    /// That of `visit`, or that of the first entry that is not what was written; `visit` has seen all before it.
    pub fn entries(
        &self,
        visit: &mut dyn FnMut(Entry) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let Some(genesis) = open::genesis(&*self.store)? else {
            return Ok(());
        };
        open::read_all(&*self.store, genesis, visit).map(drop)
    }

    /// The executions that the filter wants, in the order in which they were accepted.
    ///
    /// # Errors
    /// When an entry is not what was written, or tells of a step that no execution takes.
    pub fn executions(&self, filter: &Filter) -> Result<Vec<ExecutionRecord>, JournalError> {
        let mut records = Records::default();
        self.entries(&mut |entry| records.take(&entry))?;
        let mut records = records.0;
        records.retain(|record| filter.wants(record));
        Ok(records)
    }

    /// One execution and its entries; none when the journal does not know it.
    ///
    /// # Errors
    /// As [`executions`](Self::executions).
    pub fn record(
        &self,
        id: ExecutionId,
    ) -> Result<Option<(ExecutionRecord, Vec<Entry>)>, JournalError> {
        let (mut records, mut entries) = (Records::default(), Vec::new());
        self.entries(&mut |entry| {
            if entry.subject == Subject::Execution(id) {
                records.take(&entry)?;
                entries.push(entry);
            }
            Ok(())
        })?;
        Ok(records.0.pop().map(|record| (record, entries)))
    }
}

impl Filter {
    /// Whether this record is wanted.
    #[must_use]
    pub fn wants(&self, record: &ExecutionRecord) -> bool {
        self.tool.as_ref().is_none_or(|tool| *tool == record.tool)
            && (self.states.is_empty() || self.states.contains(&record.state))
            && self
                .actor
                .as_ref()
                .is_none_or(|actor| *actor == record.actor)
            && self.since.is_none_or(|since| record.accepted_at >= since)
            && self.until.is_none_or(|until| record.accepted_at < until)
    }
}

/// Folds entries into records.
#[derive(Default)]
struct Records(Vec<ExecutionRecord>, HashMap<ExecutionId, usize>);

impl Records {
    fn take(&mut self, entry: &Entry) -> Result<(), JournalError> {
        let Subject::Execution(id) = entry.subject else {
            return Ok(());
        };
        let unreadable = |what| JournalError::Unreadable {
            entry: entry.sequence,
            what,
        };
        if let Some(record) = ExecutionRecord::begin(id, entry.at, &entry.event) {
            if self.1.insert(id, self.0.len()).is_some() {
                return Err(unreadable("its execution was accepted before"));
            }
            self.0.push(record);
            return Ok(());
        }
        let record = self.1.get(&id).and_then(|at| self.0.get_mut(*at));
        let record = record.ok_or_else(|| unreadable("its execution was never accepted"))?;
        record
            .take(entry.at, &entry.event)
            .map_err(|error| open::at_entry(error, entry.sequence))
    }
}

fn no_journal(dir: &Path) -> JournalError {
    JournalError::Directory {
        dir: dir.to_owned(),
        doing: "there is no journal in it",
        advice: "name the right one with --journal",
        source: None,
    }
}
