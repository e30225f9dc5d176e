//! From the file as it is written to contracts that contradict nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use http::HeaderName;
use toml::Spanned;

use super::error::Wrong;
use super::raw;
use super::raw::{ClassDefaults, Defaults, File, Length, OnClosedMatch, Tool};
use crate::contract::contracts::Rule;
use crate::contract::{
    Channel, Class, Contract, ContractLimits, Contracts, FingerprintRules, Idempotency,
    OnChangedBody, ParsePointerError, Pattern, Pointer, Probe, Remote,
};
use crate::identity::IntentScope;
use crate::identity::json::{self, Value};

type Checked<T> = Result<T, Wrong>;

pub(super) fn contracts(file: File) -> Checked<Contracts> {
    let mut builder = Contracts::builder();
    let mut probes = Vec::new();
    let mut add =
        |server: Option<&Pattern>, credential: Option<&str>, name: String, tool: Spanned<Tool>| {
            let span = tool.span();
            let tool = tool.into_inner();
            if let Some(probe) = &tool.probe {
                probes.push((server.cloned(), probe.span(), probe.get_ref().tool.clone()));
            }
            let contract = contract(tool, span, credential, &file.defaults)?;
            Ok(Rule {
                server: server.cloned(),
                tool: Pattern::new(name),
                contract,
            })
        };
    let mut rules = Vec::new();
    for server in file.servers.into_values() {
        let pattern = server_pattern(&server.url)?;
        if server.trust_annotations {
            builder = builder.trust_annotations(pattern.as_str());
        }
        for (name, tool) in server.tools {
            rules.push(add(
                Some(&pattern),
                server.credential_ref.as_deref(),
                name,
                tool,
            )?);
        }
    }
    for (name, tool) in file.tools {
        rules.push(add(None, None, name, tool)?);
    }
    for rule in rules {
        builder = builder.rule(rule);
    }
    let contracts = builder.build();
    for (server, at, tool) in probes {
        let target = server.as_ref().map_or("", Pattern::as_str);
        if contracts.find(target, &tool).class != Class::ReadOnly {
            let what =
                format!("a probe may only look: `{tool}` is not of class `read_only` in this file");
            return Err(Wrong { at, what });
        }
    }
    Ok(contracts)
}

fn server_pattern(url: &Spanned<String>) -> Checked<Pattern> {
    let text = url.get_ref();
    if !(text.starts_with("http://") || text.starts_with("https://") || text.starts_with('*')) {
        let what = format!(
            "`{text}` is no server; wanted its origin and path, such as `https://bank.example/mcp`"
        );
        return Err(Wrong {
            at: url.span(),
            what,
        });
    }
    // As `wire::target` writes it: a server without a path has the path `/`.
    let has_path = text.splitn(4, '/').count() == 4 || text.ends_with('*');
    Ok(Pattern::new(if has_path {
        text.clone()
    } else {
        format!("{text}/")
    }))
}

