//! The keyed digest of a canonical action record.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Names the key a fingerprint was made with, so that rotation keeps old executions comparable. `k1`, `k2`, ...
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct KeyId(pub u32);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k{}", self.0)
    }
}

/// HMAC-SHA-256 of the canonical action record. Compares within one journal. `Debug` shows eight hex digits.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Fingerprint {
    key: KeyId,
    mac: [u8; 32],
}

impl Fingerprint {
    /// The key it was made with.
    #[must_use]
    pub const fn key(&self) -> KeyId {
        self.key
    }

    /// The first eight hex digits, for logs and tables.
    #[must_use]
    pub fn short(&self) -> String {
        hex(&self.mac[..4])
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.short())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hmac-sha256:{}:{}", self.key, hex(&self.mac))
    }
}

/// A text that is not a fingerprint.
#[derive(Debug, Eq, PartialEq, thiserror::Error)]
#[error("not a fingerprint; wanted `hmac-sha256:k<number>:` and 64 hex digits")]
pub struct ParseFingerprintError;

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, ParseFingerprintError> {
        let rest = text
            .strip_prefix("hmac-sha256:k")
            .ok_or(ParseFingerprintError)?;
        let (key, digits) = rest.split_once(':').ok_or(ParseFingerprintError)?;
        let key = KeyId(key.parse().map_err(|_| ParseFingerprintError)?);
        if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(ParseFingerprintError);
        }
        let mut mac = [0; 32];
        for (byte, pair) in mac.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| ParseFingerprintError)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| ParseFingerprintError)?;
        }
        Ok(Self { key, mac })
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// The key that fingerprints are made with. Never leaves the process; wiped when dropped.
#[derive(Clone)]
pub struct FingerprintKey {
    id: KeyId,
    key: Zeroizing<[u8; 32]>,
}

impl FingerprintKey {
    /// The key of this id.
    #[must_use]
    pub fn new(id: KeyId, key: [u8; 32]) -> Self {
        Self {
            id,
            key: Zeroizing::new(key),
        }
    }

    /// The fingerprint of these canonical bytes.
    #[must_use]
    pub fn fingerprint(&self, canonical: &[u8]) -> Fingerprint {
        Fingerprint {
            key: self.id,
            mac: self.mac(b"action", canonical),
        }
    }

    /// A keyed digest for values that may be guessed, such as an intent a caller named; never comparable with a fingerprint.
    #[must_use]
    pub fn digest(&self, domain: &str, bytes: &[u8]) -> String {
        format!(
            "hmac-sha256:{}:{}",
            self.id,
            hex(&self.mac(domain.as_bytes(), bytes))
        )
    }

    fn mac(&self, domain: &[u8], bytes: &[u8]) -> [u8; 32] {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&*self.key).expect("HMAC takes a key of any length");
        mac.update(domain);
        mac.update(&[0]); // no domain is a prefix of another
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for FingerprintKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FingerprintKey({})", self.id)
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_reads_back() {
        let fingerprint = FingerprintKey::new(KeyId(3), [7; 32]).fingerprint(b"{}");
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert!(fingerprint.to_string().starts_with("hmac-sha256:k3:"));
        assert!("hmac-sha256:k1:00".parse::<Fingerprint>().is_err());
        assert!("sha256:k1:".parse::<Fingerprint>().is_err());
    }

    #[test]
    fn another_key_makes_another_fingerprint() {
        let one = FingerprintKey::new(KeyId(1), [1; 32]);
        let two = FingerprintKey::new(KeyId(1), [2; 32]);
        assert_ne!(one.fingerprint(b"{}"), two.fingerprint(b"{}"));
        assert_ne!(one.digest("intent", b"{}"), one.digest("action", b"{}"));
    }

    #[test]
    fn debug_shows_eight_digits_and_no_key() {
        let key = FingerprintKey::new(KeyId(1), [1; 32]);
        assert_eq!(format!("{key:?}"), "FingerprintKey(k1)");
        assert_eq!(
            format!("{:?}", key.fingerprint(b"{}")).len(),
            "k1:".len() + 8
        );
    }
}
