//! The decision about a call that may repeat an earlier one: the one place where the rule is written.

use crate::clock::Timestamp;
use crate::contract::{Class, OnOpenMatch, Window};
use crate::execution::{Permit, State, Verdict};
use crate::identity::{ExecutionId, IntentScope, RunId};

/// What the journal knows of earlier executions with the same fingerprint, oldest first.
#[derive(Clone, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Priors {
    /// Grows with every change of any of them; what a compare-and-swap compares.
    pub version: u64,
    /// The executions.
    pub executions: Vec<Prior>,
}

/// One earlier execution.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Prior {
    /// Which.
    pub execution: ExecutionId,
    /// Where it stands.
    pub state: State,
    /// Whether somebody in reach drives it now.
    pub owned: bool,
    /// Its class when it was accepted.
    pub class: Class,
    /// Its scope when it was accepted.
    pub scope: IntentScope,
    /// The run that it belongs to.
    pub run: RunId,
    /// Keyed digest of the intent that its caller named.
    pub intent: Option<String>,
    /// What its newest settled dispatch amounts to.
    pub verdict: Option<Verdict>,
    /// When it last changed.
    pub changed_at: Timestamp,
}

/// The call to decide about. Its fingerprint, and so its actor, target and credential, are those of the priors.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Incoming<'a> {
    /// Its run.
    pub run: RunId,
    /// Keyed digest of the intent that its caller named.
    pub intent: Option<&'a str>,
    /// Whether it carries answers to a question that the server asked.
    pub continues: bool,
    /// How long an earlier execution is found again.
    pub window: Window,
    /// What a repeat meets while an equal execution is open.
    pub on_open_match: OnOpenMatch,
}

/// What to do with a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the service carries out each")]
pub enum Decision {
    /// Accept a new execution.
    Accept,
    /// Wait for the result of one that somebody drives.
    Attach(ExecutionId),
    /// Deliver what is kept, under the new request's id.
    Deliver(ExecutionId),
    /// Look for the result of one that nobody drives. Not a right to send.
    Recover(ExecutionId),
    /// Go on with one that was never dispatched, so that nothing of it can have left: law 1.
    Start(ExecutionId),
    /// Send once more under the same execution, by this permit.
    Continue(ExecutionId, Permit),
    /// Say at once that it is open: neither wait nor look.
    Refuse(ExecutionId),
    /// Answer with the same denial.
    Deny(ExecutionId),
}

impl Decision {
    /// The name in spans and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Attach(_) => "attach",
            Self::Deliver(_) => "deliver",
            Self::Recover(_) => "recover",
            Self::Start(_) => "start",
            Self::Continue(..) => "continue",
            Self::Refuse(_) => "refuse",
            Self::Deny(_) => "deny",
        }
    }
}

/// Decides. Design, section 5; one arm per row of its table.
///
/// A step back of the clock never reopens a window, since an age can't be less than zero; a step forward never closes
/// one early where the window is "until resolved".
#[must_use]
pub fn decide(call: &Incoming<'_>, priors: &Priors, now: Timestamp) -> Decision {
    let Some(prior) = relevant(call, priors, now) else {
        return Decision::Accept;
    };
    let id = prior.execution;
    match (call.on_open_match, prior.state) {
        (OnOpenMatch::Refuse, State::Dispatched | State::Working | State::OutcomeUnknown) => {
            return Decision::Refuse(id);
        }
        (OnOpenMatch::Refuse | OnOpenMatch::Attach, _) => {}
    }
    match prior.state {
        State::Accepted | State::Authorized if prior.owned => Decision::Attach(id),
        State::Accepted | State::Authorized => Decision::Start(id),
        State::Dispatched | State::Working | State::OutcomeUnknown if prior.owned => {
            Decision::Attach(id)
        }
        State::Dispatched | State::Working | State::OutcomeUnknown => Decision::Recover(id),
        State::InputRequired if prior.owned => Decision::Attach(id),
        State::InputRequired if call.continues => Decision::Continue(id, Permit::InputContinuation),
        State::InputRequired => Decision::Deliver(id),
        State::CompletedResultNotDelivered => Decision::Deliver(id),
        // A caller that names the same intent again asks for the same execution.
        State::CompletedResultDelivered
            if call.intent.is_some() && call.intent == prior.intent.as_deref() =>
        {
            Decision::Deliver(id)
        }
        State::CompletedResultDelivered => match prior.scope {
            IntentScope::Durable => Decision::Deliver(id),
            IntentScope::Run | IntentScope::Actor => Decision::Accept,
        },
        State::NotExecuted if prior.owned => Decision::Attach(id), // its owner may send it again
        State::NotExecuted => match prior.verdict {
            Some(Verdict::NotSent) => Decision::Continue(id, Permit::NotSent),
            Some(Verdict::Rejected) => Decision::Continue(id, Permit::Rejected),
            Some(Verdict::Unknown) | None => Decision::Accept, // proved by a probe or an operator: that one is over
        },
        State::Denied => Decision::Deny(id),
        State::Cancelled => Decision::Accept,
    }
}

