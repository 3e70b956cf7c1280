//! Writes several files atomically: either all of them or none.
//!
//! Every text is written to a temporary file in its target's directory; when all are written they are
//! renamed. A failed rename reverts the earlier ones. A killed process leaves complete files, old or new.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A transaction of file writes.
#[derive(Default)]
pub(super) struct Transaction {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Temporary file and target.
    files: Vec<(PathBuf, PathBuf)>,
    /// Created for the targets; innermost last.
    directories: Vec<PathBuf>,
    /// Number of temporary names in use.
    names: usize,
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

impl Transaction {
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
        inner.names += 1;
        let temporary = directory.join(format!(".mainstay-{}-{}.tmp", std::process::id(), inner.names));
        inner.files.push((temporary.clone(), target.to_owned()));
        Ok(temporary)
    }

    /// Renames all files to their targets; on failure nothing has changed.
    pub(super) fn commit(&self) -> io::Result<()> {
        let mut inner = self.lock();
        let files = std::mem::take(&mut inner.files);
        let mut undo = Undo::default();
        for (number, (temporary, target)) in files.iter().enumerate() {
            let done = undo
                .remember(target, files.len())
                .and_then(|()| fs::rename(temporary, target));
            if let Err(error) = done {
                undo.revert();
                let text = format!("{}: {}", target.display(), super::inputs::reason(&error));
                inner.files = files.into_iter().skip(number).collect();
                return Err(io::Error::new(error.kind(), text));
            }
            undo.done();
        }
        inner.directories.clear();
        undo.forget();
        Ok(())
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

impl Inner {
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

/// Reverts renames.
#[derive(Default)]
struct Undo {
    /// Backup of the old file, if there was one, and its path.
    done: Vec<(Option<PathBuf>, PathBuf)>,
    next: Option<(Option<PathBuf>, PathBuf)>,
}

impl Undo {
    /// Creates a backup of `target`. A single rename needs none.
    fn remember(&mut self, target: &Path, count: usize) -> io::Result<()> {
        let backup = target.with_file_name(format!(
            ".mainstay-{}-{}.old",
            std::process::id(),
            self.done.len()
        ));
        let kept = count > 1 && target.is_file();
        if kept {
            fs::hard_link(target, &backup).or_else(|_| fs::copy(target, &backup).map(drop))?;
        }
        self.next = Some((kept.then_some(backup), target.to_owned()));
        Ok(())
    }

    fn done(&mut self) {
        self.done.extend(self.next.take());
    }

    fn revert(&mut self) {
        if let Some((Some(backup), _)) = self.next.take() {
            let _ = fs::remove_file(backup);
        }
        for (backup, target) in self.done.drain(..).rev() {
            let _ = match backup {
                Some(backup) => fs::rename(backup, target),
                None => fs::remove_file(target),
            };
        }
    }

    fn forget(self) {
        for backup in self.done.into_iter().filter_map(|(backup, _)| backup) {
            let _ = fs::remove_file(backup);
        }
    }
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
