//! Flags, and what they are checked into.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use super::contract::{self, ContractCommand};
use super::demo::{self, AgentArgs};
use super::journal::{self, JournalCommand};
use super::{CliError, exit};
use crate::report::Out;

/// Resumes lost MCP streams, and never repeats a side-effecting tool call blindly.
///
/// Exit codes: 0 well, 1 the asked-for check failed, 2 usage or configuration, 3 environment (locked, unreachable, disk),
/// 4 tampered or damaged. Logs go to standard error (RUST_LOG sets what is logged); standard output is the answer.
#[derive(Debug, Parser)]
#[command(name = "reattach", version, propagate_version = true)]
#[expect(clippy::exhaustive_structs, reason = "the command line")]
pub struct Args {
    /// The contracts of tools. Default: reattach.toml, where there is one
    #[arg(long, global = true, value_name = "FILE", env = "REATTACH_CONFIG")]
    pub config: Option<PathBuf>,
    /// The journal's directory. Default: $XDG_STATE_HOME/reattach/journal
    #[arg(long, global = true, value_name = "DIR", env = "REATTACH_JOURNAL")]
    pub journal: Option<PathBuf>,
    /// Who acts, as the agent names itself: it is part of every fingerprint
    #[arg(long, global = true, value_name = "ACTOR", env = "REATTACH_ACTOR")]
    pub actor: Option<String>,
    /// Write JSON, one object per line, also on a terminal
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
#[expect(clippy::exhaustive_enums, reason = "the command line")]
pub enum Command {
    /// Shows the main job on real sockets: the same faults with and without the layer
    Demo,
    /// Reads the journal: list, show, dump
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Writes, checks and explains the contracts of tools: init, check, explain, diff
    #[command(subcommand)]
    Contract(ContractCommand),
    /// Prints a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The agent that the demo kills
    #[command(hide = true)]
    DemoAgent(AgentArgs),
}

/// Parses the command line, does what it says, and gives the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let args = Args::parse();
    let colour = io::stderr().is_terminal();
    let logs = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    tracing_subscriber::fmt()
        .with_env_filter(logs)
        .with_writer(io::stderr)
        .with_ansi(colour)
        .init();
    match run(&args) {
        Ok(true) => ExitCode::from(exit::WELL),
        Ok(false) => ExitCode::from(exit::CHECK_FAILED),
        Err(error) if error.is_closed_pipe() => ExitCode::from(exit::WELL),
        Err(error) => {
            let _ = complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(args: &Args) -> Result<bool, CliError> {
    match &args.command {
        Command::Journal(command) => {
            let dir = args
                .journal
                .clone()
                .or_else(default_journal)
                .ok_or(CliError::NoJournal)?;
            let mut out = Out::new(args.json);
            let held = journal::run(command, &dir, &mut out)?;
            out.flush()?;
            Ok(held)
        }
        Command::Contract(command) => asynchronously(async {
            let mut out = Out::new(args.json);
            let journal = args.journal.clone().or_else(default_journal);
            let setting = contract::Setting {
                config: args.config.as_deref(),
                journal: journal.as_deref(),
                actor: args.actor.as_deref(),
            };
            let held = contract::run(command, &setting, &mut out).await?;
            out.flush()?;
            Ok(held)
        }),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(
                *shell,
                &mut <Args as clap::CommandFactory>::command(),
                "reattach",
                &mut script,
            );
            Out::for_people().write_all(&script)?;
            Ok(true)
        }
        Command::Demo => asynchronously(async {
            let mut out = io::stdout();
            let colour = out.is_terminal()
                && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            Ok(demo::run(&mut out, colour).await?)
        }),
        Command::DemoAgent(agent) => asynchronously(async {
            demo::agent(agent, &mut io::stdout()).await?;
            Ok(true)
        }),
    }
}

fn asynchronously(work: impl Future<Output = Result<bool, CliError>>) -> Result<bool, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(work)
}

/// Says what went wrong, and why, in one line.
fn complain(error: &CliError) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "reattach: {error}")?;
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        write!(stderr, ": {cause}")?;
        source = cause.source();
    }
    writeln!(stderr)
}

/// # Source
/// XDG Base Directory Specification, `XDG_STATE_HOME`.
fn default_journal() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let state =
        absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("reattach/journal"))
}