fn contract(
    tool: Tool,
    span: Range<usize>,
    credential: Option<&str>,
    defaults: &Defaults,
) -> Checked<Contract> {
    let class = tool.class;
    let mut contract = Contract::of(class);
    if let Some(ClassDefaults {
        scope,
        window,
        undelivered,
        retention,
    }) = defaults.of(class)
    {
        contract.scope = scope.unwrap_or(contract.scope);
        times(
            &mut contract,
            window.as_ref(),
            undelivered.as_ref(),
            retention.as_ref(),
        )?;
    }
    contract.scope = tool.scope.unwrap_or(contract.scope);
    if let Some(closed) = tool.on_closed_match {
        contract.scope = closed_match(&closed, tool.scope, contract.scope)?;
    }
    contract.on_open_match = tool.on_open_match;
    contract.session_404 = tool.session_404;
    times(
        &mut contract,
        tool.window.as_ref(),
        tool.undelivered.as_ref(),
        tool.retention.as_ref(),
    )?;
    contract.credential_ref = tool.credential_ref.or(credential.map(str::to_owned));
    contract.fingerprint = fingerprint(tool.fingerprint)?;
    contract.idempotency = tool
        .idempotency
        .map(|given| idempotency(class, given))
        .transpose()?;
    contract.probe = tool.probe.map(|given| probe(class, given)).transpose()?;
    match (class, tool.target) {
        (Class::RemoteCommand, Some(target)) => {
            let remote = remote(target.into_inner())?;
            contract.fingerprint.command = Some(remote.command.clone());
            contract.remote = Some(remote);
        }
        (Class::RemoteCommand, None) => {
            let what = "a `remote_command` needs its `target`: at least where its arguments name `host` and `command`";
            return Err(Wrong {
                at: span,
                what: what.into(),
            });
        }
        (
            Class::ReadOnly
            | Class::IdempotentWrite
            | Class::ConditionalWrite
            | Class::Irreversible,
            None,
        ) => {}
        (
            Class::ReadOnly
            | Class::IdempotentWrite
            | Class::ConditionalWrite
            | Class::Irreversible,
            Some(target),
        ) => {
            let what =
                format!("`target` is for the class `remote_command`, and this tool is `{class}`");
            return Err(Wrong {
                at: target.span(),
                what,
            });
        }
    }
    contract.limits = ContractLimits {
        resume: tool.limits.resume.map(length).transpose()?,
        detached: tool.limits.detached.map(length).transpose()?,
        attach_wait: tool.limits.attach_wait.map(length).transpose()?,
    };
    Ok(contract)
}

/// To replay what is over is what the scope `durable` means.
fn closed_match(
    closed: &Spanned<OnClosedMatch>,
    given: Option<IntentScope>,
    scope: IntentScope,
) -> Checked<IntentScope> {
    match (closed.get_ref(), given, scope) {
        (OnClosedMatch::Replay, None | Some(IntentScope::Durable), _) => Ok(IntentScope::Durable),
        (OnClosedMatch::New, _, IntentScope::Run | IntentScope::Actor) => Ok(scope),
        (OnClosedMatch::Replay, Some(_), _) | (OnClosedMatch::New, _, IntentScope::Durable) => {
            let what = "`on_closed_match = \"replay\"` and the scope `durable` mean the same, and this tool says both and neither";
            Err(Wrong {
                at: closed.span(),
                what: what.into(),
            })
        }
    }
}

fn times(
    contract: &mut Contract,
    window: Option<&Spanned<Length>>,
    undelivered: Option<&Spanned<Length>>,
    retention: Option<&Spanned<Length>>,
) -> Checked<()> {
    if let Some(window) = window {
        contract.window.unresolved = match *window.get_ref() {
            Length::UntilResolved => None,
            Length::Of(length) => Some(length),
        };
    }
    if let Some(undelivered) = undelivered {
        contract.window.completed = length(undelivered.clone())?;
    }
    if let Some(retention) = retention {
        contract.retention = length(retention.clone())?;
    }
    if contract.retention < contract.window.longest() {
        let at = retention
            .or(window)
            .or(undelivered)
            .map_or(0..0, Spanned::span);
        let what = "`retention` is shorter than the window in which a repeat has to be found (`window`, `undelivered`)";
        return Err(Wrong {
            at,
            what: what.into(),
        });
    }
    Ok(())
}

fn length(length: Spanned<Length>) -> Checked<Duration> {
    match *length.get_ref() {
        Length::Of(duration) => Ok(duration),
        Length::UntilResolved => Err(Wrong {
            at: length.span(),
            what: "`until_resolved` is for `window` alone; write a length of time".into(),
        }),
    }
}

fn pointer(text: &Spanned<String>) -> Checked<Pointer> {
    text.get_ref()
        .parse()
        .map_err(|error: ParsePointerError| Wrong {
            at: text.span(),
            what: error.to_string(),
        })
}

