//! What ends a command early, and with which exit code.

use std::io;

use super::demo::DemoError;
use super::exit;
use crate::journal::JournalError;
use crate::journal::store::StoreError;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The demo.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// Standard output.
    #[error("the answer can't be written")]
    Output(#[from] io::Error),
    /// The journal does not know this execution.
    #[error("the journal has no execution {0}; `reattach journal list` shows those it has")]
    NoExecution(crate::identity::ExecutionId),
    /// The configuration file can't be read.
    #[error("{} can't be read", path.display())]
    Config {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The configuration file is wrong.
    #[error(transparent)]
    Contracts(#[from] crate::contract::FileError),
    /// Arguments on the command line that are no JSON object.
    #[error("--args: {0}")]
    Arguments(String),
    /// A server that does not answer.
    #[error("{url} can't be asked for its tools: {why}")]
    Server {
        /// The server.
        url: String,
        /// Why.
        why: String,
    },
    /// No place for the journal.
    #[error(
        "no journal is named, and neither XDG_STATE_HOME nor HOME says where the default one is; use --journal"
    )]
    NoJournal,
}

impl CliError {
    /// The exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Journal(error) => of_journal(error),
            Self::Demo(_) | Self::Output(_) | Self::Server { .. } => exit::ENVIRONMENT,
            Self::NoExecution(_)
            | Self::NoJournal
            | Self::Config { .. }
            | Self::Contracts(_)
            | Self::Arguments(_) => exit::USAGE,
        }
    }

    /// Whether it only says that nobody reads the answer any more.
    #[must_use]
    pub fn is_closed_pipe(&self) -> bool {
        match self {
            Self::Output(error) | Self::Demo(DemoError::Output(error)) => {
                error.kind() == io::ErrorKind::BrokenPipe
            }
            Self::Journal(_)
            | Self::Demo(DemoError::Machine { .. })
            | Self::NoExecution(_)
            | Self::NoJournal
            | Self::Config { .. }
            | Self::Contracts(_)
            | Self::Arguments(_)
            | Self::Server { .. } => false,
        }
    }
}

fn of_journal(error: &JournalError) -> u8 {
    match error {
        JournalError::BrokenChain { .. }
        | JournalError::Unreadable { .. }
        | JournalError::Impossible { .. }
        | JournalError::Sealed { .. }
        | JournalError::SealedCursor { .. } => exit::DAMAGED,
        JournalError::Store(StoreError::Damaged { .. }) => exit::DAMAGED,
        JournalError::Key(_) | JournalError::Format { .. } => exit::USAGE,
        JournalError::Closed
        | JournalError::Owned { .. }
        | JournalError::Directory { .. }
        | JournalError::Store(_)
        | JournalError::NotDurable { .. }
        | JournalError::Failed { .. }
        | JournalError::Misplaced { .. }
        | JournalError::NotOpen { .. }
        | JournalError::TooLarge { .. } => exit::ENVIRONMENT,
    }
}
