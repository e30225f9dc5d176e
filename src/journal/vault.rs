//! The vault: results sealed apart from the records, each under a data key of its own.
//!
//! A result is cut into chunks, each sealed with XChaCha20-Poly1305 under a fresh data key. The data key is wrapped by
//! the vault key. Taking the wrapped key away erases the result for good, while the chain, which runs over the digest of
//! the sealed bytes, still verifies. Every seal binds the execution and the place it belongs to.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::store::{MAX_VALUE_BYTES, Space, Store, Write};
use super::{JournalError, hex};
use crate::entropy;
use crate::identity::{ExecutionId, KeyId, ResultId};

/// Seals and unseals. Wiped when dropped.
pub(super) struct Vault {
    id: KeyId,
    results: Zeroizing<[u8; 32]>,
    cursors: Zeroizing<[u8; 32]>,
}

/// A sealed result: what to write, in order, and what the record says of it.
pub(super) struct Sealed {
    pub(super) writes: Vec<Write>,
    /// `sha256:` of the sealed bytes. Not of the plain ones: those of a short result could be guessed from it.
    pub(super) digest: String,
}

impl Vault {
    pub(super) fn new(
        id: KeyId,
        results: Zeroizing<[u8; 32]>,
        cursors: Zeroizing<[u8; 32]>,
    ) -> Self {
        Self {
            id,
            results,
            cursors,
        }
    }

    /// Seals a result.
    pub(super) fn seal(&self, execution: ExecutionId, result: ResultId, plain: &[u8]) -> Sealed {
        let data_key = Zeroizing::new(entropy::bytes::<32>());
        let cipher = XChaCha20Poly1305::new(&Key::from(*data_key));
        let count = u32::try_from(plain.len().div_ceil(CHUNK_BYTES).max(1))
            .expect("a result is smaller than 256 TiB");
        let mut writes = Vec::new();
        let mut digest = Sha256::new();
        for index in 0..count {
            let start = index as usize * CHUNK_BYTES;
            let chunk = &plain[start..plain.len().min(start + CHUNK_BYTES)];
            let aad = Place {
                execution,
                result,
                index,
                count,
            }
            .aad();
            let sealed = cipher
                .encrypt(
                    &chunk_nonce(index),
                    Payload {
                        msg: chunk,
                        aad: &aad,
                    },
                )
                .expect("a chunk is shorter than the cipher's limit");
            digest.update(&sealed);
            writes.push(Write::Put {
                space: Space::Chunks,
                key: chunk_key(result, index),
                value: sealed,
            });
        }
        let wrapped = self.wrap(execution, result, count, &data_key);
        writes.push(Write::Put {
            space: Space::ResultKeys,
            key: result.to_bytes().to_vec(),
            value: wrapped,
        });
        Sealed {
            writes,
            digest: format!("sha256:{}", hex::encode(&digest.finalize())),
        }
    }

    /// Unseals a result.
    pub(super) fn unseal(
        &self,
        store: &dyn Store,
        execution: ExecutionId,
        result: ResultId,
    ) -> Result<Zeroizing<Vec<u8>>, JournalError> {
        let fail = |what| JournalError::Sealed {
            execution,
            result,
            what,
        };
        let wrapped = store
            .read(Space::ResultKeys, &result.to_bytes())
            .map_err(JournalError::Store)?;
        let wrapped = wrapped.ok_or_else(|| fail("its key is gone"))?;
        let (data_key, count) = self
            .unwrap(execution, result, &wrapped)
            .ok_or_else(|| fail("its key is damaged"))?;
        let cipher = XChaCha20Poly1305::new(&Key::from(*data_key));
        let mut plain = Zeroizing::new(Vec::new());
        for index in 0..count {
            let sealed = store
                .read(Space::Chunks, &chunk_key(result, index))
                .map_err(JournalError::Store)?;
            let sealed = sealed.ok_or_else(|| fail("a chunk is missing"))?;
            let aad = Place {
                execution,
                result,
                index,
                count,
            }
            .aad();
            let chunk = cipher
                .decrypt(
                    &chunk_nonce(index),
                    Payload {
                        msg: &sealed,
                        aad: &aad,
                    },
                )
                .map_err(|_| fail("a chunk is damaged"))?;
            plain.extend_from_slice(&Zeroizing::new(chunk));
        }
        Ok(plain)
    }

    /// Seals the way back to a stream, as text.
    pub(super) fn seal_cursor(&self, execution: ExecutionId, plain: &[u8]) -> String {
        let nonce = entropy::bytes::<24>();
        let sealed = XChaCha20Poly1305::new(&Key::from(*self.cursors))
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: plain,
                    aad: &cursor_aad(execution),
                },
            )
            .expect("a cursor is shorter than the cipher's limit");
        hex::encode(&[&nonce[..], &sealed].concat())
    }

    /// Unseals the way back to a stream.
    pub(super) fn unseal_cursor(
        &self,
        execution: ExecutionId,
        text: &str,
    ) -> Option<Zeroizing<Vec<u8>>> {
        let bytes = hex::decode(text)?;
        let (nonce, sealed) = bytes.split_first_chunk::<24>()?;
        XChaCha20Poly1305::new(&Key::from(*self.cursors))
            .decrypt(
                &XNonce::from(*nonce),
                Payload {
                    msg: sealed,
                    aad: &cursor_aad(execution),
                },
            )
            .ok()
            .map(Zeroizing::new)
    }

    /// Key id (4), count of chunks (4), nonce (24), sealed data key (48).
    fn wrap(
        &self,
        execution: ExecutionId,
        result: ResultId,
        count: u32,
        data_key: &[u8; 32],
    ) -> Vec<u8> {
        let nonce = entropy::bytes::<24>();
        let aad = Place {
            execution,
            result,
            index: u32::MAX,
            count,
        }
        .aad();
        let sealed = XChaCha20Poly1305::new(&Key::from(*self.results))
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: data_key,
                    aad: &aad,
                },
            )
            .expect("a key is shorter than the cipher's limit");
        [
            &self.id.0.to_be_bytes()[..],
            &count.to_be_bytes(),
            &nonce,
            &sealed,
        ]
        .concat()
    }

    fn unwrap(
        &self,
        execution: ExecutionId,
        result: ResultId,
        wrapped: &[u8],
    ) -> Option<(Zeroizing<[u8; 32]>, u32)> {
        let (id, rest) = wrapped.split_first_chunk::<4>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let (nonce, sealed) = rest.split_first_chunk::<24>()?;
        if u32::from_be_bytes(*id) != self.id.0 {
            return None;
        }
        let count = u32::from_be_bytes(*count);
        let aad = Place {
            execution,
            result,
            index: u32::MAX,
            count,
        }
        .aad();
        let key = XChaCha20Poly1305::new(&Key::from(*self.results))
            .decrypt(
                &XNonce::from(*nonce),
                Payload {
                    msg: sealed,
                    aad: &aad,
                },
            )
            .ok()?;
        let key: [u8; 32] = Zeroizing::new(key).as_slice().try_into().ok()?;
        Some((Zeroizing::new(key), count))
    }
}

