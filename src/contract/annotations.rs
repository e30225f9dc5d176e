//! What tools say of themselves: counted only where the configuration trusts the server, and only as long as that server
//! and session last.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::Class;
use crate::identity::SessionId;

/// Annotations learned from `tools/list` answers that passed through. In memory only.
#[derive(Default)]
pub(crate) struct Learned(Mutex<HashMap<Server, Tools>>);

/// Origin and path, and the session.
type Server = (String, Option<SessionId>);
type Tools = HashMap<String, Class>;

impl Learned {
    /// Takes in one page of a `tools/list` answer. The first page starts anew.
    pub(crate) fn learn(
        &self,
        target: &str,
        session: Option<&SessionId>,
        first_page: bool,
        answer: &[u8],
    ) {
        let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
        let Some(tools) = answer["result"]["tools"].as_array() else {
            return;
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (target.to_owned(), session.cloned());
        if known.len() >= MAX_SESSIONS && !known.contains_key(&key) {
            known.clear(); // forgetting is always safe
        }
        let known = known.entry(key).or_default();
        if first_page {
            known.clear();
        }
        for tool in tools {
            let Some(name) = tool["name"].as_str().filter(|_| known.len() < MAX_TOOLS) else {
                continue;
            };
            match class_of(&tool["annotations"]) {
                Some(class) => known.insert(name.to_owned(), class),
                None => known.remove(name),
            };
        }
    }

    /// The class that a tool's annotations amount to; none where nothing usable was learned on this session.
    pub(crate) fn class(
        &self,
        target: &str,
        session: Option<&SessionId>,
        tool: &str,
    ) -> Option<Class> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(&(target.to_owned(), session.cloned()))?
            .get(tool)
            .copied()
    }

    /// Forgets a server: it was greeted anew, or says that its tools changed.
    pub(crate) fn forget(&self, target: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(other, _), _| other != target);
    }
}

/// The class that annotations amount to. Contradictory and malformed ones count as absent.
///
/// # Source
/// MCP 2025-11-25, schema, `ToolAnnotations`: a missing `destructiveHint` means true, the others false.
fn class_of(annotations: &Value) -> Option<Class> {
    let hint = |name: &str| match &annotations[name] {
        Value::Null => Ok(None),
        Value::Bool(hint) => Ok(Some(*hint)),
        Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => Err(()),
    };
    let (read_only, destructive, idempotent) = (
        hint("readOnlyHint").ok()?,
        hint("destructiveHint").ok()?,
        hint("idempotentHint").ok()?,
    );
    match (read_only, destructive, idempotent) {
        (Some(true), Some(true), _) => None, // a tool that changes nothing and destroys something
        (Some(true), None | Some(false), _) => Some(Class::ReadOnly),
        (None | Some(false), _, Some(true)) => Some(Class::IdempotentWrite),
        (None | Some(false), _, None | Some(false)) => None,
    }
}

const MAX_SESSIONS: usize = 256;
const MAX_TOOLS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn contradictory_and_malformed_annotations_count_as_absent() {
        for (annotations, class) in [
            (json!({ "readOnlyHint": true }), Some(Class::ReadOnly)),
            (
                json!({ "readOnlyHint": true, "destructiveHint": false }),
                Some(Class::ReadOnly),
            ),
            (
                json!({ "readOnlyHint": true, "destructiveHint": true }),
                None,
            ),
            (json!({ "readOnlyHint": "true" }), None),
            (json!({ "readOnlyHint": true, "idempotentHint": 1 }), None),
            (
                json!({ "idempotentHint": true }),
                Some(Class::IdempotentWrite),
            ),
            (json!({ "destructiveHint": false }), None),
            (json!({}), None),
            (Value::Null, None),
            (json!([true]), None),
        ] {
            assert_eq!(class_of(&annotations), class, "{annotations}");
        }
    }

    #[test]
    fn what_was_learned_belongs_to_one_session_and_ends_with_a_first_page() {
        let (learned, mine) = (Learned::default(), SessionId::new("a"));
        let page = |name: &str| {
            json!({ "result": { "tools": [{ "name": name, "annotations": { "readOnlyHint": true } }] } }).to_string()
        };
        learned.learn("t", Some(&mine), true, page("one").as_bytes());
        learned.learn("t", Some(&mine), false, page("two").as_bytes());
        assert_eq!(
            learned.class("t", Some(&mine), "one"),
            Some(Class::ReadOnly)
        );
        assert_eq!(
            learned.class("t", Some(&mine), "two"),
            Some(Class::ReadOnly)
        );
        assert_eq!(learned.class("t", Some(&SessionId::new("b")), "one"), None);
        assert_eq!(learned.class("u", Some(&mine), "one"), None);
        learned.learn("t", Some(&mine), true, page("three").as_bytes());
        assert_eq!(learned.class("t", Some(&mine), "one"), None);
        learned.forget("t");
        assert_eq!(learned.class("t", Some(&mine), "three"), None);
    }
}
