//! `reattach demo`: the main job on real sockets, side by side with what people do today.
//!
//! A real MCP server with a ledger of payments, a proxy that breaks connections, and an agent that pays through both.
//! Each part states a claim and proves it by the ledger; the demo fails when one does not hold.

mod agent;
mod part;
mod stage;

use std::io::{self, Write};

pub use agent::AgentArgs;
use stage::Stage;

/// What went wrong besides a claim that does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The output can't be written.
    #[error("the demo's output can't be written")]
    Output(#[from] io::Error),
    /// The machine does not let the demo run: a port, a directory or a process can't be had.
    #[error("the demo can't run here: {doing}")]
    Machine {
        /// What failed.
        doing: &'static str,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Shows everything. Whether every claim held.
///
/// # Errors
/// [`DemoError`]; nothing outside a temporary directory was touched.
pub async fn run(out: &mut (dyn Write + Send), colour: bool) -> Result<bool, DemoError> {
    let mut stage = Stage::new(out, colour)?;
    stage.say("An agent pays over MCP. The bank is a real MCP server on 127.0.0.1, with a ledger; a proxy breaks the wire.")?;
    part::slow_gateway(&mut stage).await?;
    part::reset_after_the_deed(&mut stage).await?;
    part::stream_cut_twice(&mut stage).await?;
    part::killed_and_started_again(&mut stage).await?;
    stage.journal().await?;
    stage.verdict()
}

/// The agent that the last part kills: calls once, prints what it was told as one line of JSON.
///
/// # Errors
/// When the journal or the server can't be reached.
pub async fn agent(args: &AgentArgs, out: &mut (dyn Write + Send)) -> Result<(), DemoError> {
    agent::run(args, out).await
}

pub(super) fn machine<E>(doing: &'static str) -> impl FnOnce(E) -> DemoError
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    move |source| DemoError::Machine {
        doing,
        source: source.into(),
    }
}
