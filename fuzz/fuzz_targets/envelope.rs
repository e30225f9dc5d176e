//! No body hides a tool call: where a lenient reader finds one, it is seen or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use reattach::wire::{Body, read};

fuzz_target!(|body: &[u8]| {
    let seen = matches!(read(body), Body::Call(_) | Body::Refused { .. });
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) {
        let calls = |value: &serde_json::Value| value["method"] == "tools/call";
        let hidden = calls(&value)
            || value
                .as_array()
                .is_some_and(|batch| batch.iter().any(calls));
        assert!(seen || !hidden);
    }
    let _ = reattach::wire::response(body);
});
