//! Errors of the layer. An outcome is never one: "unknown" is an answer.

use super::BoxError;
use crate::identity::ExecutionId;

/// Why there is no response at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The body of a side-effecting call provably never left.
    #[error(
        "the call was not sent, its body was never taken; execution {execution} did not run; calling again is safe"
    )]
    NotSent {
        /// The execution; a repeat goes on under it.
        execution: ExecutionId,
        /// What the inner service said.
        source: BoxError,
    },
    /// The inner service failed for a request without a side effect.
    #[error("the HTTP client failed; the request has no side effect")]
    Inner(#[source] BoxError),
    /// The request's own body failed before it was whole.
    #[error("nothing was sent; the request body could not be read")]
    RequestBody(#[source] BoxError),
    /// The request body is larger than [`Limits::max_request_bytes`](super::Limits::max_request_bytes).
    #[error(
        "nothing was sent; the request body is larger than {limit} bytes, so it could not be looked into; raise the limit"
    )]
    RequestTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// The task that drives the call ended without an answer: its runtime shut down.
    #[error(
        "the runtime shut down while the call ran; its outcome may be unknown; the journal says where it stands"
    )]
    Stopped,
}
