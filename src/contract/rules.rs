//! What of a call's arguments is its effect: defaults, fields without meaning, secrets, equivalent spellings.

use std::collections::BTreeMap;

use super::pointer::Pointer;
use crate::identity::FingerprintKey;
use crate::identity::json::Value;

/// How arguments enter the fingerprint. An argument that no rule names enters as it is.
///
/// # Source
/// Design, section 2, "The canonical action record"; essay, requirements 34 to 41.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FingerprintRules {
    /// Values of arguments that the caller may leave out. `None`: nobody said, which the checker reports; they enter as sent.
    pub defaults: Option<BTreeMap<Pointer, Value>>,
    /// Arguments without meaning: times of sending, trace ids, keys that are minted for each attempt.
    pub ignore: Vec<Pointer>,
    /// Arguments that enter only as a keyed digest and never appear anywhere.
    pub secret: Vec<Pointer>,
    /// Spellings that mean the same.
    pub same: BTreeMap<Pointer, Same>,
    /// Where the command line of a remote command is: it enters as its words.
    pub command: Option<Pointer>,
}

/// What two spellings may differ in and still mean the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "config", derive(serde::Deserialize))]
#[cfg_attr(feature = "config", serde(rename_all = "snake_case"))]
#[expect(clippy::exhaustive_enums, reason = "each is normalised")]
pub enum Same {
    /// The case of letters.
    Case,
    /// A slash at the end.
    TrailingSlash,
    /// The order of an array's items, and repeats of them.
    Set,
    /// A number written as a string.
    NumericString,
}

impl FingerprintRules {
    /// The arguments as they enter the canonical action record.
    #[must_use]
    pub fn normalise(&self, mut arguments: Value, key: &FingerprintKey) -> Value {
        for pointer in &self.ignore {
            pointer.remove(&mut arguments);
        }
        for (pointer, value) in self.defaults.iter().flatten() {
            pointer.fill(&mut arguments, value);
        }
        for (pointer, same) in &self.same {
            pointer.change(&mut arguments, &mut |value| same.normalise(value));
        }
        if let Some(pointer) = &self.command {
            pointer.change(&mut arguments, &mut command_words);
        }
        for pointer in &self.secret {
            pointer.change(&mut arguments, &mut |value| {
                *value = Value::String(key.digest("secret", &value.canonical()));
            });
        }
        arguments
    }
}

impl Same {
    fn normalise(self, value: &mut Value) {
        match (self, value) {
            (Self::Case, Value::String(text)) => *text = text.to_lowercase(),
            (Self::TrailingSlash, Value::String(text)) => {
                text.truncate(text.trim_end_matches('/').len())
            }
            (Self::Set, Value::Array(items)) => {
                items.sort_by_cached_key(Value::canonical);
                items.dedup();
            }
            (Self::NumericString, value @ Value::String(_)) => {
                if let Value::String(text) = &*value
                    && let Ok(number @ Value::Number(_)) =
                        crate::identity::json::parse(text.trim().as_bytes())
                {
                    *value = number;
                }
            }
            // Another type has no such spellings.
            (Self::Case | Self::TrailingSlash | Self::Set | Self::NumericString, _) => {}
        }
    }
}

/// A command line as its words, by the quoting of POSIX shells; one that can't be split enters as it is.
fn command_words(value: &mut Value) {
    if let Value::String(line) = &*value
        && let Some(words) = shlex::split(line)
    {
        *value = Value::Array(words.into_iter().map(Value::String).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::KeyId;
    use crate::identity::json::parse;

    fn normalised(rules: &FingerprintRules, arguments: &str) -> String {
        let key = FingerprintKey::new(KeyId(1), [7; 32]);
        let value = rules.normalise(parse(arguments.as_bytes()).unwrap(), &key);
        String::from_utf8(value.canonical()).unwrap()
    }

    fn pointer(text: &str) -> Pointer {
        text.parse().unwrap()
    }

    #[test]
    fn a_default_filled_in_matches_a_default_left_out() {
        let rules = FingerprintRules {
            defaults: Some(
                [
                    (pointer("/region"), Value::from("us-east-1")),
                    (pointer("/options/retry"), Value::Bool(false)),
                ]
                .into(),
            ),
            ..FingerprintRules::default()
        };
        let left_out = normalised(&rules, r#"{"name":"x"}"#);
        assert_eq!(
            left_out,
            normalised(
                &rules,
                r#"{"name":"x","region":"us-east-1","options":{"retry":false}}"#
            )
        );
        assert_ne!(
            left_out,
            normalised(&rules, r#"{"name":"x","region":"eu-west-1"}"#)
        );
    }

    #[test]
    fn a_field_without_meaning_is_left_out_and_any_other_is_not() {
        let rules = FingerprintRules {
            ignore: vec![pointer("/sent_at"), pointer("/items/*/trace")],
            ..FingerprintRules::default()
        };
        let one = normalised(
            &rules,
            r#"{"sent_at":1,"amount":2,"items":[{"trace":"a","n":1}]}"#,
        );
        assert_eq!(
            one,
            normalised(&rules, r#"{"amount":2,"items":[{"n":1,"trace":"b"}]}"#)
        );
        assert_ne!(one, normalised(&rules, r#"{"amount":2,"items":[{"n":2}]}"#));
    }

    #[test]
    fn a_secret_enters_as_a_keyed_digest() {
        let rules = FingerprintRules {
            secret: vec![pointer("/pin")],
            ..FingerprintRules::default()
        };
        let one = normalised(&rules, r#"{"pin":"1234"}"#);
        assert!(!one.contains("1234") && one.contains("hmac-sha256:k1:"));
        assert_ne!(one, normalised(&rules, r#"{"pin":"1235"}"#));
    }

    #[test]
    fn equivalent_spellings_are_one() {
        let same = [
            ("/host", Same::Case),
            ("/url", Same::TrailingSlash),
            ("/tags", Same::Set),
            ("/n", Same::NumericString),
        ];
        let rules = FingerprintRules {
            same: same.map(|(at, same)| (pointer(at), same)).into(),
            ..FingerprintRules::default()
        };
        assert_eq!(
            normalised(
                &rules,
                r#"{"host":"DB.example","url":"https://x/a/","tags":["b","a","b"],"n":"1.0"}"#
            ),
            normalised(
                &rules,
                r#"{"host":"db.Example","url":"https://x/a","tags":["a","b"],"n":1}"#
            )
        );
        assert_ne!(
            normalised(&rules, r#"{"other":"A"}"#),
            normalised(&rules, r#"{"other":"a"}"#)
        );
    }

    #[test]
    fn a_command_line_enters_as_its_words() {
        let rules = FingerprintRules {
            command: Some(pointer("/command")),
            ..FingerprintRules::default()
        };
        let one = normalised(&rules, r#"{"command":"psql  -f 'a b.sql'"}"#);
        assert_eq!(
            one,
            normalised(&rules, r#"{"command":"psql -f \"a b.sql\""}"#)
        );
        assert_ne!(one, normalised(&rules, r#"{"command":"psql -f a b.sql"}"#));
    }
}
