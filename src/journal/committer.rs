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
    committer: Awaits,
    end: Option<End>,
}

/// What the committer sleeps for.
#[derive(Clone, Copy, Default)]
enum Awaits {
    /// It is awake.
    #[default]
    Nothing,
    Anything,
    /// A batch that somebody waits for.
    Awaited,
    /// So many batches.
    Batches(usize),
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
        if waiting.wakes_committer() {
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

    /// How many batches wait.
    fn len(&self) -> usize {
        self.lock().batches.len()
    }

    /// Waits for the next group; none when the journal is closed and nothing is left.
    ///
    /// Whoever was just answered mostly comes back at once with the next entry. Without giving them a moment, they and
    /// those who wait already would take turns, each time with half of the group that is `expected`.
    fn next(&self, expected: usize) -> Option<Vec<Batch>> {
        let waiting = self.sleep(self.lock(), Awaits::Anything, Duration::MAX);
        let waiting = self.sleep(waiting, Awaits::Awaited, LINGER);
        let mut waiting = self.sleep(waiting, Awaits::Batches(expected), GATHER);
        waiting.is_awaited = false;
        waiting.unawaited_bytes = 0;
        let group = std::mem::take(&mut waiting.batches);
        if group.is_empty() { None } else { Some(group) }
    }

    fn sleep<'a>(
        &self,
        mut waiting: MutexGuard<'a, Waiting>,
        awaits: Awaits,
        at_most: Duration,
    ) -> MutexGuard<'a, Waiting> {
        waiting.committer = awaits;
        let asleep = |waiting: &mut Waiting| !waiting.wakes_committer() && waiting.end.is_none();
        let (mut waiting, _) = self
            .changed
            .wait_timeout_while(waiting, at_most, asleep)
            .unwrap_or_else(PoisonError::into_inner);
        waiting.committer = Awaits::Nothing;
        waiting
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
    fn wakes_committer(&self) -> bool {
        match self.committer {
            Awaits::Nothing => false,
            Awaits::Anything => !self.batches.is_empty(),
            Awaits::Awaited => self.is_awaited,
            Awaits::Batches(enough) => self.batches.len() >= enough,
        }
    }

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
        let mut expected = 0;
        while let Some(mut group) = self.queue.next(expected) {
            match self.commit(&mut group) {
                Ok(()) => expected = self.acknowledge(group),
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

    /// Tells the index and whoever waits; returns how many batches to expect now.
    fn acknowledge(&self, group: Vec<Batch>) -> usize {
        {
            let mut index = self.index();
            for draft in group.iter().flat_map(|batch| &batch.entries) {
                match draft.subject {
                    Subject::Execution(id) => index.arrived(id, draft.at, &draft.event),
                    Subject::Run(_) => {}
                }
            }
        }
        let waiting = self.queue.len(); // asked before anybody is woken, so that nobody is counted twice
        let waiters = group.into_iter().filter_map(|batch| batch.waiter);
        // Who stopped waiting does not want to know.
        let answered = waiters
            .filter_map(|waiter| waiter.send(Ok(())).ok())
            .count();
        waiting + answered
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
/// How long those who were just answered have to come back. More than a thread needs to be woken, less than a sync.
const GATHER: Duration = Duration::from_micros(100);
const MAX_UNAWAITED_BYTES: usize = 4 * 1024 * 1024;
