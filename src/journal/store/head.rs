//! The head file: the newest acknowledged frame, noted beside the store.
//!
//! sled's recovery takes the longest prefix of its log that is whole and clears the rest. After a power cut that is
//! right; after damage to older bytes it would silently drop what was acknowledged. So each commit, once it is durable,
//! overwrites these 32 bytes without syncing them. They never run ahead of the log, and at worst lag behind it: a lower
//! bound of what has to be found on opening.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sha2::{Digest, Sha256};

/// The open head file.
#[derive(Debug)]
pub(super) struct Head {
    file: File,
}

impl Head {
    /// Opens the file, and reads the frame key it holds. A file that is new, or torn by a power cut, holds none.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Option<u64>)> {
        let file = super::sled::private_file()
            .create(true)
            .truncate(false)
            .open(path)?;
        let mut bytes = [0; LEN];
        let newest = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => decode(&bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(error),
        };
        Ok((Self { file }, newest))
    }

    /// Notes the newest durable frame.
    pub(super) fn note(&self, frame: u64) -> io::Result<()> {
        self.file.write_all_at(&encode(frame), 0)
    }

    /// Makes the newest note durable, so that it is exact after an orderly end.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn encode(frame: u64) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&frame.to_be_bytes());
    let digest = Sha256::digest(&bytes[..16]);
    bytes[16..].copy_from_slice(&digest[..16]);
    bytes
}

fn decode(bytes: &[u8; LEN]) -> Option<u64> {
    let frame = u64::from_be_bytes(bytes[8..16].try_into().ok()?);
    (encode(frame) == *bytes).then_some(frame)
}

const MAGIC: &[u8; 8] = b"rjhead1\n";
const LEN: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_head_is_no_head() {
        let whole = encode(7);
        assert_eq!(decode(&whole), Some(7));
        for at in 0..LEN {
            let mut torn = whole;
            torn[at] ^= 1;
            assert_eq!(decode(&torn), None, "byte {at}");
        }
    }
}
