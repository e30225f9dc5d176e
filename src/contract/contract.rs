//! What may be done about one tool's lost answer.

use std::time::Duration;

use super::{Class, FingerprintRules, Pointer};
use crate::identity::json::Value;
use crate::identity::{Action, FingerprintKey, IntentScope};

/// What may be done about one tool's lost answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Contract {
    /// Its class.
    pub class: Class,
    /// How far a repeat counts as the same intent.
    pub scope: IntentScope,
    /// How long an earlier execution is found again.
    pub window: Window,
    /// How long a closed record is kept. Never shorter than the window.
    pub retention: Duration,
    /// The name of the credential that acts. Never a token.
    pub credential_ref: Option<String>,
    /// How arguments enter the fingerprint.
    pub fingerprint: FingerprintRules,
    /// Where the target wants its idempotency key, and what it does with it.
    pub idempotency: Option<Idempotency>,
    /// The read-only tool that tells what became of a call.
    pub probe: Option<Probe>,
    /// Where the arguments say on which host, as whom and where a remote command runs.
    pub remote: Option<Remote>,
    /// What a repeat meets while an equal execution is open.
    pub on_open_match: OnOpenMatch,
    /// What a 404 to a call with a session proves.
    pub session_404: Session404,
    /// How long the layer works at a lost answer; `None`: the layer's own limits.
    pub limits: ContractLimits,
}

/// What a repeat meets while an equal execution is open.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "config", derive(serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "snake_case"))]
#[expect(clippy::exhaustive_enums, reason = "each is decided")]
pub enum OnOpenMatch {
    /// It attaches, or looks for the lost result.
    #[default]
    Attach,
    /// It is told at once that the execution is open.
    Refuse,
}

/// What a 404 to a call with a session proves.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[cfg_attr(feature = "config", derive(serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "snake_case"))]
#[expect(clippy::exhaustive_enums, reason = "each is decided")]
pub enum Session404 {
    /// That the call was not run: the session was gone before it came.
    #[default]
    Rejected,
    /// Nothing: on this target a session can die while a tool runs.
    Unknown,
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

/// An idempotency channel: the target takes a key there, and does not act twice for the same one.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Idempotency {
    /// Where the key goes.
    pub channel: Channel,
    /// How long the target remembers a key.
    pub retains_for: Option<Duration>,
    /// What the target does with another body under a key it knows.
    pub on_changed_body: Option<OnChangedBody>,
}

/// Where an idempotency key goes out.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "each is filled")]
pub enum Channel {
    /// An HTTP header.
    Header(http::HeaderName),
    /// An argument of the tool, by its name. It is left out of the fingerprint: agents mint a fresh one for each attempt.
    Argument(String),
    /// A key of `params._meta`.
    Meta(String),
}

/// What a target does with another body under a key it knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "config", derive(serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "snake_case"))]
#[expect(clippy::exhaustive_enums, reason = "each is decided")]
pub enum OnChangedBody {
    /// It refuses.
    Refused,
    /// It answers with the first result.
    Replayed,
    /// It acts: then the key protects nothing.
    Accepted,
}

/// A status probe.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Probe {
    /// A read-only tool of the same server.
    pub tool: String,
    /// Its arguments: argument names, and where in the call's own arguments the value is.
    pub arguments: Vec<(String, Pointer)>,
}

/// Where the arguments say what a remote command acts on.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Remote {
    /// The host's identity (its key, not only its name).
    pub host: Pointer,
    /// The account.
    pub account: Option<Pointer>,
    /// The command line; enters as its words.
    pub command: Pointer,
    /// The working directory, when it matters.
    pub directory: Option<Pointer>,
    /// Where the durable marker lies on that host.
    pub marker: Option<String>,
}

