//! A spliced body is the same value plus our field.
#![no_main]

use libfuzzer_sys::fuzz_target;
use reattach::identity::{ExecutionId, RequestId};
use reattach::wire::{EXECUTION_ID_META, Slot, answer_as};
use serde_json::Value;

fuzz_target!(|body: &[u8]| {
    let id = ExecutionId::from_bytes([7; 16]);
    if let Ok(slot) = Slot::find(body) {
        let spliced = slot.fill(body, id);
        let mut value: Value = serde_json::from_slice(&spliced).expect("still JSON");
        let meta = value["params"]["_meta"].as_object_mut().expect("a `_meta`");
        assert_eq!(meta.remove(EXECUTION_ID_META), Some(id.to_string().into()));
        let mut before: Value = serde_json::from_slice(body).expect("it was JSON");
        if before["params"].get("_meta").is_none() {
            assert!(meta.is_empty());
            before["params"]["_meta"] = serde_json::json!({});
        }
        assert_eq!(value, before);
    }
    if let Some(answer) = answer_as(body, &RequestId::String("new".into())) {
        let value: Value = serde_json::from_slice(&answer).expect("still JSON");
        assert!(value.get("id").is_some());
    }
});
