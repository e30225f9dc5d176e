//! Whatever is wrong with the directory or the key: a clear error that names the file, or everything that was
//! acknowledged is there. Never a panic, and never a new key or journal in place of the old one.
#![allow(clippy::unwrap_used, reason = "a test")]

mod journal;

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use journal::{accept, answer, deliver, open};
use reattach::journal::{
    ExecutionRecord, Journal, JournalError, JournalOptions, KeyError, KeySource, Reader,
};

/// A journal with something in it, closed in order, and what it holds.
struct Sample {
    _parent: tempfile::TempDir,
    dir: PathBuf,
    records: Vec<ExecutionRecord>,
}

impl Sample {
    async fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("journal");
        {
            let journal = open(&dir).await;
            for n in 0..60 {
                deliver(&journal, &n.to_string()).await;
            }
            let lease = accept(&journal, "large").await.spend();
            lease.keep(&answer(&"x".repeat(400_000))).await.unwrap();
            journal.flush().await.unwrap();
        }
        let records = Reader::open(&dir)
            .unwrap()
            .executions(&Default::default())
            .unwrap();
        Self {
            _parent: parent,
            dir,
            records,
        }
    }

    /// A copy to damage, with its key.
    fn copy(&self) -> (tempfile::TempDir, PathBuf) {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("journal");
        fs::create_dir(&dir).unwrap();
        for file in fs::read_dir(&self.dir).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_dir() {
                fs::create_dir(dir.join(file.file_name())).unwrap();
            } else {
                fs::copy(file.path(), dir.join(file.file_name())).unwrap();
            }
        }
        fs::copy(self.dir.with_extension("key"), dir.with_extension("key")).unwrap();
        (parent, dir)
    }

    /// Opens a damaged copy: either an error that says what is wrong and where, or nothing is missing.
    async fn check(&self, dir: &Path, what: &str) -> Result<(), JournalError> {
        match Journal::open(JournalOptions::new(dir)).await {
            Err(error) => {
                assert_tells(&error, dir, what);
                Err(error)
            }
            Ok(journal) => {
                let records = journal.reader().unwrap().executions(&Default::default());
                let records =
                    records.unwrap_or_else(|error| panic!("{what}: it opened, and then {error}"));
                assert_eq!(
                    records, self.records,
                    "{what}: it opened, and something is missing"
                );
                for record in records {
                    match journal.kept(record.execution_id).await {
                        Ok(kept) => assert!(kept.is_some(), "{what}"),
                        // The record is intact, and the error says which result is not.
                        Err(error) => assert_tells(&error, dir, what),
                    }
                }
                Ok(())
            }
        }
    }
}

/// The whole error, causes included, names what is damaged and says what to do.
fn assert_tells(error: &JournalError, dir: &Path, what: &str) {
    let mut text = error.to_string();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    let names = text.contains(&dir.display().to_string())
        || text.contains("entry ")
        || text.contains("res_");
    assert!(names, "{what}: `{text}` does not say where");
}

async fn refused(options: JournalOptions) -> JournalError {
    Journal::open(options).await.err().expect("it is refused")
}

#[tokio::test]
async fn a_directory_that_is_owned_is_refused_and_the_owner_named() {
    let dir = tempfile::tempdir().unwrap();
    let _owner = open(dir.path()).await;
    for error in [
        refused(JournalOptions::new(dir.path())).await,
        Reader::open(dir.path()).err().unwrap(),
    ] {
        let JournalError::Owned { owner, .. } = &error else {
            panic!("{error}")
        };
        assert_eq!(*owner, Some(std::process::id()));
        assert!(
            error.to_string().contains(&std::process::id().to_string()),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_file_in_place_of_the_directory_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = refused(JournalOptions::new(file.path())).await;
    assert!(matches!(error, JournalError::Directory { .. }), "{error}");
    assert!(error.to_string().contains("it is a file"), "{error}");
}

#[tokio::test]
async fn a_directory_without_a_journal_is_not_made_into_one_by_a_reader() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Reader::open(dir.path()).is_err());
    assert!(Reader::open(&dir.path().join("nowhere")).is_err());
    assert!(!dir.path().join("db").exists());
}

