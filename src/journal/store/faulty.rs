//! A store that fails on purpose, for tests.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::{Space, Store, StoreError, Visit, Write};

/// What goes wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "tests name them all")]
pub enum Fault {
    /// The disk is full: nothing of the group is written.
    Full,
    /// The disk fails after the first write of the group.
    Torn,
    /// Everything is written, and the sync fails: nobody knows what is on the disk.
    Sync,
}

/// Passes everything on to another store, until told otherwise.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Mutex<Plan>,
    changed: Condvar,
}

#[derive(Default)]
struct Plan {
    commits: u64,
    fault: Option<(u64, Fault)>,
    held: bool,
}

impl FaultyStore {
    /// Wraps a store.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self {
            inner,
            plan: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Makes the commit after `more` further ones fail, and all after it.
    pub fn fail_after(&self, more: u64, fault: Fault) {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.fault = Some((plan.commits + more, fault));
    }

    /// Holds every commit up until [`release`](Self::release).
    pub fn hold(&self) {
        self.plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .held = true;
    }

    /// Lets commits go on.
    pub fn release(&self) {
        self.plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .held = false;
        self.changed.notify_all();
    }

    /// How many commits were asked for.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .commits
    }

    fn next_fault(&self) -> Option<Fault> {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let number = plan.commits;
        plan.commits += 1;
        self.changed.notify_all();
        let plan = self
            .changed
            .wait_while(plan, |plan| plan.held)
            .unwrap_or_else(PoisonError::into_inner);
        plan.fault
            .filter(|(from, _)| number >= *from)
            .map(|(_, fault)| fault)
    }
}

impl Store for FaultyStore {
    fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        match self.next_fault() {
            None => self.inner.commit(writes),
            Some(Fault::Full) => Err(failure("written", io::ErrorKind::StorageFull)),
            Some(Fault::Torn) => {
                self.inner.commit(&writes[..writes.len().min(1)])?;
                Err(failure("written", io::ErrorKind::Other))
            }
            Some(Fault::Sync) => {
                self.inner.commit(writes)?;
                Err(failure("synced", io::ErrorKind::Other))
            }
        }
    }

    fn read(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.read(space, key)
    }

    fn scan(&self, space: Space, from: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.inner.scan(space, from, visit)
    }
}

fn failure(doing: &'static str, kind: io::ErrorKind) -> StoreError {
    StoreError::io("injected", doing, io::Error::from(kind))
}
