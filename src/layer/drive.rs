//! Drives one side-effecting call, in a task of its own: decides, and carries the decision out.

use std::sync::Arc;
use std::time::Duration;

use http_body::Frame;

use super::call::Call;
use super::caller::{Caller, Departure, Nobody, Outlet};
use super::exchange::Exchange;
use super::pump::{self, End, Keeper, Stream};
use super::receive::{Outcome, exchange_once};
use super::reply::{self, Open, Way};
use super::response_body::Delivery;
use super::shared::Shared;
use super::{BoxError, LayerError};
use crate::execution::{Decision, Evidence, Permit, Priors, ResponseStream, State, decide};
use crate::identity::ExecutionId;
use crate::journal::{AcceptError, Dispatch, Event, JournalError, Lease, Standing};
use crate::wire::{Revision, answer_as, event_for};

/// One side-effecting call on its way.
pub(super) struct Drive {
    pub(super) shared: Arc<Shared>,
    pub(super) exchange: Box<dyn Exchange>,
    pub(super) call: Call,
    pub(super) caller: Caller,
    pub(super) departure: Departure,
}

/// What a step of carrying out came to.
enum Step {
    /// The caller has its answer, or left.
    Ended,
    /// What the decision was made from has changed: look again and decide again.
    Again,
}

impl Drive {
    /// Runs the call to its end. The caller gets exactly one answer, if it stays (law 5).
    pub(super) async fn run(mut self) {
        // A caller that left before anything was accepted wants nothing.
        while !self.departure.happened() {
            let priors = self.shared.journal.find(&self.call.new.fingerprint);
            let decision = decide(&self.call.incoming(), &priors, self.shared.clock.now());
            tracing::Span::current().record("reattach.decision", decision.name());
            let step = match decision {
                Decision::Accept => self.accept(&priors).await,
                Decision::Attach(execution) => self.attach(execution).await,
                Decision::Deliver(execution) => self.deliver(execution).await,
                Decision::Recover(execution) => self.recover(execution).await,
                Decision::Start(execution) => self.go_on(execution, None).await,
                Decision::Continue(execution, permit) => self.go_on(execution, Some(permit)).await,
                Decision::Refuse(execution) => self.still_open(execution).await,
                Decision::Deny(execution) => {
                    let message = reply::denied(execution, self.call.id());
                    self.caller
                        .answer(Ok(reply::respond(message, self.call.accepts, None)));
                    Step::Ended
                }
            };
            match step {
                Step::Ended => {
                    tracing::info!(decision = decision.name(), "side-effecting call ended");
                    return;
                }
                Step::Again => tokio::task::yield_now().await,
            }
        }
    }

    async fn accept(&mut self, priors: &Priors) -> Step {
        match self
            .shared
            .journal
            .accept(self.call.new.clone(), priors, &self.call.correlation)
            .await
        {
            Ok(dispatch) => self.dispatch(dispatch).await,
            Err(AcceptError::Conflict) => Step::Again,
            Err(
                error @ (AcceptError::IntentReused { .. }
                | AcceptError::TooManyOpen { .. }
                | AcceptError::Journal(_)),
            ) => self.refuse(&error),
        }
    }

    /// Sends under an execution that nobody drives: for the first time, or once more by a permit.
    async fn go_on(&mut self, execution: ExecutionId, permit: Option<Permit>) -> Step {
        let Some(lease) = self.shared.journal.take_over(execution) else {
            return Step::Again;
        };
        let dispatched = match permit {
            None => lease.first_dispatch(&self.call.correlation).await,
            Some(permit) => lease.dispatch(permit, &self.call.correlation).await,
        };
        match dispatched {
            Ok(dispatch) => self.dispatch(dispatch).await,
            Err(error) => self.refuse(&error),
        }
    }

