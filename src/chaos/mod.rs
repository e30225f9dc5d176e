//! Faults on purpose: a test server that counts effects, and a proxy that breaks connections at exact points.
//!
//! Count effects at the server: that is the only honest count. Everything listens on loopback, port 0.
//!
//! ```
//! # tokio_test(async {
//! use reattach::chaos::{Cut, Fault, FaultPlan, FaultProxy, ServerOptions, TestServer};
//!
//! let server = TestServer::start(ServerOptions::default()).await.unwrap();
//! let plan = FaultPlan::new().on_call(1, Fault::LoseAnswer(Cut::Reset));
//! let proxy = FaultProxy::start(server.address(), plan).await.unwrap();
//! // ... point an agent at proxy.url(), let it call `pay` ...
//! assert_eq!(server.ledger().effects().len(), 0);
//! # });
//! # fn tokio_test(test: impl Future<Output = ()>) {
//! #     tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(test);
//! # }
//! ```

mod events;
mod fault;
mod http1;
mod ledger;
mod proxy;
mod server;
mod tools;

pub use fault::{Cut, Fault, FaultPlan};
pub use ledger::{Effect, Ledger};
pub use proxy::{FaultProxy, Traffic};
pub use server::{ServerOptions, TestServer};
