//! The embedded store: sled 0.34.7, made to survive a power cut.
//!
//! Three conditions make it so, each found by rebuilding the disk states that a cut may leave:
//!
//! 1. sled's `flush` ends in `sync_file_range`, which is no barrier. So [`SledStore`] calls `fdatasync` on sled's `db`
//!    file, through a descriptor of its own, before it acknowledges.
//! 2. sled never syncs its `conf` file and its directories. They are synced once, after creation, before the first value.
//! 3. A page that outgrows a segment goes to a file under `blobs/` that sled never syncs. Segments are 8 MiB and a page
//!    holds at most 17 values of 32 KiB, so none does. A `blobs/` that is not empty is an error.
//!
//! And one trick makes it fast. A leaf of sled splits when it holds 17 values, and each split writes all 17 again: three
//! bytes on disk for each byte of a frame. So the keys of frames to come are put in ahead of time, with empty values.
//! Leaves split while they are empty, and a frame that takes its place in one is written once. To whoever reads, an empty
//! value is no value.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::super::frame::MAGIC as FRAME_MAGIC;
use super::head::Head;
use super::{MAX_VALUE_BYTES, Space, Store, StoreError, Visit, Write};

/// How to open a [`SledStore`].
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "plain data")]
pub struct SledOptions {
    /// Limit of sled's page cache, in bytes. Each of its 256 shards keeps its newest page all the same, up to 288 KiB.
    pub cache_bytes: u64,
}

impl Default for SledOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 16 * 1024 * 1024,
        }
    }
}

/// A journal's pairs in a sled directory. Whoever opens it owns the directory already.
pub struct SledStore {
    db: ::sled::Db,
    trees: [::sled::Tree; 4],
    /// The file that `db` writes, by a descriptor of our own.
    log: File,
    head: Head,
    /// The newest place that was made for a frame.
    last_place: AtomicU64,
    dir: PathBuf,
}

impl SledStore {
    /// Whether `dir` holds a store, or what is left of one.
    #[must_use]
    pub fn exists(dir: &Path) -> bool {
        [LOG, HEAD].iter().any(|name| dir.join(name).exists())
    }

    /// Opens the store in `dir`, or makes one.
    ///
    /// # Errors
    /// When a file can't be used or is damaged; the error names it. sled may already have cleared what lay behind the
    /// damage: copy the directory before anything else is tried.
    pub fn open(dir: &Path, options: SledOptions) -> Result<Self, StoreError> {
        let (head, noted) =
            Head::open(&dir.join(HEAD)).map_err(|e| StoreError::io(dir.join(HEAD), "opened", e))?;
        if noted.is_none() {
            clear_unfinished(dir)?;
        }
        let is_new = !dir.join(LOG).exists();
        if !is_new {
            check_conf(dir)?;
        }
        refuse_blobs(dir)?;
        let db = open_sled(dir, options)?;
        let log = dir.join(LOG);
        let log = private_file()
            .open(&log)
            .map_err(|e| StoreError::io(log, "opened", e))?;
        let mut trees = Vec::with_capacity(SPACES.len());
        for (_, name) in SPACES {
            trees.push(guarded(dir, || db.open_tree(name))?);
        }
        let trees: [::sled::Tree; 4] = trees
            .try_into()
            .expect("one tree was opened for each space");
        let newest = guarded(dir, || trees[FRAMES].last())?;
        let last_place = newest.and_then(|(key, _)| frame_key(&key)).unwrap_or(0);
        let last_place = AtomicU64::new(last_place);
        let store = Self {
            db,
            trees,
            log,
            head,
            last_place,
            dir: dir.to_owned(),
        };
        store.check_head(noted)?;
        if noted.is_none() {
            store.finish_making()?;
        }
        Ok(store)
    }

    /// The second condition: what sled never syncs, synced once. The head comes last, so that it says that this was done.
    fn finish_making(&self) -> Result<(), StoreError> {
        guarded(&self.dir, || self.db.flush())?;
        let parent = self
            .dir
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let paths = [
            self.dir.join(CONF),
            self.dir.join(LOG),
            self.dir.join(BLOBS),
            self.dir.clone(),
            parent.to_owned(),
        ];
        for path in paths {
            File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(|e| StoreError::io(path, "synced", e))?;
        }
        let newest = self.newest_frame()?.unwrap_or(0);
        self.head
            .note(newest)
            .and_then(|()| self.head.sync())
            .map_err(|e| StoreError::io(self.dir.join(HEAD), "written", e))
    }

