//! What if the answer is lost? Classes, and which tool has which contract.

mod annotations;
mod class;
mod complete;
#[expect(clippy::module_inception, reason = "the one idea of this folder")]
mod contract;
mod contracts;
#[cfg(feature = "config")]
mod file;
mod pattern;
mod pointer;
mod rules;

pub(crate) use annotations::Learned;
pub use class::Class;
pub use contract::{
    Channel, Contract, ContractLimits, Idempotency, OnChangedBody, OnOpenMatch, Probe, Remote,
    Session404, Window,
};
pub use contracts::{Contracts, ContractsBuilder};
#[cfg(feature = "config")]
pub use file::{FileError, Place};
pub use pattern::Pattern;
pub use pointer::{ParsePointerError, Pointer};
pub use rules::{FingerprintRules, Same};
