//! `reattach contract`: what happens, for each tool, if the caller loses the answer.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use rmcp::ServiceExt;
use rmcp::model::Tool;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use serde::Serialize;

use super::CliError;
use crate::contract::{Contract, Contracts};
use crate::entropy;
use crate::identity::json::{self, Value};
use crate::identity::{Fingerprint, FingerprintKey, KeyId};
use crate::journal::{Journal, JournalOptions};
use crate::report::{self, Form, Out};
use crate::sdk::rmcp::TowerClient;

/// Writes, checks and explains the contracts of tools.
#[derive(Debug, Subcommand)]
#[expect(clippy::exhaustive_enums, reason = "the command line")]
pub enum ContractCommand {
    /// Writes a skeleton of `reattach.toml` from a live server's tools, each open question marked.
    Init {
        /// The server's MCP endpoint.
        #[arg(long)]
        url: String,
    },
    /// Reports tools whose contract leaves a question open; exits with 1 when there are any.
    Check {
        /// Check every tool that this live server has, not only those the file names.
        #[arg(long)]
        url: Option<String>,
        /// Also write the result as JUnit XML.
        #[arg(long, value_name = "FILE")]
        junit: Option<PathBuf>,
    },
    /// Shows what a call is to the layer: its class, its canonical record with secrets masked, and each fault's consequence.
    Explain {
        /// The tool.
        tool: String,
        /// Its arguments, as JSON.
        #[arg(long, default_value = "{}")]
        args: String,
        /// The server's MCP endpoint.
        #[arg(long, default_value = "http://localhost/")]
        server: String,
    },
    /// Says why two calls of a tool are not the same action: by the names of fields, never by their values.
    Diff {
        /// The tool.
        tool: String,
        /// The arguments of each, as JSON; twice.
        #[arg(long, required = true, num_args = 1)]
        args: Vec<String>,
        /// The server's MCP endpoint.
        #[arg(long, default_value = "http://localhost/")]
        server: String,
    },
}

/// Where the command finds things.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Setting<'a> {
    /// The configuration file.
    pub config: Option<&'a Path>,
    /// The journal's directory, which holds what the fingerprint's key is made from.
    pub journal: Option<&'a Path>,
    /// Who acts.
    pub actor: Option<&'a str>,
}

/// Carries the command out. Whether the check that was asked for holds.
///
/// # Errors
/// [`CliError`]
pub async fn run(
    command: &ContractCommand,
    setting: &Setting<'_>,
    out: &mut Out,
) -> Result<bool, CliError> {
    let config = setting.config;
    match command {
        ContractCommand::Init { url } => init(url, out).await.map(|()| true),
        ContractCommand::Check { url, junit } => {
            check(url.as_deref(), junit.as_deref(), config, out).await
        }
        ContractCommand::Explain { tool, args, server } => {
            let fingerprint = fingerprint(tool, args, server, &read(config)?, setting).await?;
            explain(tool, args, server, &read(config)?, &fingerprint, out).map(|()| true)
        }
        ContractCommand::Diff { tool, args, server } => {
            diff(tool, args, server, &read(config)?, out)
        }
    }
}

/// The contracts of the configuration file; none where there is none.
fn read(config: Option<&Path>) -> Result<Contracts, CliError> {
    let path = match config {
        Some(path) => path.to_owned(),
        None if Path::new(DEFAULT_FILE).exists() => PathBuf::from(DEFAULT_FILE),
        None => return Ok(Contracts::default()),
    };
    let text = std::fs::read_to_string(&path).map_err(|source| CliError::Config {
        path: path.clone(),
        source,
    })?;
    Ok(Contracts::from_toml(&path.display().to_string(), &text)?)
}

/// Origin and path of an endpoint, as contracts are found by.
fn endpoint(url: &str) -> Result<String, CliError> {
    let wrong = |_| CliError::Server {
        url: url.to_owned(),
        why: "it is no URL".into(),
    };
    url.parse::<http::Uri>()
        .map(|uri| crate::wire::target(&uri))
        .map_err(wrong)
}

async fn tools(url: &str) -> Result<Vec<Tool>, CliError> {
    let unreachable = |error: &dyn std::error::Error| CliError::Server {
        url: url.to_owned(),
        why: error.to_string(),
    };
    let client = TowerClient::new(crate::client::builder().build());
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let server = ().serve(StreamableHttpClientTransport::with_client(client, config)).await;
    let server = server.map_err(|error| unreachable(&error))?;
    let tools = server
        .list_all_tools()
        .await
        .map_err(|error| unreachable(&error))?;
    let _ = server.cancel().await;
    Ok(tools)
}

