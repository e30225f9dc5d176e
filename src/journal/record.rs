//! An execution as dumps and `show --json` print it: the fold of its events.

use serde::{Deserialize, Serialize};

use super::JournalError;
use super::event::Event;
use crate::clock::{Timestamp, rfc3339_millis};
use crate::contract::Class;
use crate::execution::{Evidence, Permit, State, Verdict};
use crate::identity::{ExecutionId, Fingerprint, IntentScope, RequestId, ResultId, RunId};

/// An execution. Absent means: not reached.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename = "execution")]
#[non_exhaustive]
#[expect(
    missing_docs,
    reason = "the names are those of the events and of the design's record"
)]
pub struct ExecutionRecord {
    pub schema: u32,
    pub execution_id: ExecutionId,
    pub fingerprint: Fingerprint,
    pub tool: String,
    pub class: Class,
    pub actor: String,
    pub run_id: RunId,
    pub target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential_ref: Option<String>,
    pub intent_scope: IntentScope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    pub state: State,
    #[serde(with = "rfc3339_millis")]
    pub accepted_at: Timestamp,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "rfc3339_millis::option"
    )]
    pub authorized_at: Option<Timestamp>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "rfc3339_millis::option"
    )]
    pub dispatched_at: Option<Timestamp>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "rfc3339_millis::option"
    )]
    pub completed_at: Option<Timestamp>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "rfc3339_millis::option"
    )]
    pub delivered_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_reference: Option<ResultId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<String>,
    pub dispatches: Vec<DispatchRecord>,
    /// How many times a stream of it was resumed.
    #[serde(default)]
    pub resumes: u32,
    /// How many repeated calls were answered from it.
    #[serde(default)]
    pub reattached: u32,
    /// Why it stands where it stands, when that needs saying.
    pub reason: Option<String>,
}

/// One dispatch of an execution.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are those of the event")]
pub struct DispatchRecord {
    pub n: u32,
    pub permit: Option<Permit>,
    #[serde(with = "rfc3339_millis")]
    pub at: Timestamp,
    pub request_id: RequestId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    pub evidence: Option<Evidence>,
    /// The sealed way back to its stream. Not part of dumps.
    #[serde(skip)]
    pub cursor: Option<String>,
}

impl ExecutionRecord {
    /// The record that begins with this event; none when the event is not [`Event::Accepted`].
    pub(super) fn begin(id: ExecutionId, at: Timestamp, event: &Event) -> Option<Self> {
        let Event::Accepted {
            fingerprint,
            tool,
            class,
            actor,
            run_id,
            target,
            credential_ref,
            intent_scope,
            intent,
        } = event
        else {
            return None;
        };
        Some(Self {
            schema: SCHEMA,
            execution_id: id,
            fingerprint: *fingerprint,
            tool: tool.clone(),
            class: *class,
            actor: actor.clone(),
            run_id: *run_id,
            target: target.clone(),
            credential_ref: credential_ref.clone(),
            intent_scope: *intent_scope,
            intent: intent.clone(),
            state: State::Accepted,
            accepted_at: at,
            authorized_at: None,
            dispatched_at: None,
            completed_at: None,
            delivered_at: None,
            target_status: None,
            result_reference: None,
            result_digest: None,
            dispatches: Vec::new(),
            resumes: 0,
            reattached: 0,
            reason: None,
        })
    }

    /// Takes one more event in.
    ///
    /// # Errors
    /// When no execution takes that step; the record is unchanged then.
    pub(super) fn take(&mut self, at: Timestamp, event: &Event) -> Result<(), JournalError> {
        match event {
            Event::RunStarted(_) | Event::Accepted { .. } => {
                return Err(JournalError::Misplaced {
                    event: event.name(),
                });
            }
            Event::Authorized { .. } => {
                self.step(State::Authorized)?;
                self.authorized_at = Some(at);
            }
            Event::Denied { reason, .. } => {
                self.step(State::Denied)?;
                self.reason = Some(reason.clone());
            }
            Event::Dispatched {
                n,
                permit,
                request_id,
                session,
                revision,
            } => {
                // Law 2: the first needs no permit, and every further one has its own.
                if *n as usize != self.dispatches.len() + 1 || (*n == 1) != permit.is_none() {
                    return Err(JournalError::Misplaced {
                        event: event.name(),
                    });
                }
                self.step(State::Dispatched)?;
                self.dispatched_at = self.dispatched_at.or(Some(at));
                self.reason = None;
                self.dispatches.push(DispatchRecord {
                    n: *n,
                    permit: *permit,
                    at,
                    request_id: request_id.clone(),
                    session: session.clone(),
                    revision: revision.clone(),
                    evidence: None,
                    cursor: None,
                });
            }
            Event::Settled { n, evidence } => self.settle(*n, *evidence, event)?,
            Event::StreamOpened { n, cursor } => {
                self.dispatch_mut(*n, event)?.cursor = Some(cursor.clone());
            }
            Event::StreamResumed { n, .. } => {
                self.dispatch_mut(*n, event)?;
                self.resumes = self.resumes.saturating_add(1);
            }
            Event::RecoveryFailed { .. } | Event::Ignored { .. } => {}
            Event::Completed {
                target_status,
                result_reference,
                result_digest,
                ..
            } => {
                self.step(State::CompletedResultNotDelivered)?;
                self.completed_at = Some(at);
                self.target_status = *target_status;
                self.result_reference = Some(*result_reference);
                self.result_digest = Some(result_digest.clone());
                self.reason = None;
            }
            Event::InputRequired {
                result_reference,
                result_digest,
            } => {
                self.step(State::InputRequired)?;
                self.result_reference = Some(*result_reference);
                self.result_digest = Some(result_digest.clone());
            }
            Event::Delivered { .. } => {
                self.step_or_stay(State::CompletedResultDelivered)?;
                self.delivered_at = self.delivered_at.or(Some(at));
            }
            Event::Reattached { .. } => self.reattached = self.reattached.saturating_add(1),
            Event::OutcomeUnknown { evidence } => {
                self.step_or_stay(State::OutcomeUnknown)?;
                self.reason = Some(evidence.sentence());
                if let Some(newest) = self.dispatches.last_mut() {
                    newest.evidence = newest.evidence.or(Some(*evidence));
                }
            }
        }
        Ok(())
    }

