//! Adapters: MCP SDKs on this stack. Each is a feature.

#[cfg(feature = "rmcp")]
pub mod rmcp;
