//! The index: every execution that may still matter for a decision, in memory.
//!
//! Each slot holds its execution twice while entries are on their way to the disk: as the disk has it, which is what
//! everybody sees, and ahead of that, with the entries on their way, which is what the next entry is checked against. So
//! nothing is seen before it is durable (law 1), and no step is taken twice. Pure: no clock, no disk, no lock.

use std::collections::{HashMap, VecDeque};

use tokio::sync::watch;

use super::event::Event;
use super::{ExecutionRecord, JournalError, Standing};
use crate::clock::Timestamp;
use crate::execution::{Prior, Priors, State};
use crate::identity::{ExecutionId, Fingerprint, IntentScope};

/// Executions by id, and their ids by fingerprint.
pub(super) struct Index {
    slots: HashMap<ExecutionId, Slot>,
    buckets: HashMap<Fingerprint, Bucket>,
    open_by_actor: HashMap<String, usize>,
    /// Closed executions, those closed first in front.
    closed: VecDeque<ExecutionId>,
    closed_in_memory: usize,
    /// While the journal is read, what may still be dispatched again is not forgotten: its further entries may follow.
    is_replaying: bool,
    /// Counts changes; gives buckets their versions.
    changes: u64,
}

/// The executions of one fingerprint.
#[derive(Default)]
struct Bucket {
    version: u64,
    executions: Vec<ExecutionId>,
}

struct Slot {
    /// As the disk has it.
    record: ExecutionRecord,
    /// With the entries that are on their way.
    ahead: Option<Box<ExecutionRecord>>,
    on_their_way: usize,
    /// Whether its first entry is on the disk. Before that it shows as accepted and owned, and never as more.
    is_durable: bool,
    is_owned: bool,
    /// Time of its newest entry, on disk or on its way.
    latest: Timestamp,
    changed_at: Timestamp,
    standing: watch::Sender<Standing>,
    is_counted_open: bool,
    is_listed_closed: bool,
}

impl Index {
    /// An empty index, ready for [`replay`](Self::replay).
    pub(super) fn new(closed_in_memory: usize) -> Self {
        Self {
            slots: HashMap::new(),
            buckets: HashMap::new(),
            open_by_actor: HashMap::new(),
            closed: VecDeque::new(),
            closed_in_memory,
            is_replaying: true,
            changes: 0,
        }
    }

    /// The executions with this fingerprint, oldest first.
    pub(super) fn priors(&self, fingerprint: &Fingerprint) -> Priors {
        let Some(bucket) = self.buckets.get(fingerprint) else {
            return Priors::default();
        };
        let executions = bucket
            .executions
            .iter()
            .filter_map(|id| self.slots.get(id))
            .map(Slot::prior)
            .collect();
        Priors {
            version: bucket.version,
            executions,
        }
    }

    /// An execution of this actor with this intent and another fingerprint.
    pub(super) fn intent_of_another(
        &self,
        actor: &str,
        intent: &str,
        fingerprint: &Fingerprint,
    ) -> Option<ExecutionId> {
        let reused = |record: &&ExecutionRecord| {
            record.intent.as_deref() == Some(intent)
                && record.actor == actor
                && record.fingerprint != *fingerprint
        };
        self.slots
            .values()
            .map(|slot| &slot.record)
            .find(reused)
            .map(|record| record.execution_id)
    }

    /// How many executions of this actor are open.
    pub(super) fn open(&self, actor: &str) -> usize {
        self.open_by_actor.get(actor).copied().unwrap_or(0)
    }

    /// Puts a new execution in, owned, with its first entry on its way.
    pub(super) fn insert(&mut self, record: ExecutionRecord) {
        let mut slot = Slot::new(record.clone(), false);
        slot.is_owned = true;
        slot.ahead = Some(Box::new(record));
        slot.on_their_way = 1;
        self.place(slot);
    }

    /// Checks an event against what is on its way, and takes it there. Returns its time, which never steps back.
    pub(super) fn advance(
        &mut self,
        id: ExecutionId,
        now: Timestamp,
        event: &Event,
    ) -> Result<Timestamp, JournalError> {
        let slot = self
            .slots
            .get_mut(&id)
            .ok_or(JournalError::NotOpen { execution: id })?;
        let at = now.max(slot.latest);
        let mut ahead = slot
            .ahead
            .take()
            .unwrap_or_else(|| Box::new(slot.record.clone()));
        let taken = ahead.take(at, event);
        if taken.is_ok() {
            slot.latest = at;
            slot.on_their_way += 1;
        }
        if slot.on_their_way > 0 {
            slot.ahead = Some(ahead);
        }
        taken.map(|()| at)
    }

