//! The canonical action record: everything of effect, nothing of delivery.

use serde::{Deserialize, Serialize};

use super::json::{JsonError, Value, parse, write_string};

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
///
/// The JSON-RPC id, `_meta`, `task`, `inputResponses`, `requestState` and every header are delivery and do not enter.
///
/// # Source
/// Design, section 2; essay, "canonical action record".
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Action {
    /// Who acts.
    pub actor: String,
    /// The tool's name, as the server spells it.
    pub tool: String,
    /// Server origin and path.
    pub target: String,
    /// What a remote command acts on (host identity, account, directory), in place of the server that passes it on.
    pub remote: Option<Value>,
    /// The name of the credential, from the configuration; never derived from a token.
    pub credential_ref: Option<String>,
    /// The arguments; absent ones are an empty object.
    pub arguments: Value,
    /// How far a repeat counts as the same intent.
    pub intent_scope: IntentScope,
}

impl Action {
    /// Reads the arguments of a call. Absent ones and an empty object are the same action.
    ///
    /// # Errors
    /// [`JsonError`] where two readers could see two different calls.
    pub fn arguments(raw: Option<&[u8]>) -> Result<Value, JsonError> {
        raw.map_or(Ok(Value::Object(Vec::new())), parse)
    }

    /// The canonical bytes: RFC 8785 over the record. Never leaves the process, holds the arguments in clear.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        // In canonical order; written piece by piece, since the arguments may be large.
        let mut member = |name: &str, value: &dyn Fn(&mut Vec<u8>)| {
            out.extend_from_slice(if out.is_empty() { b"{" } else { b"," });
            write_string(name, &mut out);
            out.push(b':');
            value(&mut out);
        };
        member("actor", &|out| write_string(&self.actor, out));
        member("arguments", &|out| self.arguments.write(out));
        member("channel", &|out| write_string(CHANNEL, out));
        member("credential_ref", &|out| match &self.credential_ref {
            Some(name) => write_string(name, out),
            None => out.extend_from_slice(b"null"),
        });
        member("intent_scope", &|out| {
            write_string(self.intent_scope.name(), out)
        });
        member("method", &|out| write_string(METHOD, out));
        member("target", &|out| match &self.remote {
            Some(remote) => remote.write(out),
            None => write_string(&self.target, out),
        });
        member("tool", &|out| write_string(&self.tool, out));
        out.push(b'}');
        out
    }
}

const CHANNEL: &str = "mcp+http";
const METHOD: &str = "tools/call";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{FingerprintKey, KeyId};

    fn pay(arguments: &str) -> Action {
        Action {
            actor: "process:agent".into(),
            tool: "pay".into(),
            target: "https://bank.example/mcp".into(),
            remote: None,
            credential_ref: None,
            arguments: Action::arguments(Some(arguments.as_bytes())).unwrap(),
            intent_scope: IntentScope::Actor,
        }
    }

    fn differ(one: &Action, other: &Action) -> bool {
        let key = FingerprintKey::new(KeyId(1), [7; 32]);
        key.fingerprint(&one.canonical()) != key.fingerprint(&other.canonical())
    }

    #[test]
    fn delivery_does_not_change_it() {
        let action = pay(r#"{"amount": 1, "to": "a"}"#);
        assert!(!differ(
            &action,
            &pay("{\"to\":\"\\u0061\",\n\"amount\":1.0}")
        ));
        let (none, empty) = (
            Action::arguments(None).unwrap(),
            Action::arguments(Some(b"{}")).unwrap(),
        );
        assert_eq!(none, empty);
    }

    #[test]
    fn every_part_of_the_effect_does() {
        let action = pay(r#"{"amount": 1, "to": "a"}"#);
        let changed = [
            pay(r#"{"amount": 2, "to": "a"}"#),
            pay(r#"{"amount": "1", "to": "a"}"#),
            pay(r#"{"amount": 1}"#),
            Action {
                actor: "process:other".into(),
                ..action.clone()
            },
            Action {
                tool: "repay".into(),
                ..action.clone()
            },
            Action {
                target: "https://bank.example/other".into(),
                ..action.clone()
            },
            Action {
                credential_ref: Some("savings".into()),
                ..action.clone()
            },
            Action {
                intent_scope: IntentScope::Durable,
                ..action.clone()
            },
        ];
        for other in changed {
            assert!(differ(&action, &other), "{other:?}");
        }
    }

    #[test]
    fn the_record_is_in_canonical_order() {
        let canonical = pay("{}").canonical();
        assert_eq!(parse(&canonical).unwrap().canonical(), canonical);
    }
}