    /// What its dispatches without a result amount to, all taken together.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        match self.state {
            State::OutcomeUnknown => Some(Verdict::Unknown),
            State::Accepted
            | State::Authorized
            | State::Denied
            | State::Dispatched
            | State::InputRequired
            | State::Working
            | State::CompletedResultNotDelivered
            | State::CompletedResultDelivered
            | State::NotExecuted
            | State::Cancelled => self
                .dispatches
                .iter()
                .rev()
                .find_map(|dispatch| dispatch.evidence)
                .map(Evidence::verdict),
        }
    }

    /// Where the kept answer or question lies, when there is one to give.
    pub(super) fn kept_reference(&self) -> Option<ResultId> {
        match self.state {
            State::CompletedResultNotDelivered
            | State::CompletedResultDelivered
            | State::InputRequired => self.result_reference,
            // After a continuation was dispatched, the question it answers is no answer any more.
            State::Accepted
            | State::Authorized
            | State::Denied
            | State::Dispatched
            | State::Working
            | State::OutcomeUnknown
            | State::NotExecuted
            | State::Cancelled => None,
        }
    }

    /// An older dispatch is settled without moving its execution, which stands where the newest one left it.
    fn settle(&mut self, n: u32, evidence: Evidence, event: &Event) -> Result<(), JournalError> {
        self.dispatch_mut(n, event)?;
        if n as usize == self.dispatches.len() {
            self.step_or_stay(self.standing_after(n, evidence))?;
            self.reason = Some(evidence.sentence());
        }
        self.dispatch_mut(n, event)?.evidence = Some(evidence);
        Ok(())
    }

    /// A dispatch that had no effect leaves its execution as the earlier ones left it: an unknown stays unknown.
    fn standing_after(&self, n: u32, evidence: Evidence) -> State {
        let had_no_effect = |evidence: Evidence| match evidence.verdict() {
            Verdict::NotSent | Verdict::Rejected => true,
            Verdict::Unknown => false,
        };
        if !had_no_effect(evidence) {
            return State::OutcomeUnknown;
        }
        let (earlier, newest) = self.dispatches.split_at(n as usize - 1);
        if newest
            .first()
            .is_some_and(|dispatch| dispatch.permit == Some(Permit::InputContinuation))
        {
            return State::InputRequired;
        }
        if earlier
            .iter()
            .all(|dispatch| dispatch.evidence.is_some_and(had_no_effect))
        {
            State::NotExecuted
        } else {
            State::OutcomeUnknown
        }
    }

    fn dispatch_mut(&mut self, n: u32, event: &Event) -> Result<&mut DispatchRecord, JournalError> {
        let dispatch = (n as usize)
            .checked_sub(1)
            .and_then(|at| self.dispatches.get_mut(at));
        dispatch.ok_or(JournalError::Misplaced {
            event: event.name(),
        })
    }

    fn step(&mut self, next: State) -> Result<(), JournalError> {
        self.may(next)?;
        self.state = next;
        Ok(())
    }

    /// For what may be said again without saying anything new.
    fn step_or_stay(&mut self, next: State) -> Result<(), JournalError> {
        if self.state == next {
            Ok(())
        } else {
            self.step(next)
        }
    }

    fn may(&self, next: State) -> Result<(), JournalError> {
        if self.state.allows(next) {
            return Ok(());
        }
        Err(JournalError::Impossible {
            execution: self.execution_id,
            from: self.state,
            to: next,
            entry: None,
        })
    }
}

/// The version of the record's shape.
const SCHEMA: u32 = 1;