    /// How many dispatches the execution has, those on their way included.
    pub(super) fn dispatches(&self, id: ExecutionId) -> Option<usize> {
        let slot = self.slots.get(&id)?;
        Some(
            slot.ahead
                .as_deref()
                .unwrap_or(&slot.record)
                .dispatches
                .len(),
        )
    }

    /// An entry that was on its way has become durable.
    pub(super) fn arrived(&mut self, id: ExecutionId, at: Timestamp, event: &Event) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        if slot.is_durable {
            // It was checked in the same order on its way here.
            let taken = slot.record.take(at, event);
            debug_assert!(taken.is_ok(), "{taken:?}");
        }
        slot.is_durable = true;
        slot.on_their_way = slot.on_their_way.saturating_sub(1);
        if slot.on_their_way == 0 {
            slot.ahead = None;
        }
        slot.changed(at, event);
        self.settle(id);
    }

    /// Takes in an entry that was read from disk.
    pub(super) fn replay(
        &mut self,
        id: ExecutionId,
        at: Timestamp,
        event: &Event,
    ) -> Result<(), JournalError> {
        if let Some(record) = ExecutionRecord::begin(id, at, event) {
            if self.slots.contains_key(&id) {
                return Err(JournalError::Misplaced {
                    event: event.name(),
                });
            }
            self.place(Slot::new(record, true));
            return Ok(());
        }
        // What is not in the index was closed and forgotten; such executions take only entries that change nothing here.
        let Some(slot) = self.slots.get_mut(&id) else {
            return Ok(());
        };
        slot.record.take(at, event)?;
        slot.latest = slot.latest.max(at);
        slot.changed(at, event);
        self.settle(id);
        Ok(())
    }

    /// Everything on disk was replayed.
    pub(super) fn replayed(&mut self) {
        self.is_replaying = false;
        self.forget_closed();
    }

    /// The journal takes nothing more: forgets what never became durable, and lets go of everything else.
    pub(super) fn fail(&mut self) {
        let lost: Vec<ExecutionId> = self
            .slots
            .iter()
            .filter(|(_, slot)| !slot.is_durable)
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            self.remove(id);
        }
        for slot in self.slots.values_mut() {
            slot.ahead = None;
            slot.on_their_way = 0;
        }
    }

    /// Makes somebody the owner of an execution that has none.
    pub(super) fn take_over(&mut self, id: ExecutionId) -> bool {
        match self.slots.get_mut(&id) {
            Some(slot) if !slot.is_owned && slot.is_durable => {
                slot.is_owned = true;
                self.settle(id);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Its owner gives it up.
    pub(super) fn give_up(&mut self, id: ExecutionId) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.is_owned = false;
            self.settle(id);
        }
    }

    pub(super) fn watch(&self, id: ExecutionId) -> Option<watch::Receiver<Standing>> {
        self.slots.get(&id).map(|slot| slot.standing.subscribe())
    }

    pub(super) fn record(&self, id: ExecutionId) -> Option<&ExecutionRecord> {
        self.slots.get(&id).map(|slot| &slot.record)
    }

    /// How many executions are held.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    fn place(&mut self, slot: Slot) {
        let (id, fingerprint) = (slot.record.execution_id, slot.record.fingerprint);
        self.slots.insert(id, slot);
        self.buckets
            .entry(fingerprint)
            .or_default()
            .executions
            .push(id);
        self.settle(id);
    }

    /// After any change of a slot: its bucket's version, what its followers see, what it counts as.
    fn settle(&mut self, id: ExecutionId) {
        let Some(slot) = self.slots.get_mut(&id) else {
            return;
        };
        self.changes += 1;
        if let Some(bucket) = self.buckets.get_mut(&slot.record.fingerprint) {
            bucket.version = self.changes;
        }
        slot.tell();
        let is_open = slot.is_open();
        if is_open != slot.is_counted_open {
            slot.is_counted_open = is_open;
            let open = self
                .open_by_actor
                .entry(slot.record.actor.clone())
                .or_default();
            *open = if is_open {
                *open + 1
            } else {
                open.saturating_sub(1)
            };
            if *open == 0 {
                self.open_by_actor.remove(&slot.record.actor);
            }
        }
        if slot.is_forgettable() && !slot.is_listed_closed {
            slot.is_listed_closed = true;
            self.closed.push_back(id);
            self.forget_closed();
        }
    }

    /// Forgets those closed first, while there are too many and nobody holds or follows them.
    fn forget_closed(&mut self) {
        let excess = self.closed.len().saturating_sub(self.closed_in_memory);
        for _ in 0..excess {
            let Some(id) = self.closed.pop_front() else {
                return;
            };
            let Some(slot) = self.slots.get_mut(&id) else {
                continue;
            };
            if !slot.is_forgettable() {
                slot.is_listed_closed = false; // it was dispatched again; it comes back when it closes again
            } else if slot.is_held()
                || (self.is_replaying && slot.record.state == State::NotExecuted)
            {
                self.closed.push_back(id);
            } else {
                self.remove(id);
            }
        }
    }

    fn remove(&mut self, id: ExecutionId) {
        let Some(slot) = self.slots.remove(&id) else {
            return;
        };
        if slot.is_counted_open
            && let Some(open) = self.open_by_actor.get_mut(&slot.record.actor)
        {
            *open = open.saturating_sub(1);
            if *open == 0 {
                self.open_by_actor.remove(&slot.record.actor);
            }
        }
        if let Some(bucket) = self.buckets.get_mut(&slot.record.fingerprint) {
            self.changes += 1;
            bucket.version = self.changes;
            bucket.executions.retain(|other| *other != id);
            if bucket.executions.is_empty() {
                self.buckets.remove(&slot.record.fingerprint);
            }
        }
    }
}

