//! The handle: what the layer, the command and the bridge use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use super::answer::{Kept, StreamCursor};
use super::committer::{Batch, Committer, Queue};
use super::entry::{Draft, Subject};
use super::index::Index;
use super::keys::{Keys, MasterKey};
use super::lease::{Dispatch, Lease};
use super::open::{self, OwnedStore};
use super::store::{MemoryStore, Store, Write};
use super::{Event, ExecutionRecord, JournalError, JournalOptions, Reader, RunStarted, directory};
use crate::clock::{Clock, Timestamp};
use crate::contract::Class;
use crate::execution::{Priors, State};
use crate::identity::{
    Correlation, ExecutionId, Fingerprint, FingerprintKey, IntentScope, RequestId, RunId,
};

/// A journal. Cheap to clone; all clones are one journal. The last one dropped closes it.
#[derive(Clone)]
pub struct Journal {
    inner: Arc<Inner>,
}

struct Inner {
    queue: Arc<Queue>,
    index: Arc<Mutex<Index>>,
    keys: Arc<Keys>,
    clock: Arc<dyn Clock>,
    max_open_per_actor: usize,
    /// Whether waiting for the committer holds up a paused clock, so that tests see time as if commits took none.
    holds_time: bool,
    /// Gone once the journal is closed.
    store: Mutex<Option<Arc<dyn Store>>>,
    committer: Mutex<Option<JoinHandle<()>>>,
}

/// A call that may become an execution.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of `Event::Accepted`")]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct NewExecution {
    pub fingerprint: Fingerprint,
    pub tool: String,
    pub class: Class,
    pub actor: String,
    pub run_id: RunId,
    pub target: String,
    pub credential_ref: Option<String>,
    pub intent_scope: IntentScope,
    pub intent: Option<String>,
}

/// Where an execution stands, and whether somebody in reach drives it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Standing {
    /// Its state, as durable as the journal says.
    pub state: State,
    /// Whether a [`Lease`] on it is held.
    pub owned: bool,
}

