//! `reattach`: a client-side transport middleware for MCP.

#[cfg(feature = "chaos")]
pub mod chaos;
#[cfg(feature = "client")]
pub mod client;
pub mod clock;
pub mod contract;
pub mod entropy;
pub mod execution;
pub mod identity;
pub mod journal;
pub mod layer;
mod recovery;
pub mod sdk;
pub mod wire;
