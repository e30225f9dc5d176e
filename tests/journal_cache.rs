//! The store's cache is bounded, while frames are written and while they are read.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::ops::ControlFlow;
use std::path::Path;

use reattach::journal::store::{MAX_VALUE_BYTES, SledOptions, SledStore, Space, Store, Write};

/// sled's own limit does not hold for pages of this size: without our counting, all of it stays in memory.
#[test]
fn memory_does_not_grow_with_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    for space in [Space::Frames, Space::Chunks] {
        let before = resident_mib();
        let store = open(dir.path());
        for group in 0..FRAMES / 16 {
            let put = |n: u64| Write::Put {
                space,
                key: (group * 16 + n).to_be_bytes().to_vec(),
                value: vec![b'x'; MAX_VALUE_BYTES],
            };
            store
                .commit(&(1..=16).map(put).collect::<Vec<_>>())
                .unwrap();
        }
        let written = resident_mib() - before;
        drop(store);
        let store = open(dir.path());
        let mut seen = 0;
        let mut count = |_: &[u8], _: &[u8]| {
            seen += 1;
            ControlFlow::Continue(())
        };
        store.scan(space, &[], &mut count).unwrap();
        assert_eq!(seen, FRAMES);
        let read = resident_mib() - before;
        println!("{space:?}: {written} MiB after writing, {read} MiB after reading");
        assert!(
            written < LIMIT_MIB && read < LIMIT_MIB,
            "{written} MiB, {read} MiB"
        );
    }
}

fn open(dir: &Path) -> SledStore {
    SledStore::open(dir, SledOptions::default()).unwrap()
}

fn resident_mib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<i64>()
        .unwrap()
        / 1024
}

/// 256 MiB: enough for what is not bounded to show.
const FRAMES: u64 = 8 * 1024;
const LIMIT_MIB: i64 = 140;