/// Why an execution was not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// What the decision was made from has changed; look again and decide again.
    #[error("another call of the same action came in between; nothing was sent; decide again")]
    Conflict,
    /// The intent that the call names was used for another action.
    #[error(
        "its intent was used for another action, {execution}; nothing was sent; an intent names one action, so take another name"
    )]
    IntentReused {
        /// The execution that has it.
        execution: ExecutionId,
    },
    /// Too many executions of this actor are open.
    #[error(
        "{open} executions of this actor are open, and {limit} are allowed; nothing was sent; resolve some"
    )]
    TooManyOpen {
        /// How many are open.
        open: usize,
        /// How many may be.
        limit: usize,
    },
    /// The journal could not make it durable.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Journal {
    /// Opens the journal in a directory, or makes one.
    ///
    /// # Errors
    /// When the directory, the key or the store can't be used, or what is in it is not what was written. Nothing was
    /// written then, and the error names the file and what to do.
    pub async fn open(options: JournalOptions) -> Result<Self, JournalError> {
        blocking(move || {
            directory::make(&options.dir)?;
            let key = |is_new| Ok(MasterKey::load(&options.key, &options.dir, is_new)?);
            let (store, master) = OwnedStore::open(&options.dir, options.store, key)?;
            Self::start(Arc::new(store), &master, &options, false)
        })
        .await
    }

    /// Opens the journal in a store that the caller made, or makes one there. The options' directory is not touched.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), the directory's excepted.
    pub async fn open_in(
        store: Arc<dyn Store>,
        options: JournalOptions,
    ) -> Result<Self, JournalError> {
        blocking(move || {
            let master = MasterKey::load(&options.key, &options.dir, true)?;
            Self::start(store, &master, &options, false)
        })
        .await
    }

    /// A journal in memory, for tests and examples: every law but durability.
    ///
    /// # Panics
    /// When the operating system starts no thread.
    #[must_use]
    pub fn in_memory() -> Self {
        let options = JournalOptions::new("");
        Self::start(
            Arc::new(MemoryStore::default()),
            &MasterKey::ephemeral(),
            &options,
            true,
        )
        .expect("an empty store in memory has nothing that could be wrong")
    }

    fn start(
        store: Arc<dyn Store>,
        master: &MasterKey,
        options: &JournalOptions,
        holds_time: bool,
    ) -> Result<Self, JournalError> {
        let (keys, genesis) = open::keys(&*store, master)?;
        let mut index = Index::new(options.closed_in_memory);
        let tip = open::replay(&*store, genesis, &mut index)?;
        let queue = Arc::new(Queue::default());
        let index = Arc::new(Mutex::new(index));
        let committer = Committer {
            queue: queue.clone(),
            index: index.clone(),
            store: store.clone(),
            tip,
        };
        let committer = std::thread::Builder::new()
            .name("reattach-committer".into())
            .spawn(move || committer.run())
            .map_err(|error| JournalError::Directory {
                dir: options.dir.clone(),
                doing: "the committer's thread can't be started",
                advice: "raise the limit of threads",
                source: Some(Arc::new(error)),
            })?;
        Ok(Self {
            inner: Arc::new(Inner {
                queue,
                index,
                keys: Arc::new(keys),
                clock: options.clock.clone(),
                max_open_per_actor: options.max_open_per_actor,
                holds_time,
                store: Mutex::new(Some(store)),
                committer: Mutex::new(Some(committer)),
            }),
        })
    }

    /// The key that fingerprints are made with.
    #[must_use]
    pub fn fingerprint_key(&self) -> &FingerprintKey {
        &self.inner.keys.fingerprint
    }

    /// Records that a process works with this journal. Durable when it returns.
    ///
    /// # Errors
    /// When it is not durable.
    ///
    /// # Cancel safety
    /// The entry is written also when nobody waits any more.
    pub async fn start_run(&self, run: RunStarted) -> Result<(), JournalError> {
        let subject = Subject::Run(run.run_id);
        let draft = Draft::new(self.now(), subject, Event::RunStarted(run))?;
        let (waiter, news) = oneshot::channel();
        self.inner.queue.push(Batch {
            entries: vec![draft],
            waiter: Some(waiter),
            ..Batch::default()
        })?;
        self.hear(news).await
    }

    /// Every earlier execution with this fingerprint that may still matter, oldest first. Memory only.
    #[must_use]
    pub fn find(&self, fingerprint: &Fingerprint) -> Priors {
        self.index().priors(fingerprint)
    }

    /// Accepts, authorizes and dispatches a new execution: three entries, one commit, durable when it returns.
    /// Compare-and-swap on `seen`: of two equal calls at once, one dispatches.
    ///
    /// # Errors
    /// Nothing may be sent then. After [`AcceptError::Conflict`], find and decide again.
    ///
    /// # Cancel safety
    /// The entries are written also when nobody waits any more; the journal then adds that nothing was sent.
    pub async fn accept(
        &self,
        new: NewExecution,
        seen: &Priors,
        by: &Correlation,
    ) -> Result<Dispatch, AcceptError> {
        let now = self.now();
        let id = ExecutionId::generate(now);
        let fingerprint = new.fingerprint;
        let (actor, intent) = (new.actor.clone(), new.intent.clone());
        let events = [
            new.into_event(),
            Event::Authorized { by: POLICY.into() },
            dispatched(1, None, by),
        ];
        let (dispatch, news) = {
            let mut index = self.index();
            self.inner.queue.check()?;
            if index.priors(&fingerprint).version != seen.version {
                return Err(AcceptError::Conflict);
            }
            if let Some(intent) = &intent
                && let Some(execution) = index.intent_of_another(&actor, intent, &fingerprint)
            {
                return Err(AcceptError::IntentReused { execution });
            }
            let (open, limit) = (index.open(&actor), self.inner.max_open_per_actor);
            if open >= limit {
                return Err(AcceptError::TooManyOpen { open, limit });
            }
            let subject = Subject::Execution(id);
            let mut entries = Vec::with_capacity(events.len());
            for event in events {
                entries.push(Draft::new(now, subject, event)?);
            }
            let (waiter, news) = oneshot::channel();
            let record = ExecutionRecord::begin(id, now, &entries[0].event)
                .expect("the first event is `Accepted`");
            index.insert(record);
            for draft in &entries[1..] {
                index.advance(id, now, &draft.event)?;
            }
            self.inner.queue.push(Batch {
                entries,
                waiter: Some(waiter),
                ..Batch::default()
            })?;
            // Made before the wait: dropped with this future, it tells that nothing was sent.
            (Dispatch::new(Lease::new(self.clone(), id), 1), news)
        };
        self.hear(news).await?;
        Ok(dispatch)
    }

    /// Takes an execution that nobody drives. `None` when somebody does.
    #[must_use]
    pub fn take_over(&self, id: ExecutionId) -> Option<Lease> {
        self.index()
            .take_over(id)
            .then(|| Lease::new(self.clone(), id))
    }

    /// Follows an execution that is in the index; `None` when it is not (closed long ago, or never there).
    ///
    /// The sender goes away when the execution turns out never to have become durable: nothing was sent for it.
    #[must_use]
    pub fn watch(&self, id: ExecutionId) -> Option<watch::Receiver<Standing>> {
        self.index().watch(id)
    }

    /// The record of an execution that is in the index, from memory.
    #[must_use]
    pub fn open_record(&self, id: ExecutionId) -> Option<ExecutionRecord> {
        self.index().record(id).cloned()
    }

    /// How many executions the index holds.
    #[must_use]
    pub fn executions_in_memory(&self) -> usize {
        self.index().len()
    }

    /// Unseals the kept answer of an execution. `None` when none is kept.
    ///
    /// # Errors
    /// When it can't be read or unsealed; the record is intact.
    pub async fn kept(&self, id: ExecutionId) -> Result<Option<Kept>, JournalError> {
        let Some(reference) = self
            .index()
            .record(id)
            .and_then(ExecutionRecord::kept_reference)
        else {
            return Ok(None);
        };
        let store = self.store()?;
        let keys = self.inner.keys.clone();
        let plain = blocking(move || keys.vault.unseal(&*store, id, reference)).await?;
        Ok(Some(Kept {
            message: Bytes::copy_from_slice(&plain),
            reference,
        }))
    }

    /// Unseals the way back to the newest dispatch's stream. `None` when none is known.
    ///
    /// # Errors
    /// When it can't be unsealed.
    pub fn cursor(&self, id: ExecutionId) -> Result<Option<StreamCursor>, JournalError> {
        let index = self.index();
        let newest = index.record(id).and_then(|record| record.dispatches.last());
        let Some(sealed) = newest.and_then(|dispatch| dispatch.cursor.as_deref()) else {
            return Ok(None);
        };
        let plain = self.inner.keys.vault.unseal_cursor(id, sealed);
        let cursor = plain.and_then(|plain| StreamCursor::from_plain(&plain));
        cursor
            .map(Some)
            .ok_or(JournalError::SealedCursor { execution: id })
    }

    /// Records that a caller took the kept result. Not waited for: losing it costs a second delivery, never a second action.
    pub fn delivered(&self, id: ExecutionId, request: &RequestId) {
        self.append_soon(
            id,
            Event::Delivered {
                request_id: request.clone(),
            },
        );
    }

    /// Records that a repeated call was answered from this execution. Not waited for.
    pub fn reattached(&self, id: ExecutionId, request: &RequestId, run: RunId) {
        self.append_soon(
            id,
            Event::Reattached {
                request_id: request.clone(),
                run_id: run,
            },
        );
    }

    /// Waits until everything handed in so far is durable.
    ///
    /// # Errors
    /// When it is not.
    pub async fn flush(&self) -> Result<(), JournalError> {
        let (waiter, news) = oneshot::channel();
        self.inner.queue.push(Batch {
            waiter: Some(waiter),
            ..Batch::default()
        })?;
        self.hear(news).await
    }

    /// Flushes and closes; later calls fail with [`JournalError::Closed`]. Dropping the last clone does the same, unseen.
    ///
    /// # Errors
    /// When something handed in earlier is not durable. The journal is closed all the same.
    pub async fn close(&self) -> Result<(), JournalError> {
        let flushed = self.flush().await;
        let inner = self.inner.clone();
        blocking(move || inner.end()).await;
        flushed
    }

    /// Reads this journal while it works.
    ///
    /// # Errors
    /// When it is closed.
    pub fn reader(&self) -> Result<Reader, JournalError> {
        Reader::of(self.store()?)
    }

    /// Appends events in one commit group, after `writes`; durable when it returns.
    pub(super) async fn append(
        &self,
        id: ExecutionId,
        writes: Vec<Write>,
        event: Event,
    ) -> Result<(), JournalError> {
        let mut draft = Draft::new(self.now(), Subject::Execution(id), event)?;
        let news = {
            let mut index = self.index();
            self.inner.queue.check()?;
            draft.at = index.advance(id, draft.at, &draft.event)?;
            let (waiter, news) = oneshot::channel();
            self.inner.queue.push(Batch {
                writes,
                entries: vec![draft],
                waiter: Some(waiter),
            })?;
            news
        };
        self.hear(news).await
    }

    /// Appends an event that may be lost in a crash without harm.
    pub(super) fn append_soon(&self, id: ExecutionId, event: Event) {
        if let Err(error) = self.try_append_soon(id, event) {
            tracing::debug!(%error, execution = %id, "an entry that nobody waits for was not appended");
        }
    }

    fn try_append_soon(&self, id: ExecutionId, event: Event) -> Result<(), JournalError> {
        let mut draft = Draft::new(self.now(), Subject::Execution(id), event)?;
        let mut index = self.index();
        self.inner.queue.check()?;
        if !self.inner.queue.has_room() {
            tracing::warn!(execution = %id, event = draft.event.name(), "the journal is behind; an entry is left out");
            return Ok(());
        }
        draft.at = index.advance(id, draft.at, &draft.event)?;
        self.inner.queue.push(Batch {
            entries: vec![draft],
            ..Batch::default()
        })
    }

    pub(super) fn dispatches(&self, id: ExecutionId) -> Result<usize, JournalError> {
        self.index()
            .dispatches(id)
            .ok_or(JournalError::NotOpen { execution: id })
    }

    pub(super) fn give_up(&self, id: ExecutionId) {
        self.index().give_up(id);
    }

    pub(super) fn keys(&self) -> &Arc<Keys> {
        &self.inner.keys
    }

    pub(super) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    async fn hear(
        &self,
        news: oneshot::Receiver<Result<(), JournalError>>,
    ) -> Result<(), JournalError> {
        let heard = if self.inner.holds_time {
            blocking(|| news.blocking_recv()).await
        } else {
            news.await
        };
        // A committer that went away without a word acknowledged nothing.
        heard.unwrap_or(Err(JournalError::Closed))
    }

    fn store(&self) -> Result<Arc<dyn Store>, JournalError> {
        let store = self
            .inner
            .store
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        store.clone().ok_or(JournalError::Closed)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.inner
            .index
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Commits what waits, ends the committer and gives the store up.
    fn end(&self) {
        self.queue.close();
        let committer = self
            .committer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(committer) = committer
            && committer.join().is_err()
        {
            tracing::error!(
                "the committer ended in a panic; what it had not acknowledged may be lost"
            );
        }
        drop(
            self.store
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}

impl NewExecution {
    fn into_event(self) -> Event {
        let Self {
            fingerprint,
            tool,
            class,
            actor,
            run_id,
            target,
            credential_ref,
            intent_scope,
            intent,
        } = self;
        Event::Accepted {
            fingerprint,
            tool,
            class,
            actor,
            run_id,
            target,
            credential_ref,
            intent_scope,
            intent,
        }
    }
}

/// The event of a dispatch by this request.
pub(super) fn dispatched(
    n: u32,
    permit: Option<crate::execution::Permit>,
    by: &Correlation,
) -> Event {
    Event::Dispatched {
        n,
        permit,
        request_id: by.request().clone(),
        session: by.session().map(crate::identity::SessionId::digest),
        revision: by.revision().map(Into::into),
    }
}

/// Runs what blocks off the async threads.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work)
        .await
        .map_err(tokio::task::JoinError::try_into_panic)
    {
        Ok(done) => done,
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        // The runtime is shutting down, and this task with it.
        Err(Err(_cancelled)) => std::future::pending().await,
    }
}

/// What authorizes where no policy is configured.
pub(super) const POLICY: &str = "default";