    /// Carries out a dispatch, and those that follow from it without the caller.
    async fn dispatch(&mut self, mut dispatch: Dispatch) -> Step {
        let mut resends = 0;
        loop {
            let (execution, n) = (dispatch.execution(), dispatch.n());
            tracing::Span::current()
                .record("reattach.execution.id", tracing::field::display(execution));
            let lease = dispatch.spend();
            let outcome = self.exchange(&lease, n).await;
            let (permit, pause) = match outcome {
                Outcome::Completed => return Step::Ended,
                Outcome::NotKept => {
                    let reason =
                        "the server answered, and the answer could not be kept, so it is withheld";
                    return self
                        .answer_open(execution, State::OutcomeUnknown, reason)
                        .await;
                }
                Outcome::Unknown(evidence) => return self.unknown(&lease, evidence).await,
                Outcome::NotSent(source) => {
                    settle(&lease, n, Evidence::BodyNeverPolled).await;
                    if resends >= self.call.limits.resends {
                        return self.fail(execution, source);
                    }
                    (
                        Permit::NotSent,
                        RESEND_PAUSE * 2_u32.saturating_pow(resends),
                    )
                }
                Outcome::Refused {
                    evidence,
                    response,
                    retry_after,
                } => {
                    settle(&lease, n, evidence).await;
                    let pause =
                        retry_after.filter(|pause| *pause <= self.call.limits.max_retry_after);
                    match pause.filter(|_| resends < self.call.limits.resends) {
                        Some(pause) => (Permit::Rejected, pause),
                        None => {
                            if let Some(response) = response {
                                self.caller.answer(Ok(*response));
                            }
                            return Step::Ended;
                        }
                    }
                }
            };
            resends += 1;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.departure.wait() => return Step::Ended, // nobody waits, and nothing was sent
            }
            dispatch = match lease.dispatch(permit, &self.call.correlation).await {
                Ok(dispatch) => dispatch,
                Err(error) => return self.refuse(&error),
            };
        }
    }

    /// One dispatch, read on for a bounded time after the caller left.
    async fn exchange(&mut self, lease: &Lease, n: u32) -> Outcome {
        let Self {
            shared,
            exchange,
            call,
            caller,
            departure,
        } = self;
        let limit = call.limits.detached_for;
        tokio::select! {
            biased;
            outcome = exchange_once(call, lease, n, shared, exchange.as_mut(), caller) => outcome,
            () = left_for(departure, limit) => Outcome::Unknown(Evidence::DetachedTooLong),
        }
    }

    /// Looks for the result of an execution that nobody drives. Only a result, or proof, changes its state.
    async fn recover(&mut self, execution: ExecutionId) -> Step {
        let Some(lease) = self.shared.journal.take_over(execution) else {
            return Step::Again;
        };
        if let Some(stream) = self.lost_stream(execution) {
            let n = self.record(execution).map_or(1, |record| {
                record.dispatches.len().try_into().unwrap_or(u32::MAX)
            });
            let keeper = Some(Keeper {
                lease: &lease,
                n,
                status: None,
            });
            let Self {
                shared,
                exchange,
                call,
                departure,
                ..
            } = self;
            let limit = call.limits.detached_for;
            let mut nobody = Nobody;
            let end = tokio::select! {
                biased;
                end = pump::read(stream, None, shared, exchange.as_mut(), keeper, &mut nobody) => end,
                () = left_for(departure, limit) => End::Lost,
            };
            match end {
                End::Answered => return self.deliver(execution).await,
                End::Refused(evidence) => {
                    settle(&lease, n, evidence).await;
                    return Step::Again;
                }
                End::NotKept | End::Lost | End::TooLarge => {
                    let reason = "the stream could not be resumed to its answer".to_owned();
                    lease.append_soon(Event::RecoveryFailed {
                        way: "resume".into(),
                        reason,
                    });
                }
            }
        }
        self.reattached(execution);
        self.unknown(&lease, Evidence::OwnerGone).await
    }

    /// The stream of an execution's newest dispatch, where the journal knows the way back to it.
    fn lost_stream(&self, execution: ExecutionId) -> Option<Stream> {
        let cursor = self
            .shared
            .journal
            .cursor(execution)
            .inspect_err(|error| tracing::warn!(%error, "no cursor"))
            .ok()??;
        let request = self
            .record(execution)?
            .dispatches
            .last()?
            .request_id
            .clone();
        let revision = cursor
            .revision
            .as_deref()
            .map_or(Revision::Resumable, Revision::named);
        Some(Stream {
            machine: ResponseStream::lost(revision, self.call.limits.resume, cursor.event),
            request,
            session: cursor.session,
            revision: cursor.revision,
            uri: self.call.head.uri.clone(),
            version: self.call.head.version,
            post: self.call.head.headers.clone(),
            target: self.call.new.target.clone(),
            lesson: None,
        })
    }

    /// Waits for the result of an execution that somebody drives.
    async fn attach(&mut self, execution: ExecutionId) -> Step {
        let Some(mut watch) = self.shared.journal.watch(execution) else {
            return Step::Again;
        };
        let wait = tokio::time::sleep(self.call.limits.attach_wait);
        tokio::pin!(wait);
        loop {
            let Standing { state, owned, .. } = *watch.borrow_and_update();
            match state {
                State::CompletedResultNotDelivered | State::CompletedResultDelivered => {
                    return self.deliver(execution).await;
                }
                State::OutcomeUnknown if !owned => {
                    self.reattached(execution);
                    let reason = self.record(execution).and_then(|record| record.reason);
                    let reason = reason.unwrap_or_else(|| Evidence::OwnerGone.sentence());
                    return self
                        .answer_open(execution, State::OutcomeUnknown, &reason)
                        .await;
                }
                State::InputRequired
                | State::Accepted
                | State::Authorized
                | State::Denied
                | State::Dispatched
                | State::Working
                | State::OutcomeUnknown
                | State::NotExecuted
                | State::Cancelled => {
                    if !owned {
                        return Step::Again;
                    }
                }
            }
            tokio::select! {
                changed = watch.changed() => if changed.is_err() { return Step::Again },
                () = self.departure.wait() => return Step::Ended,
                () = &mut wait => {
                    return self.answer_open(execution, State::Dispatched, "another call of the same action is waiting for it").await;
                }
            }
        }
    }

    /// Says at once where an open execution stands.
    async fn still_open(&mut self, execution: ExecutionId) -> Step {
        self.reattached(execution);
        let record = self.record(execution);
        let state = record
            .as_ref()
            .map_or(State::Dispatched, |record| record.state);
        let reason = record.and_then(|record| record.reason);
        let reason =
            reason.unwrap_or_else(|| "another call of the same action is waiting for it".into());
        self.answer_open(execution, state, &reason).await
    }

    /// Delivers what is kept, under this request's id.
    async fn deliver(&mut self, execution: ExecutionId) -> Step {
        self.reattached(execution);
        let kept = match self.shared.journal.kept(execution).await {
            Ok(kept) => kept.and_then(|kept| answer_as(&kept.message, self.call.id())),
            Err(error) => {
                tracing::error!(%error, %execution, "a kept result can't be read");
                None
            }
        };
        let Some(message) = kept else {
            let reason = "it completed, and its kept result can't be read";
            return self
                .answer_open(execution, State::CompletedResultNotDelivered, reason)
                .await;
        };
        let request = self.call.id().clone();
        let delivery = Delivery {
            journal: self.shared.journal.clone(),
            execution,
            request,
        };
        self.caller.answer(Ok(reply::respond(
            message,
            self.call.accepts,
            Some(delivery),
        )));
        Step::Ended
    }

    /// Records that nothing proves whether it happened, and says so. What was recorded first stays the reason: a recovery
    /// that fails never replaces it.
    async fn unknown(&mut self, lease: &Lease, evidence: Evidence) -> Step {
        let execution = lease.execution();
        let known = self
            .record(execution)
            .filter(|record| record.state == State::OutcomeUnknown);
        let reason = match known.and_then(|record| record.reason) {
            Some(reason) => reason,
            None => {
                if let Err(error) = lease.append(Event::OutcomeUnknown { evidence }).await {
                    // The dispatch is in the journal, so that a later reader comes to the same verdict.
                    tracing::error!(%error, %execution, "an unknown outcome could not be recorded");
                }
                evidence.sentence()
            }
        };
        tracing::warn!(%execution, tool = %self.call.new.tool, %reason, "outcome unknown");
        self.answer_open(execution, State::OutcomeUnknown, &reason)
            .await
    }

    /// The answer for an execution without a result: as the response, or as the last event of an open stream.
    async fn answer_open(&mut self, execution: ExecutionId, state: State, reason: &str) -> Step {
        let record = self.record(execution);
        let resumed = record.as_ref().is_some_and(|record| {
            record
                .dispatches
                .iter()
                .any(|dispatch| dispatch.cursor.is_some())
        });
        let open = Open {
            execution,
            tool: self.call.new.tool.clone(),
            state,
            first_dispatched_at: record.and_then(|record| record.dispatched_at),
            reason: reason.to_owned(),
            resume: if resumed {
                Way::Tried
            } else {
                Way::Unavailable
            },
            query: Way::Unavailable,
        };
        let message = reply::open(&open, self.call.id(), self.call.revision);
        if self.caller.is_open() {
            self.caller.frame(Frame::data(event_for(&message))).await;
        } else {
            self.caller
                .answer(Ok(reply::respond(message, self.call.accepts, None)));
        }
        Step::Ended
    }

    /// Records that this call was a repeat, and what it was answered from.
    fn reattached(&self, execution: ExecutionId) {
        tracing::Span::current()
            .record("reattach.execution.id", tracing::field::display(execution));
        self.shared
            .journal
            .reattached(execution, self.call.id(), self.call.new.run_id);
    }

    /// Law 6: what can't be recorded is not sent, and the caller is told so.
    fn refuse(&mut self, error: &(dyn std::error::Error + 'static)) -> Step {
        tracing::error!(error, tool = %self.call.new.tool, "side-effecting call refused; nothing was sent");
        let message = reply::refused(&error.to_string(), Some(self.call.id()));
        self.caller
            .answer(Ok(reply::respond(message, self.call.accepts, None)));
        Step::Ended
    }

    fn fail(&mut self, execution: ExecutionId, source: BoxError) -> Step {
        self.caller
            .answer(Err(LayerError::NotSent { execution, source }));
        Step::Ended
    }

    fn record(&self, execution: ExecutionId) -> Option<crate::journal::ExecutionRecord> {
        self.shared.journal.open_record(execution)
    }
}

/// Records what a dispatch without a result amounts to. That it can't be recorded makes it unknown after a restart, which
/// is less than is known now, and never more.
async fn settle(lease: &Lease, n: u32, evidence: Evidence) {
    if let Err(error) = lease.append(Event::Settled { n, evidence }).await {
        let error: &JournalError = &error;
        tracing::error!(%error, execution = %lease.execution(), "evidence could not be recorded");
    }
}

/// Resolves when the caller has been gone for this long.
async fn left_for(departure: &mut Departure, limit: Duration) {
    departure.wait().await;
    tokio::time::sleep(limit).await;
}

const RESEND_PAUSE: Duration = Duration::from_millis(100);