#[tokio::test]
async fn a_key_that_is_lost_is_never_made_anew() {
    let sample = Sample::new().await;
    let (_parent, dir) = sample.copy();
    fs::remove_file(dir.with_extension("key")).unwrap();
    let error = refused(JournalOptions::new(&dir)).await;
    assert!(
        matches!(error, JournalError::Key(KeyError::Missing { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("journal.key"), "{error}");
    assert!(!dir.with_extension("key").exists());
}

#[tokio::test]
async fn a_key_that_is_not_this_journals_is_refused_and_harms_nothing() {
    let sample = Sample::new().await;
    let (_parent, dir) = sample.copy();
    let other = KeySource::Bytes([9; 32].into());
    let error = refused(JournalOptions::new(&dir).with_key(other)).await;
    assert!(
        matches!(error, JournalError::Key(KeyError::Wrong { .. })),
        "{error}"
    );

    let key = dir.with_extension("key");
    let right = fs::read(&key).unwrap();
    fs::write(&key, "0".repeat(64)).unwrap();
    let error = refused(JournalOptions::new(&dir)).await;
    assert!(
        matches!(error, JournalError::Key(KeyError::Wrong { .. })),
        "{error}"
    );
    fs::write(&key, "short").unwrap();
    let error = refused(JournalOptions::new(&dir)).await;
    assert!(
        matches!(error, JournalError::Key(KeyError::Malformed { .. })),
        "{error}"
    );
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let error = refused(JournalOptions::new(&dir)).await;
    assert!(
        matches!(
            error,
            JournalError::Key(KeyError::Permissions { mode: 0o644, .. })
        ),
        "{error}"
    );
    assert!(error.to_string().contains("journal.key"), "{error}");

    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&key, right).unwrap();
    sample.check(&dir, "the right key again").await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_missing_is_told() {
    let sample = Sample::new().await;
    for (name, is_needed) in [
        ("conf", true),
        ("db", true),
        ("head", false),
        ("lock", false),
    ] {
        let (_parent, dir) = sample.copy();
        fs::remove_file(dir.join(name)).unwrap();
        let opened = sample.check(&dir, name).await;
        assert_eq!(opened.is_err(), is_needed, "{name}: {opened:?}");
        let again = sample.check(&dir, name).await;
        assert_eq!(again.is_err(), is_needed, "{name} again: {again:?}");
    }
}

#[tokio::test]
async fn sleds_shortcut_may_be_missing() {
    let sample = Sample::new().await;
    let (_parent, dir) = sample.copy();
    for file in fs::read_dir(&dir).unwrap() {
        let path = file.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("snap.")
        {
            fs::remove_file(path).unwrap();
        }
    }
    sample.check(&dir, "no snapshot").await.unwrap();
}

#[tokio::test]
async fn a_log_that_is_cut_short_is_told() {
    let sample = Sample::new().await;
    let used = used_bytes(&sample.dir);
    for part in 0..8 {
        let (_parent, dir) = sample.copy();
        let length = used * part / 8;
        let log = fs::OpenOptions::new()
            .write(true)
            .open(dir.join("db"))
            .unwrap();
        log.set_len(length).unwrap();
        let opened = sample
            .check(&dir, &format!("cut at {length} of {used}"))
            .await;
        assert!(
            opened.is_err(),
            "acknowledged entries were behind the cut at {length}"
        );
    }
}

#[tokio::test]
async fn flipped_bits_anywhere_in_the_log_are_told_or_harmless() {
    let sample = Sample::new().await;
    let used = used_bytes(&sample.dir);
    let mut told = 0;
    for part in 0..48 {
        let (_parent, dir) = sample.copy();
        let at = used * part / 48 + 13 * part % 7;
        flip(&dir.join("db"), at);
        told += u32::from(
            sample
                .check(&dir, &format!("byte {at} of {used}"))
                .await
                .is_err(),
        );
    }
    assert!(told > 0, "no damage was noticed at all");
}

#[tokio::test]
async fn flipped_bits_in_the_small_files_are_told_or_harmless() {
    let sample = Sample::new().await;
    for name in ["conf", "head", "lock"] {
        let length = fs::metadata(sample.dir.join(name)).unwrap().len();
        for at in 0..length {
            let (_parent, dir) = sample.copy();
            flip(&dir.join(name), at);
            let _told_or_harmless = sample.check(&dir, &format!("{name}, byte {at}")).await;
        }
    }
}

#[tokio::test]
async fn flipped_bits_in_sleds_shortcut_are_told_or_harmless() {
    let sample = Sample::new().await;
    let shortcut = fs::read_dir(&sample.dir)
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .find(|name| name.to_string_lossy().starts_with("snap."))
        .expect("sled leaves a snapshot");
    let length = fs::metadata(sample.dir.join(&shortcut)).unwrap().len();
    for part in 0..24 {
        let (_parent, dir) = sample.copy();
        let at = length * part / 24;
        flip(&dir.join(&shortcut), at);
        let _told_or_harmless = sample.check(&dir, &format!("snapshot, byte {at}")).await;
    }
}

#[tokio::test]
async fn what_stands_behind_the_last_sync_is_cleared_away() {
    let sample = Sample::new().await;
    let (_parent, dir) = sample.copy();
    let used = used_bytes(&dir);
    let log = fs::OpenOptions::new()
        .write(true)
        .open(dir.join("db"))
        .unwrap();
    log.write_all_at(&[0x5a; 3000], used + 1).unwrap();
    sample.check(&dir, "a torn tail").await.unwrap();
}

/// Up to where the log holds something.
fn used_bytes(dir: &Path) -> u64 {
    let bytes = fs::read(dir.join("db")).unwrap();
    let padding = [0, *bytes.last().unwrap()];
    bytes
        .iter()
        .rposition(|byte| !padding.contains(byte))
        .unwrap() as u64
        + 1
}

fn flip(file: &Path, at: u64) {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(file)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}
