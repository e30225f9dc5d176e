//! The file as it is written.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use crate::contract::{Class, OnChangedBody, OnOpenMatch, Same, Session404};
use crate::identity::IntentScope;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) defaults: Defaults,
    #[serde(default)]
    pub(super) servers: BTreeMap<String, Server>,
    #[serde(default)]
    pub(super) tools: BTreeMap<String, Spanned<Tool>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Defaults {
    read_only: Option<ClassDefaults>,
    idempotent_write: Option<ClassDefaults>,
    conditional_write: Option<ClassDefaults>,
    irreversible: Option<ClassDefaults>,
    remote_command: Option<ClassDefaults>,
}

impl Defaults {
    pub(super) fn of(&self, class: Class) -> Option<&ClassDefaults> {
        match class {
            Class::ReadOnly => self.read_only.as_ref(),
            Class::IdempotentWrite => self.idempotent_write.as_ref(),
            Class::ConditionalWrite => self.conditional_write.as_ref(),
            Class::Irreversible => self.irreversible.as_ref(),
            Class::RemoteCommand => self.remote_command.as_ref(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassDefaults {
    pub(super) scope: Option<IntentScope>,
    pub(super) window: Option<Spanned<Length>>,
    pub(super) undelivered: Option<Spanned<Length>>,
    pub(super) retention: Option<Spanned<Length>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub(super) url: Spanned<String>,
    pub(super) credential_ref: Option<String>,
    #[serde(default)]
    pub(super) trust_annotations: bool,
    #[serde(default)]
    pub(super) tools: BTreeMap<String, Spanned<Tool>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    pub(super) class: Class,
    pub(super) scope: Option<IntentScope>,
    pub(super) window: Option<Spanned<Length>>,
    pub(super) undelivered: Option<Spanned<Length>>,
    pub(super) retention: Option<Spanned<Length>>,
    pub(super) credential_ref: Option<String>,
    #[serde(default)]
    pub(super) fingerprint: Fingerprint,
    pub(super) idempotency: Option<Spanned<Idempotency>>,
    pub(super) probe: Option<Spanned<Probe>>,
    pub(super) target: Option<Spanned<Target>>,
    #[serde(default)]
    pub(super) on_open_match: OnOpenMatch,
    pub(super) on_closed_match: Option<Spanned<OnClosedMatch>>,
    #[serde(default)]
    pub(super) session_404: Session404,
    #[serde(default)]
    pub(super) limits: Limits,
}

/// What a repeat meets when an equal execution is over: the same as the scope says, in other words.
#[derive(Clone, Copy, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnClosedMatch {
    New,
    Replay,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fingerprint {
    /// `"as_sent"`, or the values to fill in.
    pub(super) defaults: Option<Spanned<toml::Value>>,
    #[serde(default)]
    pub(super) ignore: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) secret: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) same: BTreeMap<Spanned<String>, Same>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Idempotency {
    pub(super) header: Option<String>,
    pub(super) argument: Option<String>,
    pub(super) meta: Option<String>,
    pub(super) retains_for: Option<Spanned<Length>>,
    pub(super) on_changed_body: Option<OnChangedBody>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Probe {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) arguments: BTreeMap<String, Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    pub(super) host: Spanned<String>,
    pub(super) command: Spanned<String>,
    pub(super) account: Option<Spanned<String>>,
    pub(super) directory: Option<Spanned<String>>,
    pub(super) marker: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Limits {
    pub(super) resume: Option<Spanned<Length>>,
    pub(super) detached: Option<Spanned<Length>>,
    pub(super) attach_wait: Option<Spanned<Length>>,
}

/// A length of time, or `until_resolved`.
#[derive(Clone, Copy)]
pub(super) enum Length {
    UntilResolved,
    Of(Duration),
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "until_resolved" {
            return Ok(Self::UntilResolved);
        }
        humantime::parse_duration(&text).map(Self::Of).map_err(|_| {
            D::Error::custom(format!("`{text}` is no length of time; write \"90s\", \"5m\", \"24h\", \"30d\" or \"until_resolved\""))
        })
    }
}
