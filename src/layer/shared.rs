//! What all calls through one layer share.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::Limits;
use super::sessions::Sessions;
use crate::clock::Clock;
use crate::contract::{Contracts, Learned};
use crate::identity::RunId;
use crate::journal::Journal;

pub(super) struct Shared {
    pub(super) journal: Journal,
    pub(super) contracts: Contracts,
    pub(super) actor: String,
    pub(super) run: RunId,
    pub(super) limits: Limits,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) sessions: Sessions,
    pub(super) learned: Learned,
    pub(super) running: Running,
}

/// The tasks that drive calls: counted, bounded, and waited for at the end.
#[derive(Default)]
pub(super) struct Running(Arc<Tasks>);

#[derive(Default)]
struct Tasks {
    count: AtomicUsize,
    one_ended: Notify,
}

/// Held by a task while it runs.
struct Place(Arc<Tasks>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
        self.0.one_ended.notify_waiters();
    }
}

impl Running {
    /// Starts a task. False, and nothing started, when `limit` tasks run already.
    pub(super) fn spawn(
        &self,
        limit: usize,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        let free = self
            .0
            .count
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
                (count < limit).then_some(count + 1)
            });
        if free.is_err() {
            return false;
        }
        let place = Place(Arc::clone(&self.0));
        tokio::spawn(async move {
            let _place = place; // given back also when the task panics
            task.await;
        });
        true
    }

    /// Waits until no task runs, at most until the deadline. The number that still runs.
    pub(super) async fn wait(&self, deadline: Duration) -> usize {
        let all = async {
            loop {
                let ended = self.0.one_ended.notified();
                if self.0.count.load(Ordering::Acquire) == 0 {
                    return;
                }
                ended.await;
            }
        };
        let _ = tokio::time::timeout(deadline, all).await;
        self.0.count.load(Ordering::Acquire)
    }
}