fn fingerprint(given: raw::Fingerprint) -> Checked<FingerprintRules> {
    let same = given
        .same
        .iter()
        .map(|(at, same)| Ok((pointer(at)?, *same)));
    Ok(FingerprintRules {
        defaults: given.defaults.map(default_rule).transpose()?,
        ignore: given.ignore.iter().map(pointer).collect::<Checked<_>>()?,
        secret: given.secret.iter().map(pointer).collect::<Checked<_>>()?,
        same: same.collect::<Checked<_>>()?,
        command: None,
    })
}

fn default_rule(given: Spanned<toml::Value>) -> Checked<BTreeMap<Pointer, Value>> {
    let wrong = |what: String| Wrong {
        at: given.span(),
        what,
    };
    match given.get_ref() {
        toml::Value::String(text) if text == "as_sent" => Ok(BTreeMap::new()),
        toml::Value::Table(values) => {
            let filled = values.iter().map(|(at, value)| {
                let at = at.parse().map_err(|error: ParsePointerError| wrong(error.to_string()))?;
                // As the caller would have sent it.
                let json = serde_json::to_vec(value).ok().and_then(|text| json::parse(&text).ok());
                Ok((at, json.ok_or_else(|| wrong("a default has to be a JSON value".into()))?))
            });
            filled.collect()
        }
        _ => Err(wrong("`defaults` is \"as_sent\", or a table of JSON Pointers and the values that the target assumes".into())),
    }
}

fn idempotency(class: Class, given: Spanned<raw::Idempotency>) -> Checked<Idempotency> {
    let at = given.span();
    let wrong = |what: String| Wrong {
        at: at.clone(),
        what,
    };
    let raw::Idempotency {
        header,
        argument,
        meta,
        retains_for,
        on_changed_body,
    } = given.into_inner();
    if class == Class::ReadOnly {
        return Err(wrong("a `read_only` tool has no use for an idempotency channel; its class or this key is wrong".into()));
    }
    let channel = match (header, argument, meta) {
        (Some(header), None, None) => Channel::Header(header_name(&header).map_err(&wrong)?),
        (None, Some(argument), None) => Channel::Argument(argument),
        (None, None, Some(meta)) => Channel::Meta(meta),
        _ => {
            return Err(wrong(
                "an idempotency channel is exactly one of `header`, `argument` and `meta`".into(),
            ));
        }
    };
    if class == Class::IdempotentWrite && on_changed_body == Some(OnChangedBody::Accepted) {
        let what = "a target that accepts a changed body under the same key (`on_changed_body = \"accepted\"`) protects nothing; \
            this tool is not an `idempotent_write`";
        return Err(wrong(what.into()));
    }
    Ok(Idempotency {
        channel,
        retains_for: retains_for.map(length).transpose()?,
        on_changed_body,
    })
}

fn header_name(text: &str) -> Result<HeaderName, String> {
    let name = HeaderName::from_bytes(text.as_bytes())
        .map_err(|_| format!("`{text}` is no header name"))?;
    let taken = [
        "accept",
        "authorization",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "last-event-id",
    ];
    if taken.contains(&name.as_str()) || name.as_str().starts_with("mcp-") {
        return Err(format!(
            "the header `{text}` has a meaning of its own and can't carry an idempotency key"
        ));
    }
    Ok(name)
}

fn probe(class: Class, given: Spanned<raw::Probe>) -> Checked<Probe> {
    if class == Class::ReadOnly {
        return Err(Wrong {
            at: given.span(),
            what: "a `read_only` tool needs no probe; it is simply called again".into(),
        });
    }
    let given = given.into_inner();
    let arguments = given
        .arguments
        .iter()
        .map(|(name, at)| Ok((name.clone(), pointer(at)?)));
    Ok(Probe {
        tool: given.tool,
        arguments: arguments.collect::<Checked<_>>()?,
    })
}

fn remote(given: raw::Target) -> Checked<Remote> {
    Ok(Remote {
        host: pointer(&given.host)?,
        command: pointer(&given.command)?,
        account: given.account.as_ref().map(pointer).transpose()?,
        directory: given.directory.as_ref().map(pointer).transpose()?,
        marker: given.marker,
    })
}
