//! Intents for rmcp's callers.

use rmcp::model::CallToolRequestParams;

use crate::layer::Intent;

/// Names what a call is for; see [`Intent`].
///
/// ```
/// use reattach::layer::Intent;
/// use reattach::sdk::rmcp::with_intent;
/// use rmcp::model::CallToolRequestParams;
///
/// let call = with_intent(CallToolRequestParams::new("pay"), &Intent::new("invoice 2026-117"));
/// assert!(call.meta.is_some());
/// ```
#[must_use]
pub fn with_intent(mut call: CallToolRequestParams, intent: &Intent) -> CallToolRequestParams {
    call.meta
        .get_or_insert_default()
        .insert(Intent::META.to_owned(), intent.as_str().into());
    call
}
