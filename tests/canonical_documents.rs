//! 10,000 random documents: any order of members, any white space and any form of escapes keeps the digest; any change of a
//! value changes it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

use proptest::prelude::*;
use reattach::identity::json::parse;
use reattach::identity::{Fingerprint, FingerprintKey, KeyId};
use serde_json::Value;

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(Into::into),
        ".{0,6}".prop_map(Into::into),
    ];
    let inner = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    });
    prop::collection::btree_map("[a-z]{1,3}", inner, 1..5)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Writes a document as no two programs would: by the throw of a die.
fn write(value: &Value, dice: &mut u64, out: &mut String) {
    let mut throw = |sides: u64| {
        *dice = dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*dice >> 33) % sides
    };
    out.push_str(["", " ", "\n\t", "\r\n"][throw(4) as usize]);
    match value {
        Value::String(text) => {
            out.push('"');
            for c in text.chars() {
                let plain = c != '"' && c != '\\' && !c.is_control();
                if plain && throw(3) > 0 {
                    out.push(c);
                } else {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&if throw(2) == 0 {
                            format!("\\u{unit:04x}")
                        } else {
                            format!("\\u{unit:04X}")
                        });
                    }
                }
            }
            out.push('"');
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(item, dice, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            for n in (1..members.len()).rev() {
                members.swap(n, throw(n as u64 + 1) as usize);
            }
            out.push('{');
            for (n, (name, value)) in members.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(&Value::from(name.as_str()), dice, out);
                out.push(':');
                write(value, dice, out);
            }
            out.push('}');
        }
        Value::Number(number) if number.is_i64() && throw(2) == 0 => {
            out.push_str(&format!("{number}.0"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
    *dice ^= 1;
    out.push_str(if (*dice).is_multiple_of(5) { " " } else { "" });
}

/// Changes the `n`-th leaf.
fn change(value: &mut Value, n: &mut usize) -> bool {
    match value {
        Value::Array(items) if !items.is_empty() => items.iter_mut().any(|item| change(item, n)),
        Value::Object(members) if !members.is_empty() => {
            members.values_mut().any(|value| change(value, n))
        }
        leaf => {
            if *n > 0 {
                *n -= 1;
                return false;
            }
            *leaf = match leaf.take() {
                Value::String(text) => Value::from(text + "x"),
                Value::Bool(bit) => Value::from(!bit),
                Value::Null => Value::from(false),
                Value::Number(_) | Value::Array(_) | Value::Object(_) => Value::Null,
            };
            true
        }
    }
}

fn digest(text: &str) -> Fingerprint {
    FingerprintKey::new(KeyId(1), [7; 32]).fingerprint(&parse(text.as_bytes()).unwrap().canonical())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn delivery_keeps_the_digest_and_effect_changes_it(document in document(), seed: u64, leaf in 0..4usize) {
        let plain = document.to_string();
        let (mut dice, mut odd) = (seed, String::new());
        write(&document, &mut dice, &mut odd);
        prop_assert_eq!(digest(&plain), digest(&odd), "{}", odd);
        let mut changed = document;
        if change(&mut changed, &mut { leaf }) {
            prop_assert_ne!(digest(&plain), digest(&changed.to_string()));
        }
    }
}