    fn check_head(&self, noted: Option<u64>) -> Result<(), StoreError> {
        let newest = self.newest_frame()?;
        match noted {
            None | Some(0) => Ok(()),
            Some(noted) if newest.is_some_and(|newest| newest >= noted) => Ok(()),
            Some(noted) => {
                let found = newest.map_or_else(
                    || "none".to_owned(),
                    |newest| format!("only those up to {newest}"),
                );
                let what =
                    format!("frames up to {noted} were acknowledged, and {found} can be read");
                Err(damaged(self.dir.join(LOG), &what))
            }
        }
    }

    fn newest_frame(&self) -> Result<Option<u64>, StoreError> {
        let mut places = self.tree(Space::Frames).iter().rev();
        while let Some((key, value)) = guarded(&self.dir, || places.next().transpose())? {
            if !value.is_empty() {
                return Ok(frame_key(&key));
            }
        }
        Ok(None)
    }

    /// Lets sled evict pages. It counts accesses per shard of its cache and evicts only when 64 are counted, however large
    /// the pages are; a scan or a row of writes takes a few for each page, and the cache outgrows its limit many times.
    /// One access more for each few bytes keeps it to about 64 MiB.
    fn count_access(&self, space: Space, key: &[u8], bytes: usize) -> Result<(), StoreError> {
        for _ in 0..bytes.div_ceil(BYTES_PER_ACCESS) {
            guarded(&self.dir, || self.tree(space).get(key))?;
        }
        Ok(())
    }

    /// Makes places ahead of the frame that is about to be put in.
    fn make_places(&self, frame: u64) -> Result<(), StoreError> {
        // Only one thread commits, so the order of its own loads and stores is enough.
        let last = self.last_place.load(Ordering::Relaxed);
        if frame.saturating_add(FEWEST_PLACES_AHEAD) <= last {
            return Ok(());
        }
        let until = frame.saturating_add(MOST_PLACES_AHEAD);
        for place in last.max(frame) + 1..=until {
            guarded(&self.dir, || {
                self.tree(Space::Frames).insert(place.to_be_bytes(), &[])
            })?;
        }
        self.last_place.store(until, Ordering::Relaxed);
        Ok(())
    }

    fn tree(&self, space: Space) -> &::sled::Tree {
        match space {
            Space::Meta => &self.trees[0],
            Space::Frames => &self.trees[FRAMES],
            Space::ResultKeys => &self.trees[2],
            Space::Chunks => &self.trees[3],
        }
    }
}

impl Store for SledStore {
    fn commit(&self, writes: &[Write]) -> Result<(), StoreError> {
        let mut newest_frame = None;
        for write in writes {
            match write {
                Write::Put { value, .. } if value.len() > MAX_VALUE_BYTES => {
                    return Err(StoreError::TooLarge {
                        bytes: value.len(),
                        limit: MAX_VALUE_BYTES,
                    });
                }
                Write::Put { space, key, value } => {
                    if *space == Space::Frames
                        && let Some(frame) = frame_key(key)
                    {
                        self.make_places(frame)?;
                        newest_frame = Some(frame);
                    }
                    guarded(&self.dir, || {
                        self.tree(*space).insert(key, value.as_slice())
                    })?;
                    self.count_access(*space, key, value.len())?;
                }
                Write::Remove { space, key } => {
                    guarded(&self.dir, || self.tree(*space).remove(key))?;
                }
            }
        }
        guarded(&self.dir, || self.db.flush())?;
        self.log
            .sync_data()
            .map_err(|e| StoreError::io(self.dir.join(LOG), "synced", e))?;
        if let Some(frame) = newest_frame {
            self.head
                .note(frame)
                .map_err(|e| StoreError::io(self.dir.join(HEAD), "written", e))?;
        }
        Ok(())
    }

    fn read(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let value = guarded(&self.dir, || self.tree(space).get(key))?;
        Ok(value
            .filter(|value| !value.is_empty())
            .map(|value| value.to_vec()))
    }

    fn scan(&self, space: Space, from: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let mut pairs = self.tree(space).range(from..);
        while let Some((key, value)) = guarded(&self.dir, || pairs.next().transpose())? {
            if !value.is_empty() && visit(&key, &value).is_break() {
                break;
            }
            self.count_access(space, &key, value.len())?;
        }
        Ok(())
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        // Nothing acknowledged depends on these two; they make the next opening faster and its lower bound exact.
        if let Err(error) = guarded(&self.dir, || self.db.flush()) {
            tracing::debug!(%error, "sled was not flushed on closing");
        }
        if let Err(error) = self.head.sync() {
            tracing::debug!(%error, "the head file was not synced on closing");
        }
    }
}

/// A file that only its owner may read.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

