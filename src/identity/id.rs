//! Ids that we mint: a prefix that names the kind, and a ULID, so that they sort by time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use ulid::Ulid;

use crate::clock::Timestamp;

/// A text that is not an id of the wanted kind.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{text}` is not an id of this kind; wanted `{prefix}` and 26 characters of Crockford base 32"
)]
pub struct ParseIdError {
    prefix: &'static str,
    text: String,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(u128);

        impl $name {
            /// Makes a new id from the time and ten random bytes.
            #[must_use]
            pub fn new(at: Timestamp, random: [u8; 10]) -> Self {
                let mut low = [0; 16];
                low[6..].copy_from_slice(&random);
                let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
                Self(Ulid::from_parts(millis, u128::from_be_bytes(low)).0)
            }

            /// Makes a new id now.
            #[must_use]
            pub fn generate(at: Timestamp) -> Self {
                Self::new(at, crate::entropy::bytes())
            }

            /// The 16 bytes, big-endian, so that they sort like the ids.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.to_be_bytes()
            }

            /// The id of these 16 big-endian bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(u128::from_be_bytes(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), Ulid(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                text.strip_prefix($prefix)
                    .filter(|rest| rest.len() == 26)
                    .and_then(|rest| Ulid::from_string(rest).ok())
                    .map(|ulid| Self(ulid.0))
                    .ok_or_else(|| ParseIdError { prefix: $prefix, text: text.to_owned() })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

id! {
    /// One accepted attempt to carry out an action, shown as `exe_` and a ULID. The only identity that leaves us.
    ExecutionId, "exe_"
}
id! {
    /// One agent process, or what the caller named as one. Shown as `run_` and a ULID.
    RunId, "run_"
}
id! {
    /// A sealed result, apart from the record that refers to it. Shown as `res_` and a ULID.
    ResultId, "res_"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_and_sorts_by_time() {
        let early = ExecutionId::new(Timestamp::from_second(1).unwrap(), [255; 10]);
        let late = ExecutionId::new(Timestamp::from_second(2).unwrap(), [0; 10]);
        assert!(early < late);
        assert!(early.to_string() < late.to_string());
        assert_eq!(early.to_string().parse(), Ok(early));
        assert_eq!(ExecutionId::from_bytes(early.to_bytes()), early);
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let run = RunId::new(Timestamp::UNIX_EPOCH, [1; 10]).to_string();
        assert!(run.parse::<ExecutionId>().is_err());
        assert!("exe_".parse::<ExecutionId>().is_err());
        assert!(
            "exe_01J4K8J7DX7V0Q3M5T9B2C4D6é"
                .parse::<ExecutionId>()
                .is_err()
        );
    }
}
