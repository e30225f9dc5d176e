//! Driving an execution: the lease, and the dispatch that a durable record gives the right to.

use super::answer::{Answer, StreamCursor};
use super::handle::{Journal, POLICY, blocking, dispatched};
use super::{Event, JournalError};
use crate::execution::{Evidence, Permit, State};
use crate::identity::{Correlation, ExecutionId, ResultId};

/// The right to drive one execution. One at a time; dropping it gives the execution up, whatever state it is in.
#[must_use = "dropping a lease gives the execution up"]
pub struct Lease {
    journal: Journal,
    execution: ExecutionId,
}

/// A dispatch whose record is durable. Only the journal makes one; sending spends it.
///
/// One that is dropped unspent is proof that nothing was sent, and is recorded as that.
#[must_use = "recorded and never sent reads as unknown after a crash"]
pub struct Dispatch {
    /// Gone once it is spent.
    lease: Option<Lease>,
    execution: ExecutionId,
    n: u32,
}

impl Lease {
    pub(super) fn new(journal: Journal, execution: ExecutionId) -> Self {
        Self { journal, execution }
    }

    /// The execution.
    #[must_use]
    pub fn execution(&self) -> ExecutionId {
        self.execution
    }

    /// The first dispatch of an execution that was accepted and never dispatched. Durable when it returns.
    ///
    /// # Errors
    /// When it is not durable, or the execution was dispatched before. Nothing may be sent then.
    ///
    /// # Cancel safety
    /// As [`Journal::accept`].
    pub async fn first_dispatch(self, by: &Correlation) -> Result<Dispatch, JournalError> {
        let state = self
            .journal
            .open_record(self.execution)
            .map(|record| record.state);
        if state == Some(State::Accepted) {
            self.append_any(Event::Authorized { by: POLICY.into() })
                .await?;
        }
        self.dispatch_with(None, by).await
    }

    /// A further dispatch of this execution. Durable when it returns.
    ///
    /// # Errors
    /// When it is not durable, or there was no dispatch before. Nothing may be sent then.
    ///
    /// # Cancel safety
    /// As [`Journal::accept`].
    pub async fn dispatch(
        self,
        permit: Permit,
        by: &Correlation,
    ) -> Result<Dispatch, JournalError> {
        self.dispatch_with(Some(permit), by).await
    }

    async fn dispatch_with(
        self,
        permit: Option<Permit>,
        by: &Correlation,
    ) -> Result<Dispatch, JournalError> {
        let n = u32::try_from(self.journal.dispatches(self.execution)? + 1).unwrap_or(u32::MAX);
        let event = dispatched(n, permit, by);
        let (journal, execution) = (self.journal.clone(), self.execution);
        let unspent = Dispatch::new(self, n);
        match journal.append(execution, Vec::new(), event).await {
            Ok(()) => Ok(unspent),
            Err(error) => {
                // The entry was refused, so there is no dispatch that could have been left unspent.
                drop(unspent.spend());
                Err(error)
            }
        }
    }

    /// Appends an event and waits until it is durable.
    ///
    /// # Errors
    /// When it is not durable, when no execution takes that step, or when the event has its own way into the journal
    /// (`Accepted`, `Dispatched`, `Completed`, `InputRequired`).
    ///
    /// # Cancel safety
    /// The entry is written also when nobody waits any more.
    pub async fn append(&self, event: Event) -> Result<(), JournalError> {
        refuse_misplaced(&event)?;
        self.append_any(event).await
    }

    /// Appends an event without waiting. For what may be lost in a crash without harm.
    pub fn append_soon(&self, event: Event) {
        match refuse_misplaced(&event) {
            Ok(()) => self.journal.append_soon(self.execution, event),
            Err(error) => {
                tracing::error!(%error, execution = %self.execution, "an entry was not appended")
            }
        }
    }

    /// Seals the way back to the stream and appends it without waiting.
    pub fn stream_opened(&self, n: u32, cursor: &StreamCursor) {
        let cursor = self
            .journal
            .keys()
            .vault
            .seal_cursor(self.execution, &cursor.to_plain());
        self.journal
            .append_soon(self.execution, Event::StreamOpened { n, cursor });
    }

    /// Seals and keeps the answer: durable when it returns (law 3).
    ///
    /// # Errors
    /// When it is not durable: the caller must not see the answer as kept.
    ///
    /// # Cancel safety
    /// Once the answer is sealed, it is written also when nobody waits any more.
    pub async fn keep(&self, answer: &Answer) -> Result<ResultId, JournalError> {
        let (execution, reference) = (self.execution, ResultId::generate(self.journal.now()));
        let (keys, message) = (self.journal.keys().clone(), answer.message.clone());
        let seal = move || keys.vault.seal(execution, reference, &message);
        let sealed = if answer.message.len() > SEALED_IN_PLACE_BYTES {
            blocking(seal).await
        } else {
            seal()
        };
        let (result_reference, result_digest) = (reference, sealed.digest);
        let event = if answer.asks_for_input {
            Event::InputRequired {
                result_reference,
                result_digest,
            }
        } else {
            let (target_status, is_error) = (answer.status, answer.is_error);
            Event::Completed {
                target_status,
                result_reference,
                result_digest,
                is_error,
            }
        };
        self.journal.append(execution, sealed.writes, event).await?;
        Ok(reference)
    }

    async fn append_any(&self, event: Event) -> Result<(), JournalError> {
        self.journal.append(self.execution, Vec::new(), event).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.journal.give_up(self.execution);
    }
}

impl Dispatch {
    pub(super) fn new(lease: Lease, n: u32) -> Self {
        Self {
            execution: lease.execution,
            lease: Some(lease),
            n,
        }
    }

    /// The execution.
    #[must_use]
    pub fn execution(&self) -> ExecutionId {
        self.execution
    }

    /// Which dispatch of the execution: 1 for the first.
    #[must_use]
    pub fn n(&self) -> u32 {
        self.n
    }

    /// Spends the dispatch. Called where the request is handed to the inner service, and nowhere else.
    pub fn spend(mut self) -> Lease {
        self.lease
            .take()
            .expect("a dispatch is spent once, by value")
    }
}

impl Drop for Dispatch {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.append_soon(Event::Settled {
                n: self.n,
                evidence: Evidence::BodyNeverPolled,
            });
        }
    }
}

/// What is durable only together with something else goes in by its own door.
fn refuse_misplaced(event: &Event) -> Result<(), JournalError> {
    match event {
        Event::RunStarted(_)
        | Event::Accepted { .. }
        | Event::Dispatched { .. }
        | Event::Completed { .. }
        | Event::InputRequired { .. } => Err(JournalError::Misplaced {
            event: event.name(),
        }),
        Event::Authorized { .. }
        | Event::Denied { .. }
        | Event::Settled { .. }
        | Event::StreamOpened { .. }
        | Event::StreamResumed { .. }
        | Event::RecoveryFailed { .. }
        | Event::Delivered { .. }
        | Event::Reattached { .. }
        | Event::OutcomeUnknown { .. }
        | Event::Ignored { .. } => Ok(()),
    }
}

/// Larger answers are sealed off the async threads.
const SEALED_IN_PLACE_BYTES: usize = 64 * 1024;
