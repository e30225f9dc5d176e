//! The committer: one thread that makes everything durable, in the order in which it was handed in.
//!
//! It takes all batches that wait, gives their entries their numbers and places in the chain, packs them into frames,
//! commits the group, tells the index, and only then wakes whoever waits. After a commit that failed it acknowledges
//! nothing more: what is on the disk is not known until the journal is opened again.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::JournalError;
use super::chain::Tip;
use super::entry::{Draft, Subject};
use super::frame;
use super::index::Index;
use super::store::{Store, StoreError, Write};

/// Entries that become durable together, and what has to be on the disk before them.
#[derive(Default)]
pub(super) struct Batch {
    /// Chunks of a sealed result, which an entry refers to.
    pub(super) writes: Vec<Write>,
    pub(super) entries: Vec<Draft>,
    /// Who waits for it. Nobody waits for what may be lost in a crash.
    pub(super) waiter: Option<Waiter>,
}

/// Where the news goes.
pub(super) type Waiter = oneshot::Sender<Result<(), JournalError>>;

/// What waits for the committer.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    batches: Vec<Batch>,
    is_awaited: bool,
    /// Bytes of the batches that nobody waits for, which is what needs a bound: who waits hands in one at a time.
    unawaited_bytes: usize,
    /// Whether the committer waits for a change.
    is_asleep: bool,
    end: Option<End>,
}

/// Why nothing more is taken.
#[derive(Clone)]
enum End {
    Closed,
    Failed(StoreError),
}

impl Queue {
    /// Hands a batch in.
    pub(super) fn push(&self, batch: Batch) -> Result<(), JournalError> {
        let mut waiting = self.lock();
        waiting.check()?;
        if batch.waiter.is_some() {
            waiting.is_awaited = true;
        } else {
            waiting.unawaited_bytes += batch.len();
        }
        waiting.batches.push(batch);
        if waiting.is_asleep {
            self.changed.notify_one(); // a system call, so only where it is needed
        }
        Ok(())
    }

    /// Whether there is room for a batch that nobody waits for.
    pub(super) fn has_room(&self) -> bool {
        self.lock().unawaited_bytes < MAX_UNAWAITED_BYTES
    }

    /// Whether anything is taken.
    pub(super) fn check(&self) -> Result<(), JournalError> {
        self.lock().check()
    }

    /// Takes nothing more; what waits is still committed.
    pub(super) fn close(&self) {
        self.lock().end.get_or_insert(End::Closed);
        self.changed.notify_one();
    }

    /// Waits for the next group; none when the journal is closed and nothing is left.
    fn next(&self) -> Option<Vec<Batch>> {
        let idle = |waiting: &mut Waiting| waiting.batches.is_empty() && waiting.end.is_none();
        let mut waiting = self.lock();
        waiting.is_asleep = true;
        let waiting = self
            .changed
            .wait_while(waiting, idle)
            .unwrap_or_else(PoisonError::into_inner);
        // Nobody waits: give somebody the time to come, and save a sync.
        let unhurried = |waiting: &mut Waiting| !waiting.is_awaited && waiting.end.is_none();
        let (mut waiting, _) = self
            .changed
            .wait_timeout_while(waiting, LINGER, unhurried)
            .unwrap_or_else(PoisonError::into_inner);
        waiting.is_asleep = false;
        waiting.is_awaited = false;
        waiting.unawaited_bytes = 0;
        let group = std::mem::take(&mut waiting.batches);
        if group.is_empty() { None } else { Some(group) }
    }

    /// Takes nothing more and returns what waits in vain.
    fn fail(&self, error: StoreError) -> Vec<Batch> {
        let mut waiting = self.lock();
        waiting.end = Some(End::Failed(error));
        std::mem::take(&mut waiting.batches)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn check(&self) -> Result<(), JournalError> {
        match &self.end {
            None => Ok(()),
            Some(End::Closed) => Err(JournalError::Closed),
            Some(End::Failed(source)) => Err(JournalError::Failed {
                source: source.clone(),
            }),
        }
    }
}

impl Batch {
    fn len(&self) -> usize {
        self.entries.iter().map(Draft::len).sum()
    }
}

/// What the thread works on.
pub(super) struct Committer {
    pub(super) queue: Arc<Queue>,
    pub(super) index: Arc<Mutex<Index>>,
    pub(super) store: Arc<dyn Store>,
    pub(super) tip: Tip,
}

impl Committer {
    /// Works until the journal is closed or fails.
    pub(super) fn run(mut self) {
        while let Some(mut group) = self.queue.next() {
            match self.commit(&mut group) {
                Ok(()) => self.acknowledge(group),
                Err(error) => {
                    tracing::error!(%error, "the journal failed; nothing more is acknowledged until it is opened again");
                    self.refuse(group, &error);
                    return;
                }
            }
        }
        self.index().fail();
    }

    fn commit(&mut self, group: &mut [Batch]) -> Result<(), StoreError> {
        let mut writes: Vec<Write> = group
            .iter_mut()
            .flat_map(|batch| batch.writes.drain(..))
            .collect();
        writes.extend(frame::pack(
            &mut self.tip,
            group.iter().map(|batch| batch.entries.as_slice()),
        ));
        if writes.is_empty() {
            return Ok(());
        }
        self.store.commit(&writes)
    }

    fn acknowledge(&self, group: Vec<Batch>) {
        {
            let mut index = self.index();
            for draft in group.iter().flat_map(|batch| &batch.entries) {
                match draft.subject {
                    Subject::Execution(id) => index.arrived(id, draft.at, &draft.event),
                    Subject::Run(_) => {}
                }
            }
        }
        for waiter in group.into_iter().filter_map(|batch| batch.waiter) {
            let _ = waiter.send(Ok(())); // who stopped waiting does not want to know
        }
    }

    fn refuse(&self, group: Vec<Batch>, error: &StoreError) {
        let late = self.queue.fail(error.clone());
        self.index().fail();
        let entries = group
            .iter()
            .chain(&late)
            .map(|batch| batch.entries.len())
            .sum();
        for waiter in group
            .into_iter()
            .chain(late)
            .filter_map(|batch| batch.waiter)
        {
            let _ = waiter.send(Err(JournalError::NotDurable {
                entries,
                source: error.clone(),
            }));
        }
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long entries that nobody waits for wait for company.
const LINGER: Duration = Duration::from_millis(10);
const MAX_UNAWAITED_BYTES: usize = 4 * 1024 * 1024;
