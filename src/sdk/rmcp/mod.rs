//! rmcp's Streamable HTTP client on any tower service.
//!
//! [`TowerClient`] implements rmcp's `StreamableHttpClient`, in both protocol families. It sends each message once and
//! leaves sessions, handshakes and its own stream resumption to rmcp; below it, the layer decides.
//!
//! ```no_run
//! # async fn example(layer: reattach::layer::ReattachLayer) -> Result<(), Box<dyn std::error::Error>> {
//! use reattach::sdk::rmcp::TowerClient;
//! use rmcp::ServiceExt;
//! use rmcp::transport::streamable_http_client::{
//!     StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
//! };
//! use tower::Layer;
//!
//! let client = TowerClient::new(layer.layer(reattach::client::new()));
//! let config = StreamableHttpClientTransportConfig::with_uri("https://deploy.example/mcp");
//! let agent = ().serve(StreamableHttpClientTransport::with_client(client, config)).await?;
//! # Ok(())
//! # }
//! ```

mod answer;
mod client;
mod events;
mod intent;
mod request;

pub use client::{TowerClient, TowerError};
pub use intent::with_intent;
