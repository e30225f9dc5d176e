//! The layer and its builder.

use std::sync::Arc;
use std::time::Duration;

use tower::Layer;

use super::sessions::Sessions;
use super::shared::{Running, Shared};
use super::{Limits, Reattach};
use crate::clock::{Clock, SystemClock};
use crate::contract::{Contracts, Learned};
use crate::identity::RunId;
use crate::journal::{Journal, JournalError, RunStarted};

/// Wraps an HTTP client in [`Reattach`]. Cheap to clone; all clones share one journal and one run.
#[derive(Clone)]
pub struct ReattachLayer(Arc<Shared>);

impl ReattachLayer {
    /// Starts with a journal and defaults for everything else.
    pub fn builder(journal: Journal) -> ReattachLayerBuilder {
        ReattachLayerBuilder {
            journal,
            actor: None,
            run: None,
            contracts: Contracts::default(),
            limits: Limits::default(),
            clock: Arc::new(SystemClock),
        }
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// The run of this layer's calls.
    #[must_use]
    pub fn run_id(&self) -> RunId {
        self.0.run
    }

    /// Waits for the calls that still run, those whose callers left included, at most until the deadline; then makes the
    /// journal durable. The number of calls that still run: their outcome is for the next process to recover.
    ///
    /// # Errors
    /// [`JournalError`] when the last entries could not be made durable.
    pub async fn shutdown(&self, deadline: Duration) -> Result<usize, JournalError> {
        let running = self.0.running.wait(deadline).await;
        self.0.journal.flush().await?;
        Ok(running)
    }
}

impl<S> Layer<S> for ReattachLayer {
    type Service = Reattach<S>;

    fn layer(&self, inner: S) -> Reattach<S> {
        Reattach::new(inner, Arc::clone(&self.0))
    }
}

/// Collects what a layer needs.
#[must_use]
pub struct ReattachLayerBuilder {
    journal: Journal,
    actor: Option<String>,
    run: Option<RunId>,
    contracts: Contracts,
    limits: Limits,
    clock: Arc<dyn Clock>,
}

impl ReattachLayerBuilder {
    /// Who acts. The same after every restart, or a restarted agent does not find its own executions. Default:
    /// `REATTACH_ACTOR`, else `process:` and the executable's name.
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// The run. Default: `REATTACH_RUN_ID`, else a fresh one.
    pub fn run_id(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// What may be done about each tool's lost answer. Default: every tool is irreversible.
    pub fn contracts(mut self, contracts: Contracts) -> Self {
        self.contracts = contracts;
        self
    }

    /// Bounds on memory and time.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where time comes from. For tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Records the run and makes the layer.
    ///
    /// # Errors
    /// [`JournalError`] when the run can't be recorded; nothing else was done.
    pub async fn build(self) -> Result<ReattachLayer, JournalError> {
        let actor = self
            .actor
            .or_else(|| std::env::var("REATTACH_ACTOR").ok())
            .unwrap_or_else(executable);
        let named = std::env::var("REATTACH_RUN_ID")
            .ok()
            .and_then(|id| id.parse().ok());
        let run = self
            .run
            .or(named)
            .unwrap_or_else(|| RunId::generate(self.clock.now()));
        self.journal
            .start_run(RunStarted {
                run_id: run,
                actor: actor.clone(),
                pid: std::process::id(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            })
            .await?;
        Ok(ReattachLayer(Arc::new(Shared {
            journal: self.journal,
            contracts: self.contracts,
            actor,
            run,
            limits: self.limits,
            clock: self.clock,
            sessions: Sessions::default(),
            learned: Learned::default(),
            running: Running::default(),
        })))
    }
}

fn executable() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    format!(
        "process:{}",
        path.file_stem().unwrap_or_default().to_string_lossy()
    )
}