/// Where a sealed piece belongs. A piece that is moved does not unseal.
struct Place {
    execution: ExecutionId,
    result: ResultId,
    index: u32,
    count: u32,
}

impl Place {
    fn aad(&self) -> Vec<u8> {
        [
            b"reattach/1/result".as_slice(),
            &self.execution.to_bytes(),
            &self.result.to_bytes(),
            &self.index.to_be_bytes(),
            &self.count.to_be_bytes(),
        ]
        .concat()
    }
}

fn cursor_aad(execution: ExecutionId) -> Vec<u8> {
    [b"reattach/1/cursor".as_slice(), &execution.to_bytes()].concat()
}

fn chunk_key(result: ResultId, index: u32) -> Vec<u8> {
    [&result.to_bytes()[..], &index.to_be_bytes()].concat()
}

/// Counts, since a data key seals one result and nothing else.
fn chunk_nonce(index: u32) -> XNonce {
    let mut nonce = [0; 24];
    nonce[20..].copy_from_slice(&index.to_be_bytes());
    XNonce::from(nonce)
}

/// Plain bytes in a chunk: a value of the store, less the 16 bytes of the seal.
const CHUNK_BYTES: usize = MAX_VALUE_BYTES - 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::journal::store::MemoryStore;

    fn vault() -> Vault {
        Vault::new(KeyId(1), Zeroizing::new([1; 32]), Zeroizing::new([2; 32]))
    }

    fn ids() -> (ExecutionId, ResultId) {
        (
            ExecutionId::generate(Timestamp::UNIX_EPOCH),
            ResultId::generate(Timestamp::UNIX_EPOCH),
        )
    }

    #[test]
    fn a_result_of_any_size_reads_back() {
        for size in [
            0,
            1,
            CHUNK_BYTES - 1,
            CHUNK_BYTES,
            CHUNK_BYTES + 1,
            3 * CHUNK_BYTES,
        ] {
            let plain: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            let (store, (execution, result)) = (MemoryStore::default(), ids());
            store
                .commit(&vault().seal(execution, result, &plain).writes)
                .unwrap();
            assert_eq!(
                **vault().unseal(&store, execution, result).unwrap(),
                *plain,
                "{size}"
            );
        }
    }

    #[test]
    fn a_result_does_not_unseal_under_another_execution() {
        let (store, (execution, result)) = (MemoryStore::default(), ids());
        store
            .commit(&vault().seal(execution, result, b"secret").writes)
            .unwrap();
        assert!(vault().unseal(&store, ids().0, result).is_err());
    }

    #[test]
    fn chunks_do_not_trade_places() {
        let (store, (execution, result)) = (MemoryStore::default(), ids());
        let mut writes = vault()
            .seal(execution, result, &vec![7; 2 * CHUNK_BYTES])
            .writes;
        let [
            Write::Put { value: one, .. },
            Write::Put { value: two, .. },
            _,
        ] = &mut writes[..]
        else {
            panic!()
        };
        std::mem::swap(one, two);
        store.commit(&writes).unwrap();
        assert!(vault().unseal(&store, execution, result).is_err());
    }

    #[test]
    fn equal_results_have_different_digests() {
        let (execution, result) = ids();
        let seal = || vault().seal(execution, result, b"yes").digest;
        assert_ne!(seal(), seal());
    }

    #[test]
    fn without_its_key_a_result_is_gone() {
        let (store, (execution, result)) = (MemoryStore::default(), ids());
        store
            .commit(&vault().seal(execution, result, b"secret").writes)
            .unwrap();
        store
            .commit(&[Write::Remove {
                space: Space::ResultKeys,
                key: result.to_bytes().to_vec(),
            }])
            .unwrap();
        let error = vault().unseal(&store, execution, result).unwrap_err();
        assert!(error.to_string().contains("its key is gone"), "{error}");
    }

    #[test]
    fn a_cursor_reads_back_under_its_execution_only() {
        let execution = ids().0;
        let sealed = vault().seal_cursor(execution, b"session");
        assert_eq!(
            **vault().unseal_cursor(execution, &sealed).unwrap(),
            *b"session"
        );
        assert!(vault().unseal_cursor(ids().0, &sealed).is_none());
        assert!(vault().unseal_cursor(execution, &sealed[2..]).is_none());
        assert!(vault().unseal_cursor(execution, "").is_none());
    }
}
