//! The members of a JSON object, each as its raw text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Members in the order they were written, repeated names and all. Values point into the text that was read.
pub(super) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads an object. `None` when the text is not one.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The value of a member; the last one when the name is repeated.
    pub(super) fn find(&self, name: &str) -> Option<&'a str> {
        self.0
            .iter()
            .rev()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.get())
    }

    /// Whether a member has this name and this string as its value, in any spelling of either; any of them, when the name is repeated.
    pub(super) fn any_is(&self, name: &str, value: &str) -> bool {
        self.0
            .iter()
            .filter(|(other, _)| other == name)
            .any(|(_, raw)| string(raw.get()).as_deref() == Some(value))
    }

    /// Whether a name is repeated.
    pub(super) fn repeat(&self) -> bool {
        self.0
            .iter()
            .enumerate()
            .any(|(index, (name, _))| self.0[..index].iter().any(|(other, _)| other == name))
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A JSON string's text. `None` when the raw value is not a string.
pub(super) fn string(raw: &str) -> Option<Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw)
        .ok()
        .map(|text| text.0)
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                #[derive(serde::Deserialize)]
                struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
                let mut members = Vec::new();
                while let Some((Name(name), value)) =
                    map.next_entry::<Name<'de>, &'de RawValue>()?
                {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Object)
    }
}
