//! The `reattach` command: raw flags in, checked options on, an exit code out.

mod args;
pub mod contract;
pub mod demo;
mod error;
pub mod exit;
pub mod journal;

pub use args::{Args, Command, main};
pub use error::CliError;
