//! What every store is held to. `open` opens the same store again each time it is called.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{MAX_VALUE_BYTES, Space, Store, StoreError, Write};

/// Runs the suite. Panics where a store breaks a promise.
pub fn suite(open: impl Fn() -> Arc<dyn Store>) {
    {
        let store = open();
        spaces_are_apart(&*store);
        scans_follow_the_keys(&*store);
        a_later_put_wins_and_a_remove_removes(&*store);
        the_largest_value_fits_and_a_larger_one_is_refused(&*store);
    }
    what_was_committed_is_there_after_reopening(&open);
}

fn spaces_are_apart(store: &dyn Store) {
    commit(
        store,
        vec![
            put(Space::Meta, b"a", b"meta"),
            put(Space::Chunks, b"a", b"chunk"),
        ],
    );
    assert_eq!(
        read(store, Space::Meta, b"a").as_deref(),
        Some(&b"meta"[..])
    );
    assert_eq!(
        read(store, Space::Chunks, b"a").as_deref(),
        Some(&b"chunk"[..])
    );
    assert_eq!(read(store, Space::ResultKeys, b"a"), None);
}

fn scans_follow_the_keys(store: &dyn Store) {
    let frames = (0..100_u64)
        .rev()
        .map(|n| put(Space::Frames, &n.to_be_bytes(), &n.to_le_bytes()))
        .collect();
    commit(store, frames);
    let mut seen = Vec::new();
    store
        .scan(Space::Frames, &10_u64.to_be_bytes(), &mut |key, _| {
            seen.push(u64::from_be_bytes(
                key.try_into().expect("keys are as they were put"),
            ));
            if seen.len() == 50 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .expect("a healthy store scans");
    assert_eq!(seen, (10..60).collect::<Vec<_>>());
}

fn a_later_put_wins_and_a_remove_removes(store: &dyn Store) {
    commit(
        store,
        vec![
            put(Space::Meta, b"b", b"1"),
            put(Space::Meta, b"b", b"2"),
            put(Space::Meta, b"c", b"3"),
        ],
    );
    commit(
        store,
        vec![Write::Remove {
            space: Space::Meta,
            key: b"c".to_vec(),
        }],
    );
    assert_eq!(read(store, Space::Meta, b"b").as_deref(), Some(&b"2"[..]));
    assert_eq!(read(store, Space::Meta, b"c"), None);
}

fn the_largest_value_fits_and_a_larger_one_is_refused(store: &dyn Store) {
    let largest = vec![7; MAX_VALUE_BYTES];
    commit(
        store,
        (0..40_u32)
            .map(|n| put(Space::Chunks, &n.to_be_bytes(), &largest))
            .collect(),
    );
    assert_eq!(
        read(store, Space::Chunks, &39_u32.to_be_bytes()),
        Some(largest)
    );
    let larger = store.commit(&[put(Space::Chunks, b"larger", &vec![7; MAX_VALUE_BYTES + 1])]);
    assert!(matches!(larger, Err(StoreError::TooLarge { .. })));
    assert_eq!(read(store, Space::Chunks, b"larger"), None);
}

fn what_was_committed_is_there_after_reopening(open: &impl Fn() -> Arc<dyn Store>) {
    for round in 0..3_u64 {
        let store = open();
        for earlier in 0..round {
            assert!(
                read(&*store, Space::Meta, &earlier.to_be_bytes()).is_some(),
                "round {round}, {earlier}"
            );
        }
        commit(
            &*store,
            vec![put(Space::Meta, &round.to_be_bytes(), b"here")],
        );
    }
}

fn put(space: Space, key: &[u8], value: &[u8]) -> Write {
    Write::Put {
        space,
        key: key.to_vec(),
        value: value.to_vec(),
    }
}

fn commit(store: &dyn Store, writes: Vec<Write>) {
    store.commit(&writes).expect("a healthy store commits");
}

fn read(store: &dyn Store, space: Space, key: &[u8]) -> Option<Vec<u8>> {
    store.read(space, key).expect("a healthy store reads")
}
