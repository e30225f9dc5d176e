//! The `reattach` command.

pub mod demo;
