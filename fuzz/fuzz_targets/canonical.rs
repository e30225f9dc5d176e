//! The canonical form is a fixed point, and reads as the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use reattach::identity::json::parse;

fuzz_target!(|text: &[u8]| {
    if let Ok(value) = parse(text) {
        let canonical = value.canonical();
        let again = parse(&canonical).expect("the canonical form is JSON");
        assert_eq!(again, value);
        assert_eq!(again.canonical(), canonical);
        assert!(serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok());
    }
});
