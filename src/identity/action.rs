//! The canonical action record: everything of effect, nothing of delivery.

use serde::{Deserialize, Serialize};

/// How far a repeat of the same action counts as the same intent.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a new scope has to be decided everywhere"
)]
pub enum IntentScope {
    /// Within one run.
    Run,
    /// Across the runs of one actor.
    #[default]
    Actor,
    /// For good, inside its window: a repeat is answered with the first result.
    Durable,
}

impl IntentScope {
    /// The name on disk and in every output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Actor => "actor",
            Self::Durable => "durable",
        }
    }
}

/// What a call does, whoever delivers it and however often.
#[derive(Clone, Debug)]
pub struct Action {}
