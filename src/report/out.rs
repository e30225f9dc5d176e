//! Standard output.

use std::io::{self, IsTerminal, StdoutLock, Write};

use serde::Serialize;

/// How the answer is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "people and programs")]
pub enum Form {
    /// For people.
    Table {
        /// Whether colours are seen.
        colour: bool,
    },
    /// One JSON object per line.
    Json,
}

/// Where the answer goes. That nobody reads it any more is no error.
pub struct Out {
    stdout: StdoutLock<'static>,
    form: Form,
}

impl Out {
    /// Standard output: a table on a terminal, JSON in a pipe or when asked for.
    ///
    /// # Source
    /// <https://no-color.org> for `NO_COLOR`.
    #[must_use]
    pub fn new(json: bool) -> Self {
        let stdout = io::stdout().lock();
        let terminal = stdout.is_terminal();
        let colour = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            form: if json || !terminal {
                Form::Json
            } else {
                Form::Table { colour }
            },
            stdout,
        }
    }

    /// Standard output for what is always for people.
    #[must_use]
    pub fn for_people() -> Self {
        let out = Self::new(false);
        let colour = matches!(out.form, Form::Table { colour: true });
        Self {
            form: Form::Table { colour },
            ..out
        }
    }

    /// How the answer is written.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Writes one line of JSON.
    ///
    /// # Errors
    /// When it can't be written; `BrokenPipe` when nobody reads on.
    pub fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.stdout, value).map_err(io::Error::from)?;
        self.stdout.write_all(b"\n")
    }

    /// Writes a line of text.
    ///
    /// # Errors
    /// As [`json`](Self::json).
    pub fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.stdout, "{text}")
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stdout.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}
