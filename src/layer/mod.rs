//! The tower middleware: [`ReattachLayer`] wraps the HTTP client under an MCP SDK.
//!
//! ```text
//! service -> wire::read -> contract -> action, fingerprint -> decide -> journal -> dispatch -> the server
//!                                                                                                |
//! the caller <- response body <- journal (keep) <- execution::ResponseStream <- receive <--------+
//! ```
//!
//! Every side-effecting call runs in a task of its own: the caller may leave at any time, and the task reads on, keeps
//! the result and ends (it *detaches*). Everything else passes through; a response stream is resumed for it as well.
//!
//! Where to stack it: directly above the HTTP client. A retry layer belongs above this one, where every repeat is seen.
//! A retry layer below it is outside the guarantee; [`RequestBody`] can't be cloned, so that the usual ones don't
//! compile there. Decompression belongs below, compression of requests too: this layer has to read both bodies.

mod action;
pub(crate) mod body;
mod builder;
mod call;
mod caller;
mod connection;
mod drive;
mod error;
pub(crate) mod exchange;
mod follow;
mod intent;
mod lesson;
mod limits;
mod pump;
mod receive;
mod reply;
mod request_body;
mod response_body;
mod service;
mod sessions;
mod shared;

pub use builder::{ReattachLayer, ReattachLayerBuilder};
pub use error::LayerError;
pub use intent::Intent;
pub use limits::Limits;
pub use request_body::RequestBody;
pub use response_body::ResponseBody;
pub use service::{Reattach, ResponseFuture};

/// Any error of the services around us.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
