//! `reattach journal`: what happened, for those who have to know.

use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};

use super::CliError;
use crate::clock::Timestamp;
use crate::execution::State;
use crate::identity::ExecutionId;
use crate::journal::{Event, Filter, Reader};
use crate::report::{self, Form, Out};

/// Reads the journal. Nothing is ever sent, and nothing is changed.
#[derive(Debug, Subcommand)]
#[expect(clippy::exhaustive_enums, reason = "the command line")]
pub enum JournalCommand {
    /// Lists executions, oldest first: a table on a terminal, one JSON object per line in a pipe.
    #[command(
        after_help = "Example: all that needs somebody's attention\n  reattach journal list --state outcome_unknown --state dispatched"
    )]
    List(ListArgs),
    /// Shows one execution: its record, its timeline, and the next safe step.
    Show {
        /// The execution: `exe_` and 26 characters.
        id: ExecutionId,
    },
    /// Writes everything as JSON, one object per line: runs, entries with their chain, executions.
    #[command(
        after_help = "Example: unknown outcomes\n  reattach journal dump | jq 'select(.type == \"execution\" and .state == \"outcome_unknown\")'"
    )]
    Dump,
}

/// What to list.
#[derive(Args, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the command line")]
pub struct ListArgs {
    /// Only in this state; may be repeated.
    #[arg(long, value_enum)]
    pub state: Vec<StateArg>,
    /// Only calls of this tool.
    #[arg(long)]
    pub tool: Option<String>,
    /// Only those of this actor.
    #[arg(long)]
    pub actor: Option<String>,
    /// Only those accepted at this time or later (RFC 3339).
    #[arg(long, value_name = "TIME")]
    pub since: Option<Timestamp>,
    /// Only those accepted before this time (RFC 3339).
    #[arg(long, value_name = "TIME")]
    pub until: Option<Timestamp>,
    /// Only the newest N of them.
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
    /// Exit with 1 when anything is listed: for cron and CI.
    #[arg(long)]
    pub fail_if_any: bool,
}

/// A state, by its name on disk.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the command line")]
pub struct StateArg(pub State);

impl ValueEnum for StateArg {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: [StateArg; State::ALL.len()] = {
            let mut all = [StateArg(State::Accepted); State::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = StateArg(State::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}

/// Carries the command out. Whether the check that was asked for holds.
///
/// # Errors
/// [`CliError`]
pub fn run(command: &JournalCommand, dir: &Path, out: &mut Out) -> Result<bool, CliError> {
    let reader = Reader::open(dir)?;
    match command {
        JournalCommand::List(args) => list(args, &reader, out),
        JournalCommand::Show { id } => show(*id, &reader, out).map(|()| true),
        JournalCommand::Dump => dump(&reader, out).map(|()| true),
    }
}

fn list(args: &ListArgs, reader: &Reader, out: &mut Out) -> Result<bool, CliError> {
    let filter = Filter {
        tool: args.tool.clone(),
        states: args.state.iter().map(|state| state.0).collect(),
        actor: args.actor.clone(),
        since: args.since,
        until: args.until,
    };
    let mut records = reader.executions(&filter)?;
    if let Some(last) = args.last {
        records.drain(..records.len().saturating_sub(last));
    }
    match out.form() {
        Form::Json => {
            for record in &records {
                out.json(record)?;
            }
        }
        Form::Table { .. } if records.is_empty() => out.line("no executions")?,
        Form::Table { colour } => {
            out.line(&report::executions(&records, colour))?;
            let open = records
                .iter()
                .filter(|record| record.state.is_unresolved())
                .count();
            out.line(&format!(
                "\n{} executions, {open} of them unresolved",
                records.len()
            ))?;
        }
    }
    Ok(!args.fail_if_any || records.is_empty())
}

fn show(id: ExecutionId, reader: &Reader, out: &mut Out) -> Result<(), CliError> {
    let (record, entries) = reader.record(id)?.ok_or(CliError::NoExecution(id))?;
    match out.form() {
        Form::Table { .. } => out.line(&report::show(&record, &entries))?,
        Form::Json => {
            out.json(&record)?;
            for entry in &entries {
                out.json(&report::entry_line(entry))?;
            }
        }
    }
    Ok(())
}

/// Entries are written as they are read, so that a journal of any length can be dumped; a journal that is damaged is dumped
/// up to the damage, which is then the error.
fn dump(reader: &Reader, out: &mut Out) -> Result<(), CliError> {
    let mut failed = None;
    let read = reader.entries(&mut |entry| {
        if failed.is_none() {
            let run = match &entry.event {
                Event::RunStarted(run) => out.json(&RunLine { r#type: "run", run }),
                _ => Ok(()),
            };
            failed = run
                .and_then(|()| out.json(&report::entry_line(&entry)))
                .err();
        }
        Ok(())
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    read?;
    for record in reader.executions(&Filter::default())? {
        out.json(&record)?;
    }
    Ok(())
}

#[derive(serde::Serialize)]
struct RunLine<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    run: &'a crate::journal::RunStarted,
}
