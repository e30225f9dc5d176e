//! A place in a call's arguments: a JSON Pointer, in which `*` stands for every item or member.

use std::fmt;
use std::str::FromStr;

use crate::identity::json::Value;

/// A JSON Pointer (RFC 6901) below the arguments. A reference token `*` stands for every item of an array, or every member
/// of an object.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Pointer {
    tokens: Vec<String>,
}

/// A text that is not a pointer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{0}` is not a JSON Pointer to an argument; wanted `/name`, `/outer/inner` or `/list/*/name`"
)]
pub struct ParsePointerError(String);

impl FromStr for Pointer {
    type Err = ParsePointerError;

    fn from_str(text: &str) -> Result<Self, ParsePointerError> {
        let pointer =
            jsonptr::Pointer::parse(text).map_err(|_| ParsePointerError(text.to_owned()))?;
        let tokens: Vec<_> = pointer
            .tokens()
            .map(|token| token.decoded().into_owned())
            .collect();
        if tokens.is_empty() {
            Err(ParsePointerError(text.to_owned()))
        } else {
            Ok(Self { tokens })
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tokens
            .iter()
            .try_for_each(|token| write!(f, "/{}", token.replace('~', "~0").replace('/', "~1")))
    }
}

impl Pointer {
    /// The first value at this place.
    #[must_use]
    pub fn get<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        get(value, &self.tokens)
    }

    /// Takes away whatever is at this place.
    pub(super) fn remove(&self, value: &mut Value) {
        let Some((last, outer)) = self.tokens.split_last() else {
            return;
        };
        walk(value, outer, &mut |value| match value {
            Value::Object(members) => members.retain(|(name, _)| last != "*" && name != last),
            Value::Array(items) if last == "*" => items.clear(),
            Value::Array(items) => {
                if let Some(at) = last.parse().ok().filter(|at| *at < items.len()) {
                    items.remove(at);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        });
    }

    /// Puts a value where there is none; objects on the way are made.
    pub(super) fn fill(&self, value: &mut Value, default: &Value) {
        fill(value, &self.tokens, default);
    }

    /// Changes whatever is at this place.
    pub(super) fn change(&self, value: &mut Value, change: &mut dyn FnMut(&mut Value)) {
        walk(value, &self.tokens, change);
    }
}

fn get<'a>(value: &'a Value, tokens: &[String]) -> Option<&'a Value> {
    let Some((token, rest)) = tokens.split_first() else {
        return Some(value);
    };
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| token == "*" || name == token)
            .find_map(|(_, value)| get(value, rest)),
        Value::Array(items) if token == "*" => items.iter().find_map(|item| get(item, rest)),
        Value::Array(items) => get(items.get(token.parse::<usize>().ok()?)?, rest),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn walk(value: &mut Value, tokens: &[String], act: &mut dyn FnMut(&mut Value)) {
    let Some((token, rest)) = tokens.split_first() else {
        return act(value);
    };
    match value {
        Value::Object(members) => {
            for (_, value) in members
                .iter_mut()
                .filter(|(name, _)| token == "*" || name == token)
            {
                walk(value, rest, act);
            }
        }
        Value::Array(items) => {
            let one = token.parse::<usize>().ok();
            for (_, item) in items
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| token == "*" || Some(*at) == one)
            {
                walk(item, rest, act);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn fill(value: &mut Value, tokens: &[String], default: &Value) {
    let Some((token, rest)) = tokens.split_first() else {
        return;
    };
    match value {
        Value::Object(members) if token == "*" => {
            members
                .iter_mut()
                .for_each(|(_, value)| fill(value, rest, default));
        }
        Value::Object(members) => match members.iter_mut().find(|(name, _)| name == token) {
            Some((_, value)) => fill(value, rest, default),
            None => {
                let mut made = if rest.is_empty() {
                    default.clone()
                } else {
                    Value::Object(Vec::new())
                };
                fill(&mut made, rest, default);
                members.push((token.clone(), made));
                *value = Value::object(std::mem::take(members));
            }
        },
        Value::Array(items) if token == "*" => {
            items.iter_mut().for_each(|item| fill(item, rest, default))
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_reads_back_and_says_what_is_wrong() {
        for text in ["/a", "/a/*/b", "/a~1b/~0"] {
            assert_eq!(text.parse::<Pointer>().unwrap().to_string(), text);
        }
        for text in ["", "a", "/a~2"] {
            assert!(
                text.parse::<Pointer>()
                    .unwrap_err()
                    .to_string()
                    .contains("/outer/inner"),
                "{text}"
            );
        }
    }
}
