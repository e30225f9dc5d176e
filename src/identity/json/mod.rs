//! JSON as identity needs it: read strictly, written canonically.
//!
//! [`parse`] refuses what two parsers could read as two effects: a repeated member name, nesting beyond a limit, a lone
//! surrogate. It keeps numbers as they were written, so that no digit is lost. [`Value::canonical`] writes RFC 8785,
//! with one deliberate step beyond it: an integer that a double cannot hold keeps its digits, because 2^53 + 1 is
//! another amount than 2^53.

mod canonical;
mod number;
mod parse;

pub(super) use canonical::write_string;
pub use number::Number;
pub use parse::{JsonError, MAX_DEPTH, parse};

/// A JSON value. Members are in the order of RFC 8785 (UTF-16 code units of their names), each name once.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "RFC 8259 has these six")]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, with all its digits.
    Number(Number),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// An object of these members, put in canonical order.
    #[must_use]
    pub fn object(members: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut members: Vec<_> = members.into_iter().collect();
        members.sort_by(|(one, _), (other, _)| canonical::order(one, other));
        Self::Object(members)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}
