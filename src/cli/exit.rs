//! Exit codes. They are API: scripts and CI read them.

/// All is well.
pub const WELL: u8 = 0;
/// The check that was asked for failed: unknowns found, a promise broken.
pub const CHECK_FAILED: u8 = 1;
/// Usage or configuration.
pub const USAGE: u8 = 2;
/// The environment: locked, unreachable, disk.
pub const ENVIRONMENT: u8 = 3;
/// Tampered with, or damaged.
pub const DAMAGED: u8 = 4;
