//! Writes several files atomically: either all of them or none.
//!
//! Every text is written to a temporary file in its target's directory; when all are written they are
//! exchanged with their targets. A failure reverts the earlier exchanges. A target that was modified
//! after it was read is an error and is not changed. A killed process leaves complete files, old or new, and
//! temporary files, which the next run removes.

mod exchange;
mod stale;

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fingerprint::Fingerprint;
use super::inputs::reason;
use exchange::Exchanges;

/// A transaction of file writes.
#[derive(Default)]
pub(super) struct Transaction {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Temporary file and target.
    files: Vec<(PathBuf, PathBuf)>,
    /// Directories that were created for the targets, innermost last.
    directories: Vec<PathBuf>,
    /// Number of temporary names in use.
    names: usize,
    /// Contents of files when they were read, by canonical path.
    observed: HashMap<PathBuf, Fingerprint>,
    /// Directories without stale temporary files.
    swept: HashSet<PathBuf>,
    /// Whether the transaction was rolled back.
    closed: bool,
}

/// A file that is being written; removed unless it is kept.
pub(super) struct Pending<'a> {
    transaction: &'a Transaction,
    file: File,
    temporary: PathBuf,
    kept: bool,
}

/// Error of a commit; nothing has changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommitError {
    /// A target was modified after it was read.
    #[error("{}: the file was modified after it was read; nothing was written", .0.display())]
    Modified(PathBuf),
    /// A target could not be read or replaced.
    #[error("{}: {}", path.display(), reason(source))]
    Io {
        /// The target.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
}

impl Transaction {
    /// Records the contents of a file, given by its canonical path, when it was read.
    pub(super) fn observe(&self, path: &Path, fingerprint: Fingerprint) {
        self.lock().observed.insert(path.to_owned(), fingerprint);
    }

    /// Removes temporary files that killed processes left in `directory`.
    pub(super) fn remove_stale_files(&self, directory: &Path) {
        self.lock().sweep(directory);
    }

    /// Writes `text` for `target`.
    pub(super) fn write(&self, target: &Path, text: &[u8]) -> io::Result<()> {
        let mut pending = self.create(target)?;
        pending.write_all(text)?;
        pending.keep();
        Ok(())
    }

    /// Creates a file for `target`, with the mode and owner of an existing target.
    pub(super) fn create(&self, target: &Path) -> io::Result<Pending<'_>> {
        // A symbolic link is kept; its target is replaced.
        let followed = target
            .is_symlink()
            .then(|| fs::canonicalize(target))
            .transpose()?;
        let target = followed.as_deref().unwrap_or(target);
        let existing = existing(target)?;
        let directory = target
            .parent()
            .filter(|it| !it.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let temporary = self.enter(directory, target)?;
        let mut pending = Pending {
            transaction: self,
            file: new_file(&temporary)?,
            temporary,
            kept: false,
        };
        if let Some(data) = existing {
            adopt(&mut pending.file, &data)?;
        }
        Ok(pending)
    }

    /// Registers a temporary file before it is created, so that a signal removes it.
    fn enter(&self, directory: &Path, target: &Path) -> io::Result<PathBuf> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        inner.make_directory(directory)?;
        inner.sweep(directory);
        inner.names += 1;
        let temporary = directory.join(stale::temporary_name(inner.names));
        inner.files.push((temporary.clone(), target.to_owned()));
        Ok(temporary)
    }

    /// Replaces all targets; on failure nothing has changed.
    pub(super) fn commit(&self) -> Result<(), CommitError> {
        let mut inner = self.lock();
        let files = std::mem::take(&mut inner.files);
        let replaced = replace(&files, &inner.observed);
        match replaced {
            Ok(()) => inner.directories.clear(),
            Err(_) => inner.files = files,
        }
        replaced
    }

    /// Removes uncommitted files and rejects further writes.
    pub(super) fn roll_back(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        for (temporary, _) in inner.files.drain(..) {
            let _ = fs::remove_file(temporary);
        }
        for directory in inner.directories.drain(..).rev() {
            let _ = fs::remove_dir(directory);
        }
    }

    fn drop_file(&self, temporary: &Path) {
        self.lock().files.retain(|(other, _)| other != temporary);
        let _ = fs::remove_file(temporary);
    }

    /// Locks the list, which a panic cannot corrupt.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.roll_back();
    }
}

