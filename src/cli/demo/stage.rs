//! What the demo is shown on: lines, claims, and the journal that all its agents share.

use std::io::Write;
use std::path::PathBuf;

use super::{DemoError, machine};
use crate::chaos::Ledger;
use crate::contract::{Class, Contract, Contracts};
use crate::execution::State;
use crate::journal::{Journal, JournalOptions, Reader};
use crate::layer::ReattachLayer;

pub(super) struct Stage<'a> {
    out: &'a mut (dyn Write + Send),
    colour: bool,
    held: usize,
    broken: usize,
    dir: tempfile::TempDir,
}

impl<'a> Stage<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send), colour: bool) -> Result<Self, DemoError> {
        let dir = tempfile::tempdir().map_err(machine("no temporary directory can be made"))?;
        Ok(Self {
            out,
            colour,
            held: 0,
            broken: 0,
            dir,
        })
    }

    pub(super) fn say(&mut self, line: &str) -> Result<(), DemoError> {
        Ok(writeln!(self.out, "{line}")?)
    }

    pub(super) fn part(&mut self, letter: char, title: &str) -> Result<(), DemoError> {
        let title = self.bold(&format!("({letter}) {title}"));
        Ok(writeln!(self.out, "\n{title}")?)
    }

    /// One side of a comparison: who, what the agent was told, and what the ledger says.
    pub(super) fn side(&mut self, who: &str, told: &str, ledger: &Ledger) -> Result<(), DemoError> {
        let amounts: Vec<_> = ledger
            .effects()
            .iter()
            .map(|effect| effect.amount().to_string())
            .collect();
        let ledger = match amounts.len() {
            0 => "nothing".to_owned(),
            1 => format!("1 payment ({})", amounts[0]),
            n => format!("{n} payments ({})", amounts.join(" + ")),
        };
        writeln!(self.out, "    {who:<16} the agent was told: {told}")?;
        Ok(writeln!(
            self.out,
            "    {:<16} the ledger shows:   {}",
            "",
            self.bold(&ledger)
        )?)
    }

    /// A claim, and whether it holds.
    pub(super) fn claim(&mut self, claim: &str, holds: bool) -> Result<(), DemoError> {
        let (mark, code) = if holds {
            ("holds ", "32")
        } else {
            ("BROKEN", "31")
        };
        if holds {
            self.held += 1
        } else {
            self.broken += 1
        }
        let mark = if self.colour {
            format!("\x1b[{code}m{mark}\x1b[0m")
        } else {
            mark.to_owned()
        };
        Ok(writeln!(self.out, "    {mark} {claim}")?)
    }

    pub(super) fn journal_dir(&self) -> PathBuf {
        self.dir.path().join("journal")
    }

    pub(super) async fn layer(&self) -> Result<ReattachLayer, DemoError> {
        layer(self.journal_dir()).await
    }

    /// The journal of all parts, as a table.
    pub(super) async fn journal(&mut self) -> Result<(), DemoError> {
        self.say("")?;
        let title = self.bold("The journal, as `reattach journal list` shows it");
        self.say(&title)?;
        let dir = self.journal_dir();
        let read =
            move || Reader::open(&dir).and_then(|reader| reader.executions(&Default::default()));
        let records = tokio::task::spawn_blocking(read)
            .await
            .map_err(machine("a thread ended"))?;
        let records = records.map_err(machine("the journal can't be read"))?;
        let table = crate::report::executions(&records, self.colour);
        self.say(&table)?;
        let once = records.iter().all(|record| record.dispatches.len() == 1);
        self.claim(
            "every execution was dispatched exactly once",
            once && !records.is_empty(),
        )?;
        let known = |state| {
            records
                .iter()
                .filter(|record| record.state == state)
                .count()
        };
        let unknowns = known(State::OutcomeUnknown);
        self.claim(
            "the one answer that could not be had is there as outcome_unknown",
            unknowns >= 1,
        )
    }

    /// Says how it went. Whether every claim held.
    pub(super) fn verdict(&mut self) -> Result<bool, DemoError> {
        let (held, broken) = (self.held, self.broken);
        let line = if broken == 0 {
            format!("All {held} claims hold.")
        } else {
            format!("{broken} of {} claims do NOT hold.", held + broken)
        };
        let line = self.bold(&line);
        writeln!(self.out, "\n{line}")?;
        self.out.flush()?;
        Ok(broken == 0)
    }

    fn bold(&self, text: &str) -> String {
        if self.colour {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// A layer over the demo's journal: the same actor in every process.
pub(super) async fn layer(journal: PathBuf) -> Result<ReattachLayer, DemoError> {
    let journal = Journal::open(JournalOptions::new(journal))
        .await
        .map_err(machine("the journal can't be opened"))?;
    let contracts = Contracts::builder()
        .tool("get_balance", Contract::of(Class::ReadOnly))
        .build();
    let builder = ReattachLayer::builder(journal)
        .actor("process:demo-agent")
        .contracts(contracts);
    builder
        .build()
        .await
        .map_err(machine("the journal can't be written"))
}
