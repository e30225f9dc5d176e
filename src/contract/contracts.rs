//! Which tool has which contract.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::Class;
use crate::identity::IntentScope;

/// What may be done about one tool's lost answer.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Contract {
    /// Its class.
    pub class: Class,
    /// How far a repeat counts as the same intent.
    pub scope: IntentScope,
    /// How long an earlier execution is found again.
    pub window: Window,
    /// The name of the credential that acts. Never a token.
    pub credential_ref: Option<String>,
}

/// How long an earlier execution is found again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Window {
    /// While its outcome is open. `None`: until it is resolved.
    pub unresolved: Option<Duration>,
    /// While its kept result was never delivered, and, in the scope `durable`, after it was.
    pub completed: Duration,
}

impl Contract {
    /// The contract of a class with the class's own defaults.
    #[must_use]
    pub const fn of(class: Class) -> Self {
        let (scope, window) = match class {
            Class::ReadOnly => (
                IntentScope::Run,
                Window {
                    unresolved: Some(Duration::ZERO),
                    completed: Duration::ZERO,
                },
            ),
            Class::IdempotentWrite => (IntentScope::Run, Window::minutes(5)),
            Class::ConditionalWrite => (IntentScope::Actor, Window::minutes(15)),
            Class::Irreversible | Class::RemoteCommand => (
                IntentScope::Actor,
                Window {
                    unresolved: None,
                    completed: Duration::from_secs(24 * 3600),
                },
            ),
        };
        Self {
            class,
            scope,
            window,
            credential_ref: None,
        }
    }

    /// The same contract with another scope.
    #[must_use]
    pub const fn with_scope(mut self, scope: IntentScope) -> Self {
        self.scope = scope;
        self
    }

    /// The same contract with another window.
    #[must_use]
    pub const fn with_window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// The same contract for a named credential.
    #[must_use]
    pub fn with_credential_ref(mut self, name: impl Into<String>) -> Self {
        self.credential_ref = Some(name.into());
        self
    }
}

impl Window {
    const fn minutes(minutes: u64) -> Self {
        let length = Duration::from_secs(minutes * 60);
        Self {
            unresolved: Some(length),
            completed: length,
        }
    }
}

/// The contracts of all tools. A tool that has none is [`Class::Irreversible`].
///
/// ```
/// use reattach::contract::{Class, Contract, Contracts};
///
/// let contracts = Contracts::builder()
///     .tool("get_build_status", Contract::of(Class::ReadOnly))
///     .tool("deploy", Contract::of(Class::Irreversible).with_credential_ref("deploy-service"))
///     .build();
/// assert_eq!(contracts.find("get_build_status").class, Class::ReadOnly);
/// assert_eq!(contracts.find("never_heard_of").class, Class::Irreversible);
/// ```
#[derive(Clone, Debug)]
pub struct Contracts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tools: HashMap<String, Contract>,
    default: Contract,
}

impl Contracts {
    /// Starts with no contract at all.
    #[must_use]
    pub fn builder() -> ContractsBuilder {
        ContractsBuilder::default()
    }

    /// The contract of a tool.
    #[must_use]
    pub fn find(&self, tool: &str) -> &Contract {
        self.0.tools.get(tool).unwrap_or(&self.0.default)
    }
}

impl Default for Contracts {
    fn default() -> Self {
        Self::builder().build()
    }
}

/// Collects contracts.
#[derive(Clone, Debug, Default)]
pub struct ContractsBuilder {
    tools: HashMap<String, Contract>,
}

impl ContractsBuilder {
    /// Sets the contract of the tool with exactly this name.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, contract: Contract) -> Self {
        self.tools.insert(name.into(), contract);
        self
    }

    /// The contracts.
    #[must_use]
    pub fn build(self) -> Contracts {
        // The strictest class: silence must never mean that a call may be repeated.
        Contracts(Arc::new(Inner {
            tools: self.tools,
            default: Contract::of(Class::Irreversible),
        }))
    }
}