impl Slot {
    fn new(record: ExecutionRecord, is_durable: bool) -> Self {
        let at = record.accepted_at;
        let standing = watch::Sender::new(Standing {
            state: record.state,
            owned: !is_durable,
        });
        Self {
            record,
            ahead: None,
            on_their_way: 0,
            is_durable,
            is_owned: false,
            latest: at,
            changed_at: at,
            standing,
            is_counted_open: false,
            is_listed_closed: false,
        }
    }

    fn prior(&self) -> Prior {
        Prior {
            execution: self.record.execution_id,
            state: self.state_for_decisions(),
            owned: self.is_owned,
            class: self.record.class,
            scope: self.record.intent_scope,
            run: self.record.run_id,
            intent: self.record.intent.clone(),
            verdict: self.record.verdict(),
            changed_at: self.changed_at,
        }
    }

    /// That a caller took the result is known here before the disk knows it, and counts at once: the next equal call is
    /// a new action, not another look at the old result.
    fn state_for_decisions(&self) -> State {
        match &self.ahead {
            Some(ahead) if ahead.state == State::CompletedResultDelivered => ahead.state,
            Some(_) | None => self.record.state,
        }
    }

    fn tell(&self) {
        let now = Standing {
            state: self.record.state,
            owned: self.is_owned,
        };
        self.standing
            .send_if_modified(|seen| std::mem::replace(seen, now) != now);
    }

    /// Being asked about is not a change.
    fn changed(&mut self, at: Timestamp, event: &Event) {
        if !matches!(event, Event::Reattached { .. } | Event::Ignored { .. }) {
            self.changed_at = self.changed_at.max(at);
        }
    }

    /// Whether it needs somebody's attention: the rest of its life, or the delivery of its result.
    fn is_open(&self) -> bool {
        match self.record.state {
            State::Accepted
            | State::Authorized
            | State::Dispatched
            | State::InputRequired
            | State::Working
            | State::OutcomeUnknown
            | State::CompletedResultNotDelivered => true,
            State::Denied
            | State::CompletedResultDelivered
            | State::NotExecuted
            | State::Cancelled => false,
        }
    }

    fn is_held(&self) -> bool {
        self.is_owned || self.on_their_way > 0 || self.standing.receiver_count() > 0
    }

    /// Whether a repeat may be decided without it. A delivered result with scope `durable`, or with an intent that its
    /// caller named, is replayed, so it stays.
    fn is_forgettable(&self) -> bool {
        let is_replayed = self.record.state == State::CompletedResultDelivered
            && (self.record.intent_scope == IntentScope::Durable || self.record.intent.is_some());
        !self.is_open() && !is_replayed
    }
}
