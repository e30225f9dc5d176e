//! The handle: what the layer, the command and the bridge use.

use bytes::Bytes;
use tokio::sync::watch;

use super::{Event, ExecutionRecord, JournalError, JournalOptions, RunStarted};
use crate::contract::Class;
use crate::execution::{Permit, Priors, State};
use crate::identity::{
    Correlation, EventId, ExecutionId, Fingerprint, FingerprintKey, IntentScope, RequestId,
    ResultId, RunId, SessionId,
};

/// A journal. Cheap to clone; all clones are one journal. The last one dropped closes it.
#[derive(Clone)]
pub struct Journal {}

/// A call that may become an execution.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are those of `Event::Accepted`")]
#[non_exhaustive]
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

/// The right to drive one execution. One at a time; dropping it gives the execution up, whatever state it is in.
#[must_use = "dropping a lease gives the execution up"]
pub struct Lease {}

/// A dispatch whose record is durable. Only the journal makes one; sending spends it.
#[must_use = "recorded and never sent reads as unknown after a crash"]
pub struct Dispatch {}

/// The server's answer, to be kept.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Answer {
    /// The whole JSON-RPC response message, as the server wrote it.
    pub message: Bytes,
    /// HTTP status of the response that carried it.
    pub status: Option<u16>,
    /// `isError: true` or a JSON-RPC error.
    pub is_error: bool,
    /// `resultType: "input_required"`: a question, not an end.
    pub asks_for_input: bool,
}

/// A kept answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Kept {
    /// The whole JSON-RPC response message; its id is that of the request that first got it.
    pub message: Bytes,
    /// Where it lies.
    pub reference: ResultId,
}

/// The way back to a response stream.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct StreamCursor {
    /// The session it belongs to.
    pub session: Option<SessionId>,
    /// What `Last-Event-ID` has to say.
    pub event: EventId,
    /// The protocol revision.
    pub revision: Option<String>,
}

/// Why an execution was not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// What the decision was made from has changed; look again and decide again.
    #[error("another call of the same action came in between; nothing was sent; decide again")]
    Conflict,
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
    pub async fn open(options: JournalOptions) -> Result<Self, JournalError> {
        todo!()
    }

    /// A journal in memory, for tests and examples: every law but durability.
    pub fn in_memory() -> Self {
        todo!()
    }

    /// The key that fingerprints are made with.
    pub fn fingerprint_key(&self) -> &FingerprintKey {
        todo!()
    }

    /// Records that a process works with this journal. Durable when it returns.
    pub async fn start_run(&self, run: RunStarted) -> Result<(), JournalError> {
        todo!()
    }

    /// Every earlier execution with this fingerprint that may still matter, oldest first. Memory only.
    pub fn find(&self, fingerprint: &Fingerprint) -> Priors {
        todo!()
    }

    /// Accepts, authorizes and dispatches a new execution: three entries, one commit, durable when it returns.
    /// Compare-and-swap on `seen`: of two equal calls at once, one dispatches.
    pub async fn accept(
        &self,
        new: NewExecution,
        seen: &Priors,
        by: &Correlation,
    ) -> Result<Dispatch, AcceptError> {
        todo!()
    }

    /// Takes an execution that nobody drives. `None` when somebody does.
    pub fn take_over(&self, id: ExecutionId) -> Option<Lease> {
        todo!()
    }

    /// Follows an execution that is in the index; `None` when it is not (closed long ago, or never there).
    pub fn watch(&self, id: ExecutionId) -> Option<watch::Receiver<Standing>> {
        todo!()
    }

    /// The record of an execution that is in the index, from memory.
    pub fn open_record(&self, id: ExecutionId) -> Option<ExecutionRecord> {
        todo!()
    }

    /// Unseals the kept answer of an execution. `None` when none is kept.
    pub async fn kept(&self, id: ExecutionId) -> Result<Option<Kept>, JournalError> {
        todo!()
    }

    /// Unseals the way back to the newest dispatch's stream. `None` when none is known.
    pub fn cursor(&self, id: ExecutionId) -> Result<Option<StreamCursor>, JournalError> {
        todo!()
    }

    /// Records that a caller took the kept result. Not waited for: losing it costs a second delivery, never a second action.
    pub fn delivered(&self, id: ExecutionId, request: &RequestId) {
        todo!()
    }

    /// Records that a repeated call was answered from this execution. Not waited for.
    pub fn reattached(&self, id: ExecutionId, request: &RequestId, run: RunId) {
        todo!()
    }

    /// Waits until everything handed in so far is durable.
    pub async fn flush(&self) -> Result<(), JournalError> {
        todo!()
    }

    /// Flushes and closes; later calls fail with [`JournalError::Closed`]. Dropping the last clone does the same, unseen.
    pub async fn close(&self) -> Result<(), JournalError> {
        todo!()
    }
}

impl Lease {
    /// The execution.
    pub fn execution(&self) -> ExecutionId {
        todo!()
    }

    /// A further dispatch of this execution. Durable when it returns.
    pub async fn dispatch(
        self,
        permit: Permit,
        by: &Correlation,
    ) -> Result<Dispatch, JournalError> {
        todo!()
    }

    /// Appends an event and waits until it is durable.
    pub async fn append(&self, event: Event) -> Result<(), JournalError> {
        todo!()
    }

    /// Appends an event without waiting. For what may be lost in a crash without harm.
    pub fn append_soon(&self, event: Event) {
        todo!()
    }

    /// Seals the way back to the stream and appends it without waiting.
    pub fn stream_opened(&self, n: u32, cursor: &StreamCursor) {
        todo!()
    }

    /// Seals and keeps the answer: durable when it returns (law 3).
    pub async fn keep(&self, answer: &Answer) -> Result<ResultId, JournalError> {
        todo!()
    }
}

impl Dispatch {
    /// The execution.
    pub fn execution(&self) -> ExecutionId {
        todo!()
    }

    /// Which dispatch of the execution: 1 for the first.
    pub fn n(&self) -> u32 {
        todo!()
    }

    /// Spends the dispatch. Called where the request is handed to the inner service, and nowhere else.
    pub fn spend(self) -> Lease {
        todo!()
    }
}
