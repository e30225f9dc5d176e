//! What is wrong in the file, and where.

use std::fmt;
use std::ops::Range;

/// A place in a file; line and column count from 1.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct Place {
    /// The file, as the caller named it.
    pub file: String,
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What is wrong in a `reattach.toml`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{place}: {what}")]
#[non_exhaustive]
pub struct FileError {
    /// Where.
    pub place: Place,
    /// What is wrong, and what is allowed.
    pub what: String,
}

/// What is wrong at some bytes of the file.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) at: Range<usize>,
    pub(super) what: String,
}

impl Wrong {
    pub(super) fn in_file(self, name: &str, text: &str) -> FileError {
        FileError {
            place: place(name, text, self.at.start),
            what: self.what,
        }
    }
}

impl FileError {
    /// An error of the parser, with a suggestion where a key is misspelt.
    pub(super) fn of(name: &str, text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start);
        Self {
            place: place(name, text, at),
            what: advise(error.message()),
        }
    }
}

fn place(name: &str, text: &str, at: usize) -> Place {
    let before = &text[..text.floor_char_boundary(at.min(text.len()))];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        file: name.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

fn advise(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    let unknown = message
        .starts_with("unknown field")
        .then(|| names.next())
        .flatten();
    let Some(unknown) = unknown else {
        return message.to_owned();
    };
    if GLOBAL.contains(&unknown) && message.contains("`servers`") {
        return format!(
            "`{unknown}` can't be set for all classes at once: what is right for a read is wrong for a payment; \
             set it under [defaults.irreversible] and the like, or for a tool"
        );
    }
    let close = names.min_by_key(|name| strsim::osa_distance(unknown, name));
    match close.filter(|name| strsim::osa_distance(unknown, name) <= 1 + unknown.len() / 4) {
        Some(close) => format!("{message}; did you mean `{close}`?"),
        None => message.to_owned(),
    }
}

/// Numbers that people look for at the top.
const GLOBAL: [&str; 6] = [
    "window",
    "undelivered",
    "retention",
    "ttl",
    "expiry",
    "scope",
];
