//! Writes RFC 8785.

use std::cmp::Ordering;

use super::Value;

/// The order of member names: by UTF-16 code units (RFC 8785, 3.2.3), which differs from code points above U+FFFF.
pub(super) fn order(one: &str, other: &str) -> Ordering {
    if one.is_ascii() && other.is_ascii() {
        return one.cmp(other);
    }
    one.encode_utf16().cmp(other.encode_utf16())
}

impl Value {
    /// The canonical bytes.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        self.write(&mut out);
        out
    }

    pub(in crate::identity) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(true) => out.extend_from_slice(b"true"),
            Self::Bool(false) => out.extend_from_slice(b"false"),
            Self::Number(number) => out.extend_from_slice(number.as_str().as_bytes()),
            Self::String(text) => write_string(text, out),
            Self::Array(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            Self::Object(members) => {
                out.push(b'{');
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_string(name, out);
                    out.push(b':');
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

/// RFC 8785, 3.2.2.2: the short escapes where there are some, `\u00xx` for other control characters, all else as it is.
pub(in crate::identity) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut from = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            0x08 => b"\\b",
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            0x0c => b"\\f",
            b'\r' => b"\\r",
            0..=0x1f => {
                out.extend_from_slice(&bytes[from..at]);
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                from = at + 1;
                continue;
            }
            _ => continue,
        };
        out.extend_from_slice(&bytes[from..at]);
        out.extend_from_slice(escape);
        from = at + 1;
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        String::from_utf8(parse(text.as_bytes()).unwrap().canonical()).unwrap()
    }

    #[test]
    fn the_example_of_rfc_8785_3_2_2() {
        let input = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        assert_eq!(
            canonical(input),
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
    }

    #[test]
    fn names_sort_by_utf_16_code_units() {
        // RFC 8785, 3.2.3: U+1F600 is d83d de00 in UTF-16 and sorts before U+FB33.
        assert_eq!(
            canonical("{\"\u{fb33}\":1,\"\u{1f600}\":2,\"\u{20ac}\":3,\"\\r\":4,\"1\":5}"),
            "{\"\\r\":4,\"1\":5,\"\u{20ac}\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}"
        );
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            (-(1i64 << 53)..(1i64 << 53)).prop_map(Into::into),
            any::<f64>()
                .prop_filter("finite", |n| n.is_finite())
                .prop_map(Into::into),
            ".{0,8}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..6)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_well_kept_canonicaliser_writes_the_same(value in json()) {
            let ours = canonical(&value.to_string());
            prop_assert_eq!(&ours, &serde_json_canonicalizer::to_string(&value).unwrap());
            prop_assert_eq!(&canonical(&ours), &ours); // and it is a fixed point
            prop_assert_eq!(&canonical(&serde_json::to_string_pretty(&value).unwrap()), &ours); // white space is delivery
        }
    }
}
