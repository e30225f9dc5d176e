//! The JSON Schema for editors allows exactly the keys that the parser allows.
#![cfg(feature = "config")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test"
)]

use std::collections::BTreeSet;

use reattach::contract::Contracts;
use serde_json::Value;

/// The keys that the parser allows where this text ends, from what it says of one that it doesn't.
fn allowed(prefix: &str) -> BTreeSet<String> {
    let text = format!("{prefix}\nno_such_key = 1");
    let error = Contracts::from_toml("f", &text).unwrap_err().to_string();
    let (_, list) = error
        .split_once("expected")
        .unwrap_or_else(|| panic!("{error}"));
    list.split("; did you mean")
        .next()
        .unwrap()
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn schema_and_parser_allow_the_same_keys() {
    let schema: Value = serde_json::from_str(include_str!("../docs/reattach.schema.json")).unwrap();
    let tool = "[tools.t]\nclass = \"irreversible\"";
    for (place, prefix) in [
        ("", String::new()),
        ("/properties/defaults", "[defaults]".into()),
        ("/$defs/class_defaults", "[defaults.irreversible]".into()),
        ("/$defs/server", "[servers.s]\nurl = \"https://x/\"".into()),
        ("/$defs/tool", tool.into()),
        (
            "/$defs/fingerprint",
            format!("{tool}\n[tools.t.fingerprint]"),
        ),
        (
            "/$defs/idempotency",
            format!("{tool}\n[tools.t.idempotency]"),
        ),
        ("/$defs/probe", format!("{tool}\n[tools.t.probe]")),
        ("/$defs/target", format!("{tool}\n[tools.t.target]")),
        ("/$defs/limits", format!("{tool}\n[tools.t.limits]")),
    ] {
        let properties = schema
            .pointer(&format!("{place}/properties"))
            .unwrap()
            .as_object()
            .unwrap();
        let names: BTreeSet<_> = properties.keys().cloned().collect();
        // At the top, numbers for all classes get an answer of their own.
        assert_eq!(names, allowed(&prefix), "{place}");
        assert_eq!(
            schema.pointer(&format!("{place}/additionalProperties")),
            Some(&Value::Bool(false)),
            "{place}"
        );
    }
}
