//! A store in memory: every law but durability.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

use super::{MAX_VALUE_BYTES, Space, Store, StoreError, Visit, Write};

/// Keeps everything in memory, for tests and examples.
#[derive(Debug, Default)]
pub struct MemoryStore {
    pairs: Mutex<BTreeMap<Key, Vec<u8>>>,
}

type Key = (Space, Vec<u8>);

impl Store for MemoryStore {
    fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for write in writes {
            match write {
                Write::Put { value, .. } if value.len() > MAX_VALUE_BYTES => {
                    return Err(StoreError::TooLarge {
                        bytes: value.len(),
                        limit: MAX_VALUE_BYTES,
                    });
                }
                Write::Put { space, key, value } => {
                    pairs.insert((*space, key.clone()), value.clone());
                }
                Write::Remove { space, key } => {
                    pairs.remove(&(*space, key.clone()));
                }
            }
        }
        Ok(())
    }

    fn read(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(pairs.get(&(space, key.to_vec())).cloned())
    }

    fn scan(&self, space: Space, from: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        // One pair at a time, so that `visit` may use the store and never holds up a writer.
        let mut next = Bound::Included((space, from.to_vec()));
        loop {
            let pair = {
                let pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
                pairs
                    .range((next, Bound::Unbounded))
                    .next()
                    .map(|(key, value)| (key.clone(), value.clone()))
            };
            match pair {
                Some((key, value)) if key.0 == space => {
                    if visit(&key.1, &value).is_break() {
                        return Ok(());
                    }
                    next = Bound::Excluded(key);
                }
                Some(_) | None => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn passes_the_suite() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        super::super::suite::suite(|| store.clone());
    }
}