async fn init(url: &str, out: &mut Out) -> Result<(), CliError> {
    let target = endpoint(url)?;
    out.line("# What happens, for each tool, if the caller loses the answer after dispatch. Lines with `?` are yours to answer.")?;
    out.line(&format!(
        "[servers.main]\nurl = {}\n# ? credential_ref = \"a name, never a token\"",
        quoted(&target)
    ))?;
    for tool in tools(url).await? {
        let hints = tool.annotations.clone().unwrap_or_default();
        let says = tool
            .description
            .as_deref()
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default();
        out.line(&format!("\n# {}", report::escape(says)))?;
        out.line(&format!("[servers.main.tools.{}]", quoted(&tool.name)))?;
        let class =
            "# ? read_only, idempotent_write, conditional_write, irreversible, remote_command";
        match (hints.read_only_hint, hints.destructive_hint) {
            // A hint is the server's word about itself: it is shown, and it decides nothing.
            (Some(true), None | Some(false)) => out.line(&format!(
                "class = \"irreversible\" {class}; the server says: read-only"
            ))?,
            _ => out.line(&format!("class = \"irreversible\" {class}"))?,
        }
        out.line("# ? fingerprint.defaults = \"as_sent\"")?;
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[derive(Serialize)]
struct Checked {
    r#type: &'static str,
    tool: String,
    class: &'static str,
    ready: bool,
    unanswered: Vec<String>,
}

async fn check(
    url: Option<&str>,
    junit: Option<&Path>,
    config: Option<&Path>,
    out: &mut Out,
) -> Result<bool, CliError> {
    let contracts = read(config)?;
    let checked = match url {
        Some(url) => {
            let target = endpoint(url)?;
            let of = |tool: Tool| {
                checked(
                    tool.name.to_string(),
                    contracts.written(&target, &tool.name),
                )
            };
            tools(url).await?.into_iter().map(of).collect()
        }
        None => contracts
            .rules()
            .map(|(name, contract)| checked(name.to_owned(), Some(contract)))
            .collect::<Vec<_>>(),
    };
    match out.form() {
        Form::Json => {
            for row in &checked {
                out.json(row)?;
            }
        }
        Form::Table { .. } => {
            for row in &checked {
                let ready = if row.ready { "ready" } else { "NOT READY" };
                out.line(&format!(
                    "{ready:<10} {:<18} {}",
                    row.class,
                    report::escape(&row.tool)
                ))?;
                for question in &row.unanswered {
                    out.line(&format!("           - {question}"))?;
                }
            }
            let ready = checked.iter().filter(|row| row.ready).count();
            out.line(&format!(
                "\n{ready} of {} tools are ready for unattended use",
                checked.len()
            ))?;
        }
    }
    if let Some(path) = junit {
        std::fs::write(path, junit_of(&checked))?;
    }
    Ok(checked.iter().all(|row| row.ready))
}

fn checked(tool: String, contract: Option<&Contract>) -> Checked {
    let unanswered = match contract {
        None => vec![
            "it has no contract, so it counts as irreversible: write one, if only to say so"
                .to_owned(),
        ],
        Some(contract) => contract
            .unanswered()
            .into_iter()
            .map(|(key, question)| format!("{key}: {question}"))
            .collect(),
    };
    let class = contract
        .map_or(crate::contract::Class::Irreversible, |contract| {
            contract.class
        })
        .name();
    Checked {
        r#type: "contract",
        tool,
        class,
        ready: unanswered.is_empty(),
        unanswered,
    }
}

fn junit_of(checked: &[Checked]) -> String {
    let safe = |text: &str| {
        report::escape(text)
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
    };
    let failures = checked.iter().filter(|row| !row.ready).count();
    let mut xml = format!(
        "<testsuite name=\"reattach contract check\" tests=\"{}\" failures=\"{failures}\">\n",
        checked.len()
    );
    for row in checked {
        xml.push_str(&format!(
            "  <testcase classname=\"contract\" name=\"{}\">",
            safe(&row.tool)
        ));
        if !row.ready {
            xml.push_str(&format!(
                "<failure message=\"not ready\">{}</failure>",
                safe(&row.unanswered.join("; "))
            ));
        }
        xml.push_str("</testcase>\n");
    }
    xml.push_str("</testsuite>\n");
    xml
}

/// The call as it enters the fingerprint, as JSON. Secrets are masked by a key that nobody has.
fn record(
    contract: &Contract,
    tool: &str,
    args: &str,
    server: &str,
) -> Result<serde_json::Value, CliError> {
    let arguments =
        json::parse(args.as_bytes()).map_err(|error| CliError::Arguments(error.to_string()))?;
    if !matches!(arguments, Value::Object(_)) {
        return Err(CliError::Arguments("arguments are a JSON object".into()));
    }
    let key = FingerprintKey::new(KeyId(0), entropy::bytes());
    let target = endpoint(server)?;
    let action = contract.action("(the actor)", &target, tool, arguments, &key);
    let mut value: serde_json::Value =
        serde_json::from_slice(&action.canonical()).unwrap_or_default();
    for secret in &contract.fingerprint.secret {
        if let Some(place) = value["arguments"].pointer_mut(&secret.to_string()) {
            *place = "(secret, enters as a keyed digest)".into();
        }
    }
    Ok(value)
}

/// The fingerprint of the call in the journal that is there; the reason where there is none.
async fn fingerprint(
    tool: &str,
    args: &str,
    server: &str,
    contracts: &Contracts,
    setting: &Setting<'_>,
) -> Result<Result<Fingerprint, String>, CliError> {
    let arguments =
        json::parse(args.as_bytes()).map_err(|error| CliError::Arguments(error.to_string()))?;
    let target = endpoint(server)?;
    let Some(actor) = setting.actor else {
        return Ok(Err("say who acts, with --actor".into()));
    };
    let Some(dir) = setting.journal.filter(|dir| dir.is_dir()) else {
        return Ok(Err("there is no journal yet, and its key makes it".into()));
    };
    let journal = match Journal::open(JournalOptions::new(dir)).await {
        Ok(journal) => journal,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let key = journal.fingerprint_key();
    let action = contracts
        .find(&target, tool)
        .action(actor, &target, tool, arguments, key);
    Ok(Ok(key.fingerprint(&action.canonical())))
}

fn explain(
    tool: &str,
    args: &str,
    server: &str,
    contracts: &Contracts,
    fingerprint: &Result<Fingerprint, String>,
    out: &mut Out,
) -> Result<(), CliError> {
    let target = endpoint(server)?;
    let contract = contracts.find(&target, tool);
    let record = record(contract, tool, args, server)?;
    let written = contracts.written(&target, tool).is_some();
    match out.form() {
        Form::Json => out.json(&serde_json::json!({
            "type": "explanation", "tool": tool, "class": contract.class, "has_contract": written,
            "scope": contract.scope.name(), "record": record,
            "fingerprint": fingerprint.as_ref().ok(), "no_fingerprint_because": fingerprint.as_ref().err(),
            "faults": contract.faults().iter().map(|(fault, then)| serde_json::json!({ "fault": fault, "then": then })).collect::<Vec<_>>(),
            "unanswered": contract.unanswered().iter().map(|(key, _)| key).collect::<Vec<_>>(),
        }))?,
        Form::Table { .. } => {
            let why = if written { "" } else { " (it has no contract)" };
            out.line(&format!("class        {}{why}\nscope        {}", contract.class, contract.scope.name()))?;
            out.line(&format!("\nwhat enters the fingerprint\n{}", serde_json::to_string_pretty(&record).unwrap_or_default()))?;
            match fingerprint {
                Ok(fingerprint) => out.line(&format!("\nfingerprint  {fingerprint}"))?,
                Err(reason) => out.line(&format!("\nfingerprint  not known: {reason}"))?,
            }
            out.line("\nwhat happens when")?;
            for (fault, then) in contract.faults() {
                out.line(&format!("  {fault}\n      {then}"))?;
            }
        }
    }
    Ok(())
}

fn diff(
    tool: &str,
    args: &[String],
    server: &str,
    contracts: &Contracts,
    out: &mut Out,
) -> Result<bool, CliError> {
    let [one, other] = args else {
        return Err(CliError::Arguments("give --args twice".into()));
    };
    let target = endpoint(server)?;
    let contract = contracts.find(&target, tool);
    // One key for both, so that equal secrets are equal.
    let key = FingerprintKey::new(KeyId(0), entropy::bytes());
    let normal = |text: &str| {
        let arguments =
            json::parse(text.as_bytes()).map_err(|error| CliError::Arguments(error.to_string()))?;
        let action = contract.action("", "", tool, arguments, &key);
        Ok::<_, CliError>(
            serde_json::from_slice::<serde_json::Value>(&action.arguments.canonical())
                .unwrap_or_default(),
        )
    };
    let (one, other) = (normal(one)?, normal(other)?);
    let mut fields = Vec::new();
    differences("", &one, &other, &mut fields);
    match out.form() {
        Form::Json => out.json(&serde_json::json!({ "type": "diff", "tool": tool, "same_action": fields.is_empty(), "fields": fields }))?,
        Form::Table { .. } if fields.is_empty() => out.line("the same action")?,
        Form::Table { .. } => {
            out.line("two actions; they differ in")?;
            for field in &fields {
                out.line(&format!("  {}", report::escape(field)))?;
            }
        }
    }
    Ok(fields.is_empty())
}

/// The places where two values differ.
fn differences(
    at: &str,
    one: &serde_json::Value,
    other: &serde_json::Value,
    fields: &mut Vec<String>,
) {
    match (one, other) {
        (serde_json::Value::Object(one), serde_json::Value::Object(other)) => {
            let names: std::collections::BTreeSet<_> = one.keys().chain(other.keys()).collect();
            for name in names {
                let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
                match (one.get(name), other.get(name)) {
                    (Some(one), Some(other)) => differences(&at, one, other, fields),
                    (None, _) => fields.push(format!("{at} (only in the second)")),
                    (_, None) => fields.push(format!("{at} (only in the first)")),
                }
            }
        }
        (serde_json::Value::Array(one), serde_json::Value::Array(other))
            if one.len() == other.len() =>
        {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                differences(&format!("{at}/{index}"), one, other, fields);
            }
        }
        (one, other) if one == other => {}
        _ => fields.push(if at.is_empty() {
            "(all of it)".to_owned()
        } else {
            at.to_owned()
        }),
    }
}

const DEFAULT_FILE: &str = "reattach.toml";
