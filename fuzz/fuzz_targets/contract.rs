//! No file panics the reader, and each error names a place in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use reattach::contract::Contracts;

fuzz_target!(|text: &str| {
    if let Err(error) = Contracts::from_toml("f", text) {
        assert!(error.place.line >= 1 && error.place.line <= text.lines().count() + 1);
    }
});
