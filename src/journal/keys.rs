//! The master key and what is derived from it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::hex;
use super::vault::Vault;
use crate::entropy;
use crate::identity::{FingerprintKey, KeyId};

/// Where the master key comes from.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum KeySource {
    /// The file `<journal's directory>.key` beside the journal's directory, made when the journal is made.
    #[default]
    Beside,
    /// This file, made when the journal is made.
    File(PathBuf),
    /// These bytes.
    Bytes(Zeroizing<[u8; 32]>),
}

impl std::fmt::Debug for KeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Beside => f.write_str("Beside"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Bytes(_) => f.write_str("Bytes(..)"),
        }
    }
}

/// The key can't be used. Nothing was written, and no key was replaced.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file can't be read or made.
    #[error("the key file {} can't be {doing}; the journal is untouched", file.display())]
    Io {
        /// Which file.
        file: PathBuf,
        /// What was tried, as a participle.
        doing: &'static str,
        /// Why.
        source: Arc<io::Error>,
    },
    /// The journal is there and its key is not.
    #[error("the key file {} is missing, and the journal was made with it; the journal is untouched; put the file back or name another with REATTACH_KEY_FILE", file.display())]
    Missing {
        /// Which file.
        file: PathBuf,
    },
    /// Others may read it.
    #[error("the key file {} may be used by others (mode {mode:04o}); the journal is untouched; run `chmod 600` on it", file.display())]
    Permissions {
        /// Which file.
        file: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is not a key.
    #[error(
        "{origin} is not a key; wanted 64 hexadecimal digits; the journal is untouched; put the right one back"
    )]
    Malformed {
        /// Where it came from.
        origin: String,
    },
    /// It is another journal's key.
    #[error(
        "{origin} is not the key that this journal was made with; the journal is untouched; put the right one back"
    )]
    Wrong {
        /// Where it came from.
        origin: String,
    },
}

/// The 32 bytes everything else is derived from.
pub(super) struct MasterKey {
    bytes: Zeroizing<[u8; 32]>,
    origin: String,
}

impl MasterKey {
    /// A new one that is never stored.
    pub(super) fn ephemeral() -> Self {
        Self {
            bytes: Zeroizing::new(entropy::bytes()),
            origin: "the journal's key in memory".into(),
        }
    }

    /// Loads the key of the journal in `dir`. Only for a journal that `is_new` is one made.
    pub(super) fn load(source: &KeySource, dir: &Path, is_new: bool) -> Result<Self, KeyError> {
        let file = match source {
            KeySource::Bytes(bytes) => {
                return Ok(Self {
                    bytes: bytes.clone(),
                    origin: "the given key".into(),
                });
            }
            KeySource::File(file) => file.clone(),
            KeySource::Beside => beside(dir),
        };
        let bytes = match read(&file) {
            Err(KeyError::Missing { .. }) if is_new => make(&file)?,
            result => result?,
        };
        Ok(Self {
            bytes,
            origin: format!("the key in {}", file.display()),
        })
    }

    /// Derives the keys of the journal with this id.
    pub(super) fn derive(&self, journal: &[u8; 16]) -> Keys {
        let hkdf = Hkdf::<Sha256>::new(Some(journal), &*self.bytes);
        Keys {
            fingerprint: FingerprintKey::new(CURRENT, *expand(&hkdf, b"reattach/1/fingerprint")),
            vault: Vault::new(
                CURRENT,
                expand(&hkdf, b"reattach/1/vault"),
                expand(&hkdf, b"reattach/1/cursor"),
            ),
            check: hex::encode(&expand(&hkdf, b"reattach/1/check")[..16]),
        }
    }

    pub(super) fn wrong(&self) -> KeyError {
        KeyError::Wrong {
            origin: self.origin.clone(),
        }
    }
}

/// What is derived from the master key, each with its own label, so that none tells anything about another.
pub(super) struct Keys {
    pub(super) fingerprint: FingerprintKey,
    pub(super) vault: Vault,
    /// Recognises the key without telling it.
    pub(super) check: String,
}

/// The id of the only key there is until a journal's key is rotated.
pub(super) const CURRENT: KeyId = KeyId(1);

fn expand(hkdf: &Hkdf<Sha256>, label: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    hkdf.expand(label, &mut *key)
        .expect("32 bytes are within what HKDF-SHA-256 gives");
    key
}

fn beside(dir: &Path) -> PathBuf {
    let mut name = dir.file_name().unwrap_or("journal".as_ref()).to_owned();
    name.push(".key");
    dir.with_file_name(name)
}

fn read(file: &Path) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    let io = |doing, error| KeyError::Io {
        file: file.to_owned(),
        doing,
        source: Arc::new(error),
    };
    let mut handle = match File::open(file) {
        Ok(handle) => handle,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(KeyError::Missing {
                file: file.to_owned(),
            });
        }
        Err(error) => return Err(io("opened", error)),
    };
    // Asked of the open file, so that nobody swaps it in between.
    let mode = handle
        .metadata()
        .map_err(|e| io("examined", e))?
        .permissions()
        .mode()
        & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Permissions {
            file: file.to_owned(),
            mode,
        });
    }
    let mut text = Zeroizing::new(Vec::with_capacity(LONGEST_TEXT));
    Read::by_ref(&mut handle)
        .take(LONGEST_TEXT as u64)
        .read_to_end(&mut text)
        .map_err(|e| io("read", e))?;
    parse(&text).ok_or_else(|| KeyError::Malformed {
        origin: file.display().to_string(),
    })
}

/// Reads a key's text: 64 hexadecimal digits, and white space around them.
pub(super) fn parse(text: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let digits = text.trim_ascii();
    let mut key = Zeroizing::new([0; 32]);
    hex::decode_into(digits, &mut *key).then_some(key)
}

/// Makes a key and its file, durable before anything is sealed with it.
fn make(file: &Path) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    let io = |doing, error| KeyError::Io {
        file: file.to_owned(),
        doing,
        source: Arc::new(error),
    };
    let key = Zeroizing::new(entropy::bytes::<32>());
    let mut text = Zeroizing::new(hex::encode(&*key));
    text.push('\n');
    let mut handle = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .map_err(|e| io("made", e))?;
    handle
        .write_all(text.as_bytes())
        .and_then(|()| handle.sync_all())
        .map_err(|e| io("written", e))?;
    let parent = file
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(parent)
        .and_then(|dir| dir.sync_all())
        .map_err(|e| io("synced in its directory", e))?;
    Ok(key)
}

/// More than any key's text, so that a wrong file is not read whole.
const LONGEST_TEXT: usize = 256;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_made_key_reads_back_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("k");
        let made = make(&file).unwrap();
        assert_eq!(*read(&file).unwrap(), *made);
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(make(&file).is_err(), "a key is never replaced");
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("k");
        make(&file).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let error = read(&file).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }

    #[test]
    fn text_that_is_no_key_is_refused() {
        for text in ["", "00", &"0".repeat(63), &"0".repeat(65), &"g".repeat(64)] {
            assert!(parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(parse(format!(" {}\n", "a1".repeat(32)).as_bytes()).is_some());
    }

    #[test]
    fn keys_differ_by_label_and_by_journal() {
        let master = MasterKey::ephemeral();
        let (one, two) = (master.derive(&[1; 16]), master.derive(&[2; 16]));
        assert_ne!(one.check, two.check);
        assert_ne!(
            one.fingerprint.fingerprint(b"{}"),
            two.fingerprint.fingerprint(b"{}")
        );
    }
}
