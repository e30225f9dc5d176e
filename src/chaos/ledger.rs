//! What really happened: the effects of tool calls, as the server carried them out.

use tokio::sync::watch;

use crate::clock::Timestamp;
use crate::identity::ExecutionId;

/// One effect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Effect {
    /// When it happened.
    pub at: Timestamp,
    /// The tool.
    pub tool: String,
    /// The execution that the request named in `_meta["dev.reattach/execution-id"]`.
    pub execution: Option<ExecutionId>,
    /// The arguments.
    pub arguments: serde_json::Value,
}

impl Effect {
    /// The argument `amount`; 0 where there is none. Amounts that are powers of two tell by their sum which effects
    /// happened.
    #[must_use]
    pub fn amount(&self) -> u64 {
        self.arguments["amount"].as_u64().unwrap_or(0)
    }
}

/// All effects, in order. Clones are one ledger.
#[derive(Clone, Debug, Default)]
pub struct Ledger(watch::Sender<Vec<Effect>>);

impl Ledger {
    /// Writes an effect down.
    pub fn record(
        &self,
        tool: &str,
        execution: Option<ExecutionId>,
        arguments: serde_json::Value,
        at: Timestamp,
    ) {
        let effect = Effect {
            at,
            tool: tool.to_owned(),
            execution,
            arguments,
        };
        self.0.send_modify(|effects| effects.push(effect));
    }

    /// All effects so far.
    #[must_use]
    pub fn effects(&self) -> Vec<Effect> {
        self.0.borrow().clone()
    }

    /// Waits until there are at least `n` effects.
    pub async fn until(&self, n: usize) {
        let _ = self
            .0
            .subscribe()
            .wait_for(|effects| effects.len() >= n)
            .await; // the sender is ours
    }

    /// The sum of all amounts.
    #[must_use]
    pub fn balance(&self) -> u64 {
        self.effects().iter().map(Effect::amount).sum()
    }
}