/// Replaces each target by its temporary file, after checking that no target was modified.
fn replace(
    files: &[(PathBuf, PathBuf)],
    observed: &HashMap<PathBuf, Fingerprint>,
) -> Result<(), CommitError> {
    let expected = |target: &Path| match fs::canonicalize(target) {
        Ok(real) => observed.get(&real).copied(),
        Err(_) => observed.get(target).copied(),
    };
    for (_, target) in files {
        check_unmodified(target, target, expected(target))?;
    }
    let mut exchanges = Exchanges::default();
    for (temporary, target) in files {
        let expected = expected(target);
        exchanges
            .exchange(temporary, target)
            .map_err(|source| CommitError::Io {
                path: target.clone(),
                source,
            })?;
        if let Some(old) = exchanges.last_old() {
            check_unmodified(old, target, expected)?;
        }
    }
    exchanges.keep();
    Ok(())
}

/// Checks that `file`, which contains the contents of `target`, was not modified after it was read.
fn check_unmodified(file: &Path, target: &Path, expected: Option<Fingerprint>) -> Result<(), CommitError> {
    let Some(expected) = expected else {
        return Ok(());
    };
    match Fingerprint::from_file(file) {
        Ok(found) if found == expected => Ok(()),
        Ok(_) => Err(CommitError::Modified(target.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(CommitError::Modified(target.to_owned()))
        }
        Err(source) => Err(CommitError::Io {
            path: target.to_owned(),
            source,
        }),
    }
}

impl Inner {
    /// Removes stale files, once per directory.
    fn sweep(&mut self, directory: &Path) {
        if self.swept.insert(directory.to_owned()) {
            stale::remove(directory);
        }
    }

    fn make_directory(&mut self, directory: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = directory
            .ancestors()
            .take_while(|it| !it.as_os_str().is_empty() && !it.exists())
            .collect();
        for directory in missing.into_iter().rev() {
            fs::create_dir(directory)?;
            self.directories.push(directory.to_owned());
        }
        Ok(())
    }
}

impl Pending<'_> {
    /// Adds the file to the transaction.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }
}

impl Write for Pending<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.transaction.drop_file(&self.temporary);
        }
    }
}

