//! Which action is this? Three identities, three types, no conversion between them.
//!
//! | type | what it is | lifetime |
//! | --- | --- | --- |
//! | [`Correlation`] | JSON-RPC id, session, cursor, attempt: evidence of one exchange | one exchange |
//! | [`ExecutionId`] | one accepted attempt to carry out an action; the only identity that leaves us | as long as its record |
//! | [`Fingerprint`] | keyed digest of the canonical action record; finds an earlier execution, is never sent | one journal |

mod action;
mod correlation;
mod fingerprint;
mod id;
pub mod json;

pub use action::{Action, IntentScope};
pub use correlation::{Correlation, EventId, RequestId, SessionId};
pub use fingerprint::{Fingerprint, FingerprintKey, KeyId, ParseFingerprintError};
pub use id::{ExecutionId, ParseIdError, ResultId, RunId};
