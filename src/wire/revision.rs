//! Protocol revisions, as far as they differ in what can be done about a lost stream.

use http::HeaderMap;

use super::header::MCP_PROTOCOL_VERSION;

/// The two families of the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a new family has to be decided everywhere"
)]
pub enum Revision {
    /// 2025-03-26 to 2025-11-25: sessions, resumable streams; a disconnect is not a cancellation.
    Resumable,
    /// From 2026-07-28: no sessions, no resuming; closing the stream is a cancellation.
    Stateless,
}

impl Revision {
    /// The family that a request's headers name. Without the header, servers assume 2025-03-26, and so do we.
    ///
    /// # Source
    /// MCP 2025-11-25, Transports, Protocol Version Header.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        headers
            .get(MCP_PROTOCOL_VERSION)
            .and_then(|value| value.to_str().ok())
            .map_or(Self::Resumable, Self::named)
    }

    /// The family of a revision's name. Names are dates, so they compare as text.
    #[must_use]
    pub fn named(name: &str) -> Self {
        if name.trim() >= FIRST_STATELESS {
            Self::Stateless
        } else {
            Self::Resumable
        }
    }
}

const FIRST_STATELESS: &str = "2026-07-28";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_split_at_2026_07_28() {
        for name in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(Revision::named(name), Revision::Resumable);
        }
        for name in ["2026-07-28", "2027-01-01"] {
            assert_eq!(Revision::named(name), Revision::Stateless);
        }
        assert_eq!(Revision::of(&HeaderMap::new()), Revision::Resumable);
    }
}