/// Returns the metadata of a target that may be replaced.
fn existing(target: &Path) -> io::Result<Option<fs::Metadata>> {
    let data = match fs::metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if data.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
    }
    if !data.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    // A rename would replace a read-only file; respect its permissions.
    if data.permissions().readonly() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the file is read-only",
        ));
    }
    Ok(Some(data))
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Copies mode and, if permitted, owner of the old file.
fn adopt(file: &mut File, data: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (data.uid(), data.gid()) {
            // Only root may change the owner; otherwise the user owns the new file.
            let _ = fchown(&*file, Some(data.uid()), Some(data.gid()));
        }
    }
    file.set_permissions(data.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_changes_before_the_commit() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (directory.path().join("a"), directory.path().join("new/b"));
        fs::write(&a, "old").unwrap();
        let transaction = Transaction::default();
        transaction.write(&a, b"new").unwrap();
        transaction.write(&b, b"new").unwrap();
        assert_eq!(fs::read(&a).unwrap(), b"old");
        transaction.commit().unwrap();
        assert_eq!(
            (fs::read(&a).unwrap(), fs::read(&b).unwrap()),
            (b"new".to_vec(), b"new".to_vec())
        );
        drop(transaction);
        assert_eq!(names(directory.path()), ["a", "new"]);
    }

    #[test]
    fn uncommitted_files_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let transaction = Transaction::default();
        transaction
            .write(&directory.path().join("x/y/z"), b"new")
            .unwrap();
        drop(transaction);
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn a_failed_rename_reverts_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("a"), "old").unwrap();
        let transaction = Transaction::default();
        transaction.write(&path("a"), b"new").unwrap();
        transaction.write(&path("b"), b"new").unwrap();
        transaction.write(&path("c"), b"new").unwrap();
        // A directory created in the meantime makes the rename fail.
        fs::create_dir_all(path("c/d")).unwrap();
        let error = transaction.commit().unwrap_err();
        assert!(error.to_string().ends_with("c: is a directory"), "{error}");
        drop(transaction);
        assert_eq!(fs::read(path("a")).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["a", "c"]);
    }

    /// Writes a new text for a file that was read as `read` and is now `now`.
    fn modified(read: &str, now: Option<&str>) -> (tempfile::TempDir, Result<(), CommitError>) {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let path = |name: &str| root.join(name);
        for name in ["a", "b"] {
            fs::write(path(name), read).unwrap();
        }
        let transaction = Transaction::default();
        for name in ["a", "b"] {
            transaction.observe(&path(name), Fingerprint::from_bytes(read.as_bytes()));
            transaction.write(&path(name), b"new").unwrap();
        }
        match now {
            Some(text) => fs::write(path("b"), text).unwrap(),
            None => fs::remove_file(path("b")).unwrap(),
        }
        let committed = transaction.commit();
        drop(transaction);
        (directory, committed)
    }

    #[test]
    fn a_file_modified_after_it_was_read_is_not_replaced() {
        let (directory, committed) = modified("old", Some("own"));
        let error = committed.unwrap_err().to_string();
        assert!(
            error.ends_with("/b: the file was modified after it was read; nothing was written"),
            "{error}"
        );
        assert_eq!(names(directory.path()), ["a", "b"]);
        assert_eq!(fs::read(directory.path().join("a")).unwrap(), b"old");
        assert_eq!(fs::read(directory.path().join("b")).unwrap(), b"own");
    }

    #[test]
    fn a_file_deleted_after_it_was_read_is_not_created() {
        let (directory, committed) = modified("old", None);
        assert!(
            matches!(committed, Err(CommitError::Modified(_))),
            "{committed:?}"
        );
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn a_file_written_again_with_the_same_contents_is_replaced() {
        let (directory, committed) = modified("old", Some("old"));
        committed.unwrap();
        assert_eq!(fs::read(directory.path().join("b")).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["a", "b"]);
    }

    #[test]
    fn stale_files_of_killed_processes_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        // No process has the ID 99999999, which is above the maximum of the kernel.
        let other = format!(".mainstay-{}-1.tmp", std::process::id());
        for name in [
            ".mainstay-99999999-1.tmp",
            ".mainstay-99999999-2.old",
            &other,
            ".mainstay-x.tmp",
        ] {
            fs::write(path(name), "left").unwrap();
        }
        let transaction = Transaction::default();
        transaction.remove_stale_files(directory.path());
        let mut kept = vec![other, ".mainstay-x.tmp".to_owned()];
        kept.sort();
        assert_eq!(names(directory.path()), kept);
    }

    #[test]
    fn a_read_only_file_is_respected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        let transaction = Transaction::default();
        assert_eq!(
            transaction.write(&path, b"new").unwrap_err().to_string(),
            "the file is read-only"
        );
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn the_mode_is_kept() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let transaction = Transaction::default();
        transaction.write(&path, b"new").unwrap();
        transaction.commit().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn nothing_is_written_after_an_interrupt() {
        let directory = tempfile::tempdir().unwrap();
        let transaction = Transaction::default();
        transaction.write(&directory.path().join("a"), b"new").unwrap();
        transaction.roll_back();
        assert!(transaction.write(&directory.path().join("b"), b"new").is_err());
        transaction.commit().unwrap();
        assert!(names(directory.path()).is_empty());
    }
}