/// How long the layer works at a lost answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ContractLimits {
    /// How long a lost stream is resumed.
    pub resume: Option<Duration>,
    /// How long the layer reads on after the caller left.
    pub detached: Option<Duration>,
    /// How long a repeat waits for the execution it attached to.
    pub attach_wait: Option<Duration>,
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
            retention: RETENTION,
            credential_ref: None,
            fingerprint: FingerprintRules {
                defaults: None,
                ignore: Vec::new(),
                secret: Vec::new(),
                same: std::collections::BTreeMap::new(),
                command: None,
            },
            idempotency: None,
            probe: None,
            remote: None,
            on_open_match: OnOpenMatch::Attach,
            session_404: Session404::Rejected,
            limits: ContractLimits {
                resume: None,
                detached: None,
                attach_wait: None,
            },
        }
    }

    /// What a call of this tool does, as it enters the fingerprint.
    #[must_use]
    pub fn action(
        &self,
        actor: &str,
        server: &str,
        tool: &str,
        arguments: Value,
        key: &FingerprintKey,
    ) -> Action {
        let mut arguments = self.fingerprint.normalise(arguments, key);
        if let Some(Channel::Argument(name)) = self
            .idempotency
            .as_ref()
            .map(|idempotency| &idempotency.channel)
            && let Value::Object(members) = &mut arguments
        {
            members.retain(|(member, _)| member != name);
        }
        let remote = self
            .remote
            .as_ref()
            .and_then(|remote| remote.acts_on(&arguments));
        Action {
            remote,
            actor: actor.to_owned(),
            tool: tool.to_owned(),
            target: server.to_owned(),
            credential_ref: self.credential_ref.clone(),
            arguments,
            intent_scope: self.scope,
        }
    }

    /// The same contract with an idempotency channel.
    #[must_use]
    pub fn with_idempotency(mut self, channel: Channel) -> Self {
        self.idempotency = Some(Idempotency {
            channel,
            retains_for: None,
            on_changed_body: None,
        });
        self
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

    /// The same contract with another answer to a repeat of an open execution.
    #[must_use]
    pub const fn with_on_open_match(mut self, on_open_match: OnOpenMatch) -> Self {
        self.on_open_match = on_open_match;
        self
    }

    /// The same contract for a target where a session can die while a tool runs, or not.
    #[must_use]
    pub const fn with_session_404(mut self, session_404: Session404) -> Self {
        self.session_404 = session_404;
        self
    }

    /// The same contract for a named credential.
    #[must_use]
    pub fn with_credential_ref(mut self, name: impl Into<String>) -> Self {
        self.credential_ref = Some(name.into());
        self
    }

    /// The same contract with other rules for the fingerprint.
    #[must_use]
    pub fn with_fingerprint(mut self, rules: FingerprintRules) -> Self {
        self.fingerprint = rules;
        self
    }
}

impl Remote {
    /// What the command acts on. `None` where the arguments name no host: then the server is all that is known.
    fn acts_on(&self, arguments: &Value) -> Option<Value> {
        let part =
            |pointer: Option<&Pointer>| pointer.and_then(|pointer| pointer.get(arguments)).cloned();
        let host = part(Some(&self.host))?;
        let (account, directory) = (part(self.account.as_ref()), part(self.directory.as_ref()));
        Some(Value::object([
            ("host".to_owned(), host),
            ("account".to_owned(), account.unwrap_or(Value::Null)),
            ("directory".to_owned(), directory.unwrap_or(Value::Null)),
        ]))
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

    /// The longest time that it reaches back, where it has an end.
    #[must_use]
    pub fn longest(&self) -> Duration {
        self.unresolved.unwrap_or_default().max(self.completed)
    }
}

const RETENTION: Duration = Duration::from_secs(90 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::json::parse;
    use crate::identity::{Fingerprint, KeyId};

    fn fingerprint(server: &str, arguments: &str) -> Fingerprint {
        let at = |text: &str| text.parse::<Pointer>().unwrap();
        let mut contract = Contract::of(Class::RemoteCommand);
        contract.fingerprint.command = Some(at("/command"));
        contract.remote = Some(Remote {
            host: at("/host_key"),
            account: Some(at("/user")),
            command: at("/command"),
            directory: None,
            marker: None,
        });
        let key = FingerprintKey::new(KeyId(1), [7; 32]);
        let arguments = parse(arguments.as_bytes()).unwrap();
        key.fingerprint(
            &contract
                .action("process:a", server, "run", arguments, &key)
                .canonical(),
        )
    }

    #[test]
    fn a_remote_command_is_known_by_its_host_and_not_by_the_server_that_passes_it_on() {
        let migrate = r#"{"host_key":"SHA256:a","user":"deploy","command":"migrate  --all"}"#;
        let one = fingerprint("https://one.example/mcp", migrate);
        assert_eq!(one, fingerprint("https://two.example/mcp", migrate));
        assert_eq!(
            one,
            fingerprint("https://one.example/mcp", &migrate.replace("  ", " "))
        );
        for (from, to) in [
            ("SHA256:a", "SHA256:b"),
            ("deploy", "root"),
            ("--all", "--one"),
        ] {
            assert_ne!(
                one,
                fingerprint("https://one.example/mcp", &migrate.replace(from, to)),
                "{to}"
            );
        }
        let nameless = |server| fingerprint(server, r#"{"command":"migrate"}"#);
        assert_ne!(
            nameless("https://one.example/mcp"),
            nameless("https://two.example/mcp")
        );
    }
}