/// The execution that the call may repeat: in reach, and open before closed, new before old.
fn relevant<'a>(call: &Incoming<'_>, priors: &'a Priors, now: Timestamp) -> Option<&'a Prior> {
    let in_reach = priors
        .executions
        .iter()
        .filter(|prior| same_intent(call, prior) && in_window(call, prior, now));
    in_reach.max_by_key(|prior| (prior.state.is_unresolved(), prior.execution))
}

/// Two named intents tell two actions apart. A call that names none may be any of them, so it matches each: a repeat that
/// is taken for a repeat costs an answer, one that is not costs a second action.
fn same_intent(call: &Incoming<'_>, prior: &Prior) -> bool {
    let in_scope = match prior.scope {
        IntentScope::Run => prior.run == call.run,
        IntentScope::Actor | IntentScope::Durable => true, // the actor is in the fingerprint
    };
    let intents_meet = match (call.intent, &prior.intent) {
        (Some(call), Some(prior)) => call == prior,
        (None, _) | (_, None) => true,
    };
    in_scope && intents_meet
}

fn in_window(call: &Incoming<'_>, prior: &Prior, now: Timestamp) -> bool {
    let age = now.duration_since(prior.changed_at).unsigned_abs();
    let age = if now < prior.changed_at {
        std::time::Duration::ZERO
    } else {
        age
    };
    match prior.state {
        State::Accepted
        | State::Authorized
        | State::Dispatched
        | State::Working
        | State::InputRequired
        | State::OutcomeUnknown => {
            prior.owned || call.window.unresolved.is_none_or(|window| age <= window)
        }
        State::CompletedResultNotDelivered | State::CompletedResultDelivered | State::Denied => {
            age <= call.window.completed
        }
        State::NotExecuted => prior.owned || age <= call.window.completed,
        State::Cancelled => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Contract;
    use std::time::Duration;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    fn id(n: u8) -> ExecutionId {
        ExecutionId::new(at(i64::from(n)), [n; 10])
    }

    fn run(n: u8) -> RunId {
        RunId::new(at(0), [n; 10])
    }

    fn prior(state: State) -> Prior {
        Prior {
            execution: id(1),
            state,
            owned: false,
            class: Class::Irreversible,
            scope: IntentScope::Actor,
            run: run(1),
            intent: None,
            verdict: None,
            changed_at: at(0),
        }
    }

    fn call() -> Incoming<'static> {
        let contract = Contract::of(Class::Irreversible);
        Incoming {
            run: run(2),
            intent: None,
            continues: false,
            window: contract.window,
            on_open_match: contract.on_open_match,
        }
    }

    fn decided(prior: Prior) -> Decision {
        decide(
            &call(),
            &Priors {
                version: 1,
                executions: vec![prior],
            },
            at(60),
        )
    }

    #[test]
    fn none_is_accepted() {
        assert_eq!(decide(&call(), &Priors::default(), at(0)), Decision::Accept);
    }

    #[test]
    fn each_row_of_the_table() {
        use Decision::{Accept, Attach, Deliver, Deny, Recover, Start};
        let rows = [
            (State::Accepted, Start(id(1)), Attach(id(1))),
            (State::Authorized, Start(id(1)), Attach(id(1))),
            (State::Denied, Deny(id(1)), Deny(id(1))),
            (State::Dispatched, Recover(id(1)), Attach(id(1))),
            (State::InputRequired, Deliver(id(1)), Attach(id(1))),
            (State::Working, Recover(id(1)), Attach(id(1))),
            (State::OutcomeUnknown, Recover(id(1)), Attach(id(1))),
            (
                State::CompletedResultNotDelivered,
                Deliver(id(1)),
                Deliver(id(1)),
            ),
            (State::CompletedResultDelivered, Accept, Accept),
            (State::NotExecuted, Accept, Attach(id(1))),
            (State::Cancelled, Accept, Accept),
        ];
        assert_eq!(rows.map(|(state, ..)| state), State::ALL);
        for (state, alone, owned) in rows {
            assert_eq!(decided(prior(state)), alone, "{state}, nobody drives it");
            assert_eq!(
                decided(Prior {
                    owned: true,
                    ..prior(state)
                }),
                owned,
                "{state}, somebody drives it"
            );
        }
    }

    #[test]
    fn proof_that_it_did_not_run_lets_the_same_execution_go_out() {
        let refused = |verdict| {
            decided(Prior {
                verdict: Some(verdict),
                ..prior(State::NotExecuted)
            })
        };
        assert_eq!(
            refused(Verdict::Rejected),
            Decision::Continue(id(1), Permit::Rejected)
        );
        assert_eq!(
            refused(Verdict::NotSent),
            Decision::Continue(id(1), Permit::NotSent)
        );
    }

    #[test]
    fn answers_to_a_question_continue_the_execution_that_asked() {
        let priors = Priors {
            version: 1,
            executions: vec![prior(State::InputRequired)],
        };
        let call = Incoming {
            continues: true,
            ..call()
        };
        assert_eq!(
            decide(&call, &priors, at(60)),
            Decision::Continue(id(1), Permit::InputContinuation)
        );
        let lost = Priors {
            version: 1,
            executions: vec![prior(State::OutcomeUnknown)],
        };
        assert_eq!(
            decide(&call, &lost, at(60)),
            Decision::Recover(id(1)),
            "a lost continuation is not repeated"
        );
    }

    #[test]
    fn two_named_intents_are_two_actions_and_an_unnamed_one_is_none_of_them_for_sure() {
        let named = Prior {
            intent: Some("a".into()),
            ..prior(State::Dispatched)
        };
        let with = |intent| {
            let priors = Priors {
                version: 1,
                executions: vec![named.clone()],
            };
            decide(&Incoming { intent, ..call() }, &priors, at(60))
        };
        assert_eq!(with(Some("b")), Decision::Accept);
        assert_eq!(with(Some("a")), Decision::Recover(id(1)));
        assert_eq!(with(None), Decision::Recover(id(1)));
    }

    #[test]
    fn a_contract_may_have_repeats_told_at_once_that_the_execution_is_open() {
        let call = Incoming {
            on_open_match: OnOpenMatch::Refuse,
            ..call()
        };
        for state in State::ALL {
            let priors = Priors {
                version: 1,
                executions: vec![Prior {
                    owned: true,
                    ..prior(state)
                }],
            };
            let refused = decide(&call, &priors, at(60)) == Decision::Refuse(id(1));
            let open = matches!(
                state,
                State::Dispatched | State::Working | State::OutcomeUnknown
            );
            assert_eq!(refused, open, "{state}");
        }
    }

    #[test]
    fn the_same_intent_again_is_the_same_execution_also_after_its_delivery() {
        let named = Prior {
            intent: Some("a".into()),
            ..prior(State::CompletedResultDelivered)
        };
        let priors = Priors {
            version: 1,
            executions: vec![named],
        };
        let with = |intent| decide(&Incoming { intent, ..call() }, &priors, at(60));
        assert_eq!(with(Some("a")), Decision::Deliver(id(1)));
        assert_eq!(with(Some("b")), Decision::Accept);
        assert_eq!(with(None), Decision::Accept);
    }

    #[test]
    fn the_scope_run_ends_with_the_run() {
        let other = Prior {
            scope: IntentScope::Run,
            ..prior(State::Dispatched)
        };
        assert_eq!(decided(other.clone()), Decision::Accept);
        assert_eq!(
            decided(Prior {
                run: run(2),
                ..other
            }),
            Decision::Recover(id(1))
        );
    }

    #[test]
    fn the_scope_durable_replays_what_was_delivered() {
        let durable = Prior {
            scope: IntentScope::Durable,
            ..prior(State::CompletedResultDelivered)
        };
        assert_eq!(decided(durable), Decision::Deliver(id(1)));
    }

    #[test]
    fn an_open_execution_comes_before_a_closed_one() {
        let newer = Prior {
            execution: id(2),
            ..prior(State::CompletedResultDelivered)
        };
        let priors = Priors {
            version: 1,
            executions: vec![prior(State::OutcomeUnknown), newer],
        };
        assert_eq!(decide(&call(), &priors, at(60)), Decision::Recover(id(1)));
    }

    #[test]
    fn an_irreversible_unknown_is_never_forgotten_by_age() {
        let unknown = Priors {
            version: 1,
            executions: vec![prior(State::OutcomeUnknown)],
        };
        assert_eq!(
            decide(&call(), &unknown, at(10 * 365 * 86_400)),
            Decision::Recover(id(1))
        );
        let undelivered = Priors {
            version: 1,
            executions: vec![prior(State::CompletedResultNotDelivered)],
        };
        assert_eq!(
            decide(&call(), &undelivered, at(86_400)),
            Decision::Deliver(id(1))
        );
        assert_eq!(decide(&call(), &undelivered, at(86_401)), Decision::Accept);
    }

    #[test]
    fn a_clock_that_steps_back_reopens_no_window() {
        let contract = Contract::of(Class::IdempotentWrite);
        let call = Incoming {
            window: contract.window,
            ..call()
        };
        let priors = Priors {
            version: 1,
            executions: vec![prior(State::Dispatched)],
        };
        assert_eq!(decide(&call, &priors, at(-3600)), Decision::Recover(id(1)));
        let late = at(0).checked_add(Duration::from_secs(301)).unwrap();
        assert_eq!(decide(&call, &priors, late), Decision::Accept);
    }
}
