//! The journal's directory and who owns it.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::JournalError;

/// Proof that this journal's directory is ours. Dropping it gives the directory up; the system does so when a process dies.
#[derive(Debug)]
pub(super) struct Owner {
    _lock: File,
}

/// Makes the directory where it is missing, private to its user.
pub(super) fn make(dir: &Path) -> Result<(), JournalError> {
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(JournalError::Directory {
            dir: dir.to_owned(),
            doing: "it is a file",
            advice: "name a directory",
            source: None,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|error| refused(dir, "it can't be made", error)),
        Err(error) => Err(refused(dir, "it can't be examined", error)),
    }
}

/// Becomes the owner of a directory that exists.
pub(super) fn own(dir: &Path) -> Result<Owner, JournalError> {
    let path = dir.join(LOCK);
    let mut lock = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|error| refused(dir, "its file `lock` can't be opened", error))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(JournalError::Owned {
                dir: dir.to_owned(),
                owner: read_owner(&mut lock),
            });
        }
        Err(TryLockError::Error(error)) => {
            return Err(refused(dir, "its file `lock` can't be locked", error));
        }
    }
    // The lock is what counts; the pid is for the one who is refused, and need not survive a power cut.
    lock.set_len(0)
        .and_then(|()| lock.rewind())
        .and_then(|()| writeln!(lock, "{}", std::process::id()))
        .map_err(|error| refused(dir, "its file `lock` can't be written", error))?;
    Ok(Owner { _lock: lock })
}

fn read_owner(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.take(LONGEST_PID).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn refused(dir: &Path, doing: &'static str, error: io::Error) -> JournalError {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "give this user the right to it, or name another with --journal"
        }
        io::ErrorKind::ReadOnlyFilesystem => "name one on a file system that can be written",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space",
        _ => "check it, or name another with --journal",
    };
    JournalError::Directory {
        dir: PathBuf::from(dir),
        doing,
        advice,
        source: Some(Arc::new(error)),
    }
}

const LOCK: &str = "lock";
const LONGEST_PID: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_made_directory_is_private() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("a").join("b");
        make(&dir).unwrap();
        make(&dir).unwrap();
        assert_eq!(
            fs::metadata(&dir).unwrap().permissions().mode() & 0o777,
            0o700
        );
    }

    #[test]
    fn a_file_is_no_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = make(file.path()).unwrap_err();
        assert!(error.to_string().contains("it is a file"), "{error}");
    }

    #[test]
    fn a_second_owner_is_told_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = own(dir.path()).unwrap();
        let Err(JournalError::Owned { owner, .. }) = own(dir.path()) else {
            panic!("two owners")
        };
        assert_eq!(owner, Some(std::process::id()));
        drop(first);
        own(dir.path()).unwrap();
    }
}
