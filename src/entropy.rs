//! The only door to randomness.

/// Fills `bytes` from the operating system.
///
/// # Panics
/// When the operating system has no randomness to give. Going on with predictable ids and nonces would break every
/// promise of the journal, so this is the one place that prefers to stop.
pub fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system provides randomness");
}

/// `N` random bytes.
#[must_use]
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

/// A random number below `bound`, good enough for jitter; 0 where `bound` is 0.
#[must_use]
pub fn below(bound: u64) -> u64 {
    if bound == 0 {
        0
    } else {
        u64::from_ne_bytes(bytes()) % bound
    }
}
