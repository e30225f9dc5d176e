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
    /// `_meta` is not an object.
    #[error("`params._meta` is not an object")]
    BadMeta,
    /// The caller set the key itself: an execution id is ours to give.
    #[error("`params._meta` already has `{EXECUTION_ID_META}`, which only this layer sets")]
    Taken,
}

/// Where in a request body an execution id goes. Found once, before anything is recorded.
#[derive(Clone, Debug)]
pub struct Slot {
    at: usize,
    before: &'static str,
    after: &'static str,
}

impl Slot {
    /// Finds the place in `params._meta`, or the place for a `_meta` where there is none.
    ///
    /// # Errors
    /// [`Splice`], when there is no such place.
    pub fn find(body: &[u8]) -> Result<Self, Splice> {
        let text = std::str::from_utf8(body).map_err(|_| Splice::NoParams)?;
        let message = Members::read(text).ok_or(Splice::NoParams)?;
        let raw_params = message.find("params").ok_or(Splice::NoParams)?;
        let params = Members::read(raw_params).ok_or(Splice::NoParams)?;
        let Some(raw_meta) = params.find("_meta") else {
            let after = if params.is_empty() { "}" } else { "}," };
            return Ok(Self {
                at: inside(text, raw_params),
                before: "\"_meta\":{",
                after,
            });
        };
        let meta = Members::read(raw_meta).ok_or(Splice::BadMeta)?;
        if meta.find(EXECUTION_ID_META).is_some() {
            return Err(Splice::Taken);
        }
        let after = if meta.is_empty() { "" } else { "," };
        Ok(Self {
            at: inside(text, raw_meta),
            before: "",
            after,
        })
    }

    /// The body with the execution id in it; every other byte as the SDK wrote it. `body` is the one this was found in.
    #[must_use]
    pub fn fill(&self, body: &[u8], id: ExecutionId) -> Bytes {
        let member = format!(
            "{}\"{EXECUTION_ID_META}\":\"{id}\"{}",
            self.before, self.after
        );
        let (head, tail) = body.split_at(self.at.min(body.len()));
        Bytes::from([head, member.as_bytes(), tail].concat())
    }
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
        let slot = Slot::find(body.as_bytes()).unwrap();
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
        assert_eq!(Slot::find(taken.as_bytes()).map(drop), Err(Splice::Taken));
        assert_eq!(
            Slot::find(br#"{"params":{"_meta":7}}"#).map(drop),
            Err(Splice::BadMeta)
        );
        assert_eq!(
            Slot::find(br#"{"params":[]}"#).map(drop),
            Err(Splice::NoParams)
        );
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
