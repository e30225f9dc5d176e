//! A client-side transport middleware for MCP: resumes lost streams, reattaches repeated calls to the execution that
//! they repeat, and says "unknown" where nothing is proved.
//!
//! Start with [`layer::ReattachLayer`]; give it a [`journal::Journal`] and [`contract::Contracts`].
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use reattach::contract::{Class, Contract, Contracts};
//! use reattach::journal::Journal;
//! use reattach::layer::ReattachLayer;
//!
//! let layer = ReattachLayer::builder(Journal::in_memory())
//!     .actor("process:my-agent")
//!     .contracts(Contracts::builder().tool("get_status", Contract::of(Class::ReadOnly)).build())
//!     .build()
//!     .await?;
//! # drop(layer);
//! # Ok::<(), reattach::journal::JournalError>(())
//! # }).unwrap();
//! ```

#[cfg(feature = "chaos")]
pub mod chaos;
#[cfg(feature = "cli")]
pub mod cli;
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
#[cfg(feature = "cli")]
pub mod report;
pub mod sdk;
pub mod wire;

/// The README's example compiles.
#[cfg(all(doctest, feature = "cli"))]
#[doc = include_str!("../README.md")]
struct Readme;