fn open_sled(dir: &Path, options: SledOptions) -> Result<::sled::Db, StoreError> {
    let config = || {
        ::sled::Config::default()
            .path(dir)
            .cache_capacity(options.cache_bytes)
            .flush_every_ms(None)
            .segment_size(SEGMENT_BYTES)
            .mode(::sled::Mode::HighThroughput)
    };
    let mut tries = 0;
    loop {
        match guarded(dir, || config().open()) {
            // sled's background threads let go of its file a moment after a store of this process was dropped. The
            // directory is ours, so nobody else can hold it for long.
            Err(StoreError::Io { source, .. }) if is_held(&source) && tries < LOCK_TRIES => {
                tries += 1;
                std::thread::sleep(LOCK_PAUSE);
            }
            result => return result,
        }
    }
}

fn is_held(error: &io::Error) -> bool {
    error.to_string().starts_with("could not acquire lock")
}

/// Runs a call of sled. Damaged bytes make sled panic in places; here that becomes the error that it should have been.
/// Nothing of ours is touched inside, and a store that failed is not written again.
fn guarded<T>(dir: &Path, call: impl FnOnce() -> ::sled::Result<T>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(::sled::Error::Io(error))) => {
            Err(StoreError::io(dir.join(LOG), "read or written", error))
        }
        Ok(Err(::sled::Error::Unsupported(what))) => Err(damaged(dir.join(CONF), &what)),
        Ok(Err(::sled::Error::Corruption { .. })) => {
            Err(damaged(dir.join(LOG), "a checksum does not match"))
        }
        Ok(Err(::sled::Error::CollectionNotFound(_) | ::sled::Error::ReportableBug(_))) => {
            Err(damaged(dir.join(LOG), "sled contradicts itself"))
        }
        Err(_) => Err(damaged(dir.join(LOG), "sled gave up on it")),
    }
}

/// Clears away a store whose making was cut short: without a head, and without a frame in its log, nothing in it was ever
/// acknowledged. sled would refuse what a power cut leaves of it.
fn clear_unfinished(dir: &Path) -> Result<(), StoreError> {
    let log = dir.join(LOG);
    match holds_a_frame(&log) {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io(log, "read", error)),
    }
    let files = std::fs::read_dir(dir).map_err(|e| StoreError::io(dir, "read", e))?;
    for file in files {
        let path = file.map_err(|e| StoreError::io(dir, "read", e))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == LOG || name == CONF || name.starts_with(SNAPSHOT) {
            std::fs::remove_file(&path).map_err(|e| StoreError::io(path, "removed", e))?;
        }
    }
    Ok(())
}

fn holds_a_frame(log: &Path) -> io::Result<bool> {
    let mut log = io::BufReader::with_capacity(64 * 1024, File::open(log)?);
    let mut matched = 0;
    loop {
        let bytes = io::BufRead::fill_buf(&mut log)?;
        if bytes.is_empty() {
            return Ok(false);
        }
        for byte in bytes {
            // The first byte of the magic occurs in it once, so a mismatch starts over without looking back.
            matched = if *byte == FRAME_MAGIC[matched] {
                matched + 1
            } else {
                usize::from(*byte == FRAME_MAGIC[0])
            };
            if matched == FRAME_MAGIC.len() {
                return Ok(true);
            }
        }
        let read = bytes.len();
        io::BufRead::consume(&mut log, read);
    }
}

