//! Adds to a message what is ours and leaves every other byte as it was.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::members::Members;
use crate::identity::{ExecutionId, RequestId};

/// The `_meta` key under which an execution id goes out.
pub const EXECUTION_ID_META: &str = "dev.reattach/execution-id";

/// Why nothing could be added.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Splice {
    /// The body is not a request with an object as its `params`.
    #[error("the request has no `params` object to add to")]
    NoParams,
    /// `_meta`, or `arguments` where the key goes there, is not an object.
    #[error("`params._meta` or `params.arguments` is not an object")]
    BadMeta,
    /// The caller set the key itself: an execution id is ours to give.
    #[error("`params._meta` already has `{EXECUTION_ID_META}`, which only this layer sets")]
    Taken,
}

/// Where else an execution id goes: the contract's idempotency channel, when that lies in the body.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the two places in a body")]
pub enum KeyPlace<'a> {
    /// An argument of the tool.
    Argument(&'a str),
    /// A key of `params._meta`.
    Meta(&'a str),
}

/// Where in a request body an execution id goes. Found once, before anything is recorded.
#[derive(Clone, Debug)]
pub struct Slot {
    /// In the order of the text.
    edits: Vec<Edit>,
}

/// What replaces some bytes of the body: these pieces, with the quoted execution id between them.
#[derive(Clone, Debug)]
struct Edit {
    at: usize,
    len: usize,
    pieces: Vec<String>,
}

impl Slot {
    /// Finds the place in `params._meta`, or the place for a `_meta` where there is none; and the place of the idempotency
    /// key, which is set whatever the caller wrote there: one execution has one key.
    ///
    /// # Errors
    /// [`Splice`], when there is no such place.
    pub fn find(body: &[u8], key: Option<KeyPlace<'_>>) -> Result<Self, Splice> {
        let text = std::str::from_utf8(body).map_err(|_| Splice::NoParams)?;
        let message = Members::read(text).ok_or(Splice::NoParams)?;
        let raw_params = message.find("params").ok_or(Splice::NoParams)?;
        let params = Members::read(raw_params).ok_or(Splice::NoParams)?;
        let raw_meta = params.find("_meta");
        let (mut meta_keys, mut argument) = (vec![EXECUTION_ID_META], None);
        match key {
            Some(KeyPlace::Meta(name)) if name != EXECUTION_ID_META => meta_keys.push(name),
            Some(KeyPlace::Argument(name)) => argument = Some(name),
            Some(KeyPlace::Meta(_)) | None => {}
        }
        if let Some(raw) = raw_meta
            && Members::read(raw)
                .ok_or(Splice::BadMeta)?
                .find(EXECUTION_ID_META)
                .is_some()
        {
            return Err(Splice::Taken);
        }
        let mut edits = Vec::new();
        let mut made = Vec::new(); // objects that `params` lacks
        for (name, raw, keys) in [
            ("_meta", raw_meta, meta_keys),
            (
                "arguments",
                params.find("arguments"),
                Vec::from_iter(argument),
            ),
        ] {
            match raw {
                None if keys.is_empty() => {}
                None => made.push((name, keys)),
                Some(raw) => set(text, raw, &keys, &mut edits).ok_or(Splice::BadMeta)?,
            }
        }
        if !made.is_empty() {
            edits.push(insert(inside(text, raw_params), params.is_empty(), &made));
        }
        edits.sort_by_key(|edit| edit.at);
        Ok(Self { edits })
    }

    /// The body with the execution id in it; every other byte as the SDK wrote it. `body` is the one this was found in.
    #[must_use]
    pub fn fill(&self, body: &[u8], id: ExecutionId) -> Bytes {
        let id = format!("\"{id}\"");
        let mut filled = Vec::with_capacity(body.len() + 128);
        let mut from = 0;
        for edit in &self.edits {
            filled.extend_from_slice(body.get(from..edit.at).unwrap_or_default());
            filled.extend_from_slice(edit.pieces.join(&id).as_bytes());
            from = edit.at + edit.len;
        }
        filled.extend_from_slice(body.get(from..).unwrap_or_default());
        filled.into()
    }
}

/// Sets members of an object that is there. `None` when it is no object.
fn set(text: &str, raw: &str, keys: &[&str], edits: &mut Vec<Edit>) -> Option<()> {
    let object = Members::read(raw)?;
    let mut new = Vec::new();
    for key in keys {
        match object.find(key) {
            Some(old) => {
                edits.push(Edit {
                    at: offset(text, old),
                    len: old.len(),
                    pieces: vec![String::new(), String::new()],
                });
            }
            None => new.push(*key),
        }
    }
    if !new.is_empty() {
        let comma = if object.is_empty() { "" } else { "," };
        let mut pieces = members(&new);
        pieces.push(comma.to_owned());
        edits.push(Edit {
            at: inside(text, raw),
            len: 0,
            pieces,
        });
    }
    Some(())
}

/// Puts new objects in front of the members of `params`.
fn insert(at: usize, empty: bool, objects: &[(&str, Vec<&str>)]) -> Edit {
    let mut pieces = vec![String::new()];
    for (n, (name, keys)) in objects.iter().enumerate() {
        let comma = if n > 0 { "," } else { "" };
        if let Some(last) = pieces.last_mut() {
            last.push_str(&format!("{comma}\"{name}\":{{"));
        }
        for (n, piece) in members(keys).into_iter().enumerate() {
            match pieces.last_mut() {
                Some(last) if n == 0 => last.push_str(&piece),
                Some(_) | None => pieces.push(piece),
            }
        }
        pieces.push("}".to_owned());
    }
    if let Some(last) = pieces.last_mut()
        && !empty
    {
        last.push(',');
    }
    Edit { at, len: 0, pieces }
}

/// `"one":`, `,"two":`, each to be followed by the id.
fn members(keys: &[&str]) -> Vec<String> {
    let quoted = |key: &&str| serde_json::Value::from(*key).to_string();
    keys.iter()
        .enumerate()
        .map(|(n, key)| format!("{}{}:", if n > 0 { "," } else { "" }, quoted(key)))
        .collect()
}

/// A kept response under another request's id; every other byte as the server wrote it. `None` when it is no response.
#[must_use]
pub fn answer_as(message: &[u8], id: &RequestId) -> Option<Bytes> {
    let text = std::str::from_utf8(message).ok()?;
    let members = Members::read(text)?;
    let old = members.find("id")?;
    let at = offset(text, old);
    Some(Bytes::from(
        [&text[..at], &id.to_json(), &text[at + old.len()..]].concat(),
    ))
}

/// Right behind the opening brace of an object that lies in `text`.
fn inside(text: &str, object: &str) -> usize {
    offset(text, object) + 1
}

/// Where `part` lies in `text`. It was borrowed from it by the parser.
fn offset(text: &str, part: &str) -> usize {
    let at = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    debug_assert_eq!(
        text.get(at..at + part.len()),
        Some(part),
        "a part of the text"
    );
    at
}

/// Checks at compile time that raw values borrow: what `offset` relies on.
const _: fn(&RawValue) -> &str = RawValue::get;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn id() -> ExecutionId {
        ExecutionId::new(Timestamp::from_second(1_700_000_000).unwrap(), [7; 10])
    }

    fn spliced(body: &str) -> String {
        let slot = Slot::find(body.as_bytes(), None).unwrap();
        String::from_utf8(slot.fill(body.as_bytes(), id()).to_vec()).unwrap()
    }

    #[test]
    fn only_our_bytes_are_added() {
        let body = "{ \"id\" : 1.0,\"params\":\t{\"name\":\"p\\u0061y\",\"_meta\":{ \"progressToken\":1}} }";
        let ours = format!("\"{EXECUTION_ID_META}\":\"{}\",", id());
        assert_eq!(spliced(body).replacen(&ours, "", 1), body);
        let body = r#"{"params":{"name":"pay"},"id":1}"#;
        let ours = format!("\"_meta\":{{\"{EXECUTION_ID_META}\":\"{}\"}},", id());
        assert_eq!(spliced(body).replacen(&ours, "", 1), body);
    }

    #[test]
    fn what_is_not_ours_to_overwrite_is_refused() {
        let taken = format!("{{\"params\":{{\"_meta\":{{\"{EXECUTION_ID_META}\":\"x\"}}}}}}");
        assert_eq!(
            Slot::find(taken.as_bytes(), None).map(drop),
            Err(Splice::Taken)
        );
        assert_eq!(
            Slot::find(br#"{"params":{"_meta":7}}"#, None).map(drop),
            Err(Splice::BadMeta)
        );
        assert_eq!(
            Slot::find(br#"{"params":[]}"#, None).map(drop),
            Err(Splice::NoParams)
        );
    }

    #[test]
    fn an_idempotency_key_goes_where_the_contract_says_and_replaces_what_the_agent_minted() {
        let execution = id();
        let id = execution.to_string();
        for (body, place, at) in [
            (
                r#"{"params":{"name":"p"}}"#,
                KeyPlace::Argument("key"),
                "/params/arguments/key",
            ),
            (
                r#"{"params":{}}"#,
                KeyPlace::Argument("key"),
                "/params/arguments/key",
            ),
            (
                r#"{"params":{"arguments":{"a":1,"key":"minted"},"_meta":{}}}"#,
                KeyPlace::Argument("key"),
                "/params/arguments/key",
            ),
            (
                r#"{"params":{"_meta":{"t":1},"arguments":{"a":1}}}"#,
                KeyPlace::Argument("key"),
                "/params/arguments/key",
            ),
            (
                r#"{"params":{"name":"p"}}"#,
                KeyPlace::Meta("x/key"),
                "/params/_meta/x~1key",
            ),
            (
                r#"{"params":{"_meta":{"x/key":[1]},"name":"p"}}"#,
                KeyPlace::Meta("x/key"),
                "/params/_meta/x~1key",
            ),
        ] {
            let filled = Slot::find(body.as_bytes(), Some(place))
                .unwrap()
                .fill(body.as_bytes(), execution);
            let value: Value = serde_json::from_slice(&filled).unwrap();
            assert_eq!(value.pointer(at), Some(&json!(id)), "{body}");
            assert_eq!(
                value.pointer("/params/_meta/dev.reattach~1execution-id"),
                Some(&json!(id)),
                "{body}"
            );
        }
    }

    #[test]
    fn an_answer_takes_the_id_of_the_call_it_answers() {
        let kept = br#"{"jsonrpc":"2.0", "id" : "old","result":{"id":"old"}}"#;
        let answer = answer_as(kept, &RequestId::Number(9.into())).unwrap();
        assert_eq!(
            &answer[..],
            br#"{"jsonrpc":"2.0", "id" : 9,"result":{"id":"old"}}"#
        );
    }

    fn meta() -> impl Strategy<Value = Option<Value>> {
        prop::option::of(
            prop::collection::btree_map("[a-z\u{e9}\"\\\\]{0,5}", any::<i32>(), 0..4)
                .prop_map(|m| json!(m)),
        )
    }

    proptest! {
        #[test]
        fn the_spliced_body_is_the_same_value_plus_our_field(meta in meta(), name in ".{0,9}", pretty: bool) {
            let mut params = json!({ "name": name });
            if let Some(meta) = meta {
                params["_meta"] = meta;
            }
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            let text = if pretty { serde_json::to_string_pretty(&body).unwrap() } else { body.to_string() };
            let mut wanted = body;
            wanted["params"]["_meta"][EXECUTION_ID_META] = json!(id().to_string());
            prop_assert_eq!(serde_json::from_str::<Value>(&spliced(&text)).unwrap(), wanted);
        }
    }
}
