//! What if the answer is lost? Classes, and which tool has which.

mod class;
mod contracts;

pub use class::Class;
pub use contracts::{Contract, Contracts, ContractsBuilder, Window};
