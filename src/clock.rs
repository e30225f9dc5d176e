//! The only door to time. Everything above takes [`Timestamp`] and [`Moment`] as arguments.

use std::time::Duration;

pub use jiff::Timestamp;

/// Monotonic time since this process first asked. Tests make their own; arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Moment(Duration);

impl Moment {
    /// The start of time.
    pub const START: Self = Self(Duration::ZERO);

    /// The moment that lies `since_start` after the start.
    #[must_use]
    pub const fn at(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// The moment `by` later; saturates.
    #[must_use]
    pub const fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Where time comes from. [`SystemClock`] outside of tests.
pub trait Clock: Send + Sync + 'static {
    /// Wall time, cut to milliseconds, as records carry it.
    fn now(&self) -> Timestamp;
    /// Monotonic time, for deadlines.
    fn moment(&self) -> Moment;
}

/// The clock of the operating system. Monotonic time follows tokio's clock, so that paused tests steer it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    fn moment(&self) -> Moment {
        static START: std::sync::OnceLock<tokio::time::Instant> = std::sync::OnceLock::new();
        let now = tokio::time::Instant::now();
        Moment(now.saturating_duration_since(*START.get_or_init(|| now)))
    }
}

/// RFC 3339 in UTC with milliseconds, as every record and dump shows time.
pub mod rfc3339_millis {
    use super::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// `2026-07-28T12:00:00.000Z`
    #[must_use]
    pub fn format(at: Timestamp) -> String {
        format!("{at:.3}")
    }

    /// Serialises with three digits of milliseconds.
    ///
    /// # Errors
    /// Those of the serialiser.
    pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format(*at))
    }

    /// Reads any RFC 3339 instant.
    ///
    /// # Errors
    /// When the text is not an instant.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }

    /// The same for a time that may not have been reached.
    pub mod option {
        use super::{Timestamp, format};
        use serde::{Deserialize, Deserializer, Serializer, de};

        /// Serialises the instant or nothing.
        ///
        /// # Errors
        /// Those of the serialiser.
        pub fn serialize<S: Serializer>(
            at: &Option<Timestamp>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match at {
                Some(at) => serializer.serialize_some(&format(*at)),
                None => serializer.serialize_none(),
            }
        }

        /// Reads an instant or nothing.
        ///
        /// # Errors
        /// When the text is not an instant.
        pub fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Timestamp>, D::Error> {
            let text = Option::<String>::deserialize(deserializer)?;
            text.map(|text| text.parse().map_err(de::Error::custom))
                .transpose()
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn milliseconds_are_always_written() {
            let at: Timestamp = "2026-07-28T12:00:00Z".parse().unwrap();
            assert_eq!(format(at), "2026-07-28T12:00:00.000Z");
        }
    }
}
