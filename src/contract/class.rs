//! The five classes of tools.

use serde::{Deserialize, Serialize};

/// What may be done when the answer to a call of this tool is lost after dispatch.
///
/// # Source
/// Essay, "action classes"; design, section 3.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a new class has to be decided everywhere"
)]
pub enum Class {
    /// Changes nothing: may be sent again, within limits.
    ReadOnly,
    /// Puts a named thing into a stated value: may be sent again with the same idempotency key.
    IdempotentWrite,
    /// Holds only while a condition does: probe, then perhaps again.
    ConditionalWrite,
    /// Pay, revoke, rotate, e-mail: stop, report unknown. What every tool without a contract is.
    #[default]
    Irreversible,
    /// Work on another host: look for its durable marker, else stop.
    RemoteCommand,
}

impl Class {
    /// Whether calls of this class become executions in the journal.
    #[must_use]
    pub const fn has_side_effect(self) -> bool {
        match self {
            Self::ReadOnly => false,
            Self::IdempotentWrite
            | Self::ConditionalWrite
            | Self::Irreversible
            | Self::RemoteCommand => true,
        }
    }

    /// The name on disk and in every output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::IdempotentWrite => "idempotent_write",
            Self::ConditionalWrite => "conditional_write",
            Self::Irreversible => "irreversible",
            Self::RemoteCommand => "remote_command",
        }
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
