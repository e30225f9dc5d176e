//! What now? The life of an execution and the decision about a repeated call. Pure: no clock, no disk, no async.

mod decide;
mod permit;
mod state;

pub use decide::{Prior, Priors};
pub use permit::{Evidence, Permit, Verdict};
pub use state::State;