/// sled only warns when its `conf` is damaged, and makes a new one when it is missing.
fn check_conf(dir: &Path) -> Result<(), StoreError> {
    let conf = dir.join(CONF);
    match std::fs::read(&conf) {
        // Behind the text stands sled's checksum.
        Ok(bytes) if bytes.len() == CONF_TEXT.len() + 4 && bytes.starts_with(CONF_TEXT) => Ok(()),
        Ok(_) => Err(damaged(
            conf,
            "it does not say what this journal was made with",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(damaged(conf, "it is missing, and the log is not"))
        }
        Err(error) => Err(StoreError::io(conf, "read", error)),
    }
}

fn refuse_blobs(dir: &Path) -> Result<(), StoreError> {
    let blobs = dir.join(BLOBS);
    match std::fs::read_dir(&blobs) {
        Ok(mut files) => match files.next() {
            None => Ok(()),
            Some(_) => Err(damaged(
                blobs,
                "it is not empty, and what lies in it is not safe from a power cut",
            )),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::io(blobs, "read", error)),
    }
}

fn damaged(file: PathBuf, what: &str) -> StoreError {
    StoreError::Damaged {
        file,
        what: what.to_owned(),
    }
}

fn frame_key(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

/// The trees, in the order of [`Space`].
const SPACES: [(Space, &str); 4] = [
    (Space::Meta, "meta"),
    (Space::Frames, "frames"),
    (Space::ResultKeys, "result_keys"),
    (Space::Chunks, "chunks"),
];
/// The place of the frames in that order.
const FRAMES: usize = 1;
/// Only a leaf with the newest places ever splits, and no leaf holds as many places as there are ahead at least.
const FEWEST_PLACES_AHEAD: u64 = 32;
const MOST_PLACES_AHEAD: u64 = 96;
/// The 256 shards of the cache, 64 accesses each, over the 64 MiB that are wanted.
const BYTES_PER_ACCESS: usize = 4 * 1024;
const SEGMENT_BYTES: usize = 8 * 1024 * 1024;
const LOG: &str = "db";
const CONF: &str = "conf";
const BLOBS: &str = "blobs";
const HEAD: &str = "head";
const SNAPSHOT: &str = "snap.";
const CONF_TEXT: &[u8] = b"segment_size: 8388608\nuse_compression: false\nversion: 0.34\n";
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn passes_the_suite() {
        let dir = tempfile::tempdir().unwrap();
        super::super::suite::suite(|| {
            Arc::new(SledStore::open(dir.path(), SledOptions::default()).unwrap())
        });
    }

    #[test]
    fn a_frame_is_written_about_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = SledStore::open(dir.path(), SledOptions::default()).unwrap();
        for frame in 1..=1200_u64 {
            let put = Write::Put {
                space: Space::Frames,
                key: frame.to_be_bytes().to_vec(),
                value: vec![b'x'; 30_000],
            };
            store.commit(&[put]).unwrap();
        }
        let written = store.log.metadata().unwrap().len();
        // 36 MB of frames, and the segment that is being filled.
        assert!(
            written < 36_000_000 * 5 / 4 + SEGMENT_BYTES as u64,
            "{written}"
        );
        assert_eq!(store.newest_frame().unwrap(), Some(1200));
        drop(store);
        let store = SledStore::open(dir.path(), SledOptions::default()).unwrap();
        assert_eq!(store.newest_frame().unwrap(), Some(1200));
    }

    #[test]
    fn a_store_whose_making_was_cut_short_is_made_again() {
        for torn in [CONF, HEAD, LOG] {
            let dir = tempfile::tempdir().unwrap();
            drop(SledStore::open(dir.path(), SledOptions::default()).unwrap());
            std::fs::write(dir.path().join(HEAD), b"").unwrap();
            std::fs::write(dir.path().join(torn), b"").unwrap();
            drop(SledStore::open(dir.path(), SledOptions::default()).unwrap());
        }
    }

    #[test]
    fn a_store_with_a_frame_is_never_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = SledStore::open(dir.path(), SledOptions::default()).unwrap();
        let value = [FRAME_MAGIC, &[0; 60][..]].concat();
        store
            .commit(&[Write::Put {
                space: Space::Frames,
                key: 1_u64.to_be_bytes().to_vec(),
                value,
            }])
            .unwrap();
        drop(store);
        std::fs::remove_file(dir.path().join(HEAD)).unwrap();
        let store = SledStore::open(dir.path(), SledOptions::default()).unwrap();
        assert_eq!(store.newest_frame().unwrap(), Some(1));
        drop(store);
        std::fs::remove_file(dir.path().join(HEAD)).unwrap();
        std::fs::remove_file(dir.path().join(CONF)).unwrap();
        assert!(SledStore::open(dir.path(), SledOptions::default()).is_err());
    }

    #[test]
    fn a_lost_log_is_not_a_new_store() {
        let dir = tempfile::tempdir().unwrap();
        let store = SledStore::open(dir.path(), SledOptions::default()).unwrap();
        let key = 1_u64.to_be_bytes().to_vec();
        store
            .commit(&[Write::Put {
                space: Space::Frames,
                key,
                value: b"frame".to_vec(),
            }])
            .unwrap();
        drop(store);
        std::fs::remove_file(dir.path().join(LOG)).unwrap();
        for _ in 0..2 {
            let error = SledStore::open(dir.path(), SledOptions::default())
                .err()
                .unwrap();
            assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        }
    }

    #[test]
    fn a_file_under_blobs_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        drop(SledStore::open(dir.path(), SledOptions::default()).unwrap());
        std::fs::write(dir.path().join(BLOBS).join("1"), b"x").unwrap();
        let error = SledStore::open(dir.path(), SledOptions::default())
            .err()
            .unwrap();
        assert!(error.to_string().contains("blobs"), "{error}");
    }
}
