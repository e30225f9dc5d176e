//! What a caller says about its own calls: these are the same action, those are deliberately two.

/// A name for what a caller wants, as an extension of the `http::Request`; the same as `_meta["dev.reattach/intent"]`, and
/// before it. Calls with the same intent are one execution; equal calls with different intents are two, also at the same
/// moment. An intent names one action: used for another one, it is refused.
///
/// ```
/// use reattach::layer::Intent;
///
/// let mut request = http::Request::post("https://bank.example/mcp").body(()).unwrap();
/// request.extensions_mut().insert(Intent::new("invoice 2026-117"));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Intent(String);

impl Intent {
    /// The `_meta` key that says the same in the body.
    pub const META: &str = crate::wire::INTENT_META;

    /// The intent of this name. Names are kept as keyed digests only.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
