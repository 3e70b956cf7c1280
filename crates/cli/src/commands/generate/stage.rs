//! Files written all together or not at all: takes texts for paths, keeps them beside their targets until all are there.
//!
//! Every text first goes to a new file in its target's folder; only when all are written are they renamed. A rename that fails
//! takes back those before it. Whoever is killed in between leaves whole files, old or new, never a part of one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files on their way.
#[derive(Default)]
pub(super) struct Stage {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Temporary file and target.
    files: Vec<(PathBuf, PathBuf)>,
    /// Made for the targets; innermost last.
    folders: Vec<PathBuf>,
    /// How many temporary names were given out.
    names: usize,
    /// Nothing more may be written: the user gave up.
    closed: bool,
}

/// A file that is being written; gone again unless it is kept.
pub(super) struct Pending<'a> {
    stage: &'a Stage,
    file: File,
    temporary: PathBuf,
    kept: bool,
}

impl Stage {
    /// Writes `text` for `target`.
    pub(super) fn write(&self, target: &Path, text: &[u8]) -> io::Result<()> {
        let mut pending = self.create(target)?;
        pending.write_all(text)?;
        pending.keep();
        Ok(())
    }

    /// Begins a file for `target`, with the target's mode and owner if it is there.
    pub(super) fn create(&self, target: &Path) -> io::Result<Pending<'_>> {
        // A link stays a link: what it leads to is replaced.
        let followed = target
            .is_symlink()
            .then(|| fs::canonicalize(target))
            .transpose()?;
        let target = followed.as_deref().unwrap_or(target);
        let existing = existing(target)?;
        let folder = target
            .parent()
            .filter(|it| !it.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let temporary = self.enter(folder, target)?;
        let mut pending = Pending {
            stage: self,
            file: new_file(&temporary)?,
            temporary,
            kept: false,
        };
        if let Some(data) = existing {
            adopt(&mut pending.file, &data)?;
        }
        Ok(pending)
    }

    /// Registers a temporary file before it is made, so that an interrupt knows of it.
    fn enter(&self, folder: &Path, target: &Path) -> io::Result<PathBuf> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        inner.make_folder(folder)?;
        inner.names += 1;
        let temporary = folder.join(format!(".mainstay-{}-{}.tmp", std::process::id(), inner.names));
        inner.files.push((temporary.clone(), target.to_owned()));
        Ok(temporary)
    }

    /// Renames everything to its target; on a failure nothing has changed.
    pub(super) fn commit(&self) -> io::Result<()> {
        let mut inner = self.lock();
        let files = std::mem::take(&mut inner.files);
        let mut undo = Undo::default();
        for (number, (temporary, target)) in files.iter().enumerate() {
            let done = undo
                .remember(target, files.len())
                .and_then(|()| fs::rename(temporary, target));
            if let Err(error) = done {
                undo.take_back();
                let text = format!("{}: {}", target.display(), super::inputs::reason(&error));
                inner.files = files.into_iter().skip(number).collect();
                return Err(io::Error::new(error.kind(), text));
            }
            undo.done();
        }
        inner.folders.clear();
        undo.forget();
        Ok(())
    }

    /// Removes whatever is not committed, and lets nothing more in.
    pub(super) fn abandon(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        for (temporary, _) in inner.files.drain(..) {
            let _ = fs::remove_file(temporary);
        }
        for folder in inner.folders.drain(..).rev() {
            let _ = fs::remove_dir(folder);
        }
    }

    fn drop_file(&self, temporary: &Path) {
        self.lock().files.retain(|(other, _)| other != temporary);
        let _ = fs::remove_file(temporary);
    }

    /// A thread that panicked leaves the list as good as it was.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Inner {
    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = folder
            .ancestors()
            .take_while(|it| !it.as_os_str().is_empty() && !it.exists())
            .collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder)?;
            self.folders.push(folder.to_owned());
        }
        Ok(())
    }
}

impl Pending<'_> {
    /// Makes it part of the whole.
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
            self.stage.drop_file(&self.temporary);
        }
    }
}

/// What is at `target`, if it may be replaced.
fn existing(target: &Path) -> io::Result<Option<fs::Metadata>> {
    let data = match fs::metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if data.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    if !data.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    // A rename needs no right to write the file itself; whoever took that right away meant something by it.
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

/// Gives a new file the mode and, where that is allowed, the owner of the old one.
fn adopt(file: &mut File, data: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (data.uid(), data.gid()) {
            // Only root may give files away; the others own what they write, as with any editor.
            let _ = fchown(&*file, Some(data.uid()), Some(data.gid()));
        }
    }
    file.set_permissions(data.permissions())
}

/// How to take back renames.
#[derive(Default)]
struct Undo {
    /// The old file under another name, and its place; no other name if there was no old file.
    done: Vec<(Option<PathBuf>, PathBuf)>,
    next: Option<(Option<PathBuf>, PathBuf)>,
}

impl Undo {
    /// Keeps the file at `target` under a second name. A single rename needs no way back.
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

    fn take_back(&mut self) {
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

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_changes_before_the_commit() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("new/b"));
        fs::write(&a, "old").unwrap();
        let stage = Stage::default();
        stage.write(&a, b"new").unwrap();
        stage.write(&b, b"new").unwrap();
        assert_eq!(fs::read(&a).unwrap(), b"old");
        stage.commit().unwrap();
        assert_eq!(
            (fs::read(&a).unwrap(), fs::read(&b).unwrap()),
            (b"new".to_vec(), b"new".to_vec())
        );
        drop(stage);
        assert_eq!(names(folder.path()), ["a", "new"]);
    }

    #[test]
    fn what_is_not_committed_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage::default();
        stage.write(&folder.path().join("x/y/z"), b"new").unwrap();
        drop(stage);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_rename_that_fails_takes_back_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), "old").unwrap();
        let stage = Stage::default();
        stage.write(&path("a"), b"new").unwrap();
        stage.write(&path("b"), b"new").unwrap();
        stage.write(&path("c"), b"new").unwrap();
        // A folder that somebody makes in the meantime stands in the way.
        fs::create_dir_all(path("c/d")).unwrap();
        let error = stage.commit().unwrap_err();
        assert!(error.to_string().ends_with("c: is a directory"), "{error}");
        drop(stage);
        assert_eq!(fs::read(path("a")).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a", "c"]);
    }

    #[test]
    fn a_read_only_file_is_respected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        let stage = Stage::default();
        assert_eq!(
            stage.write(&path, b"new").unwrap_err().to_string(),
            "the file is read-only"
        );
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn the_mode_is_kept() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let stage = Stage::default();
        stage.write(&path, b"new").unwrap();
        stage.commit().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn after_an_interrupt_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage::default();
        stage.write(&folder.path().join("a"), b"new").unwrap();
        stage.abandon();
        assert!(stage.write(&folder.path().join("b"), b"new").is_err());
        stage.commit().unwrap();
        assert!(names(folder.path()).is_empty());
    }
}
