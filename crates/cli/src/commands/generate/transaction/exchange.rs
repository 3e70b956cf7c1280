//! Replaces files so that the old ones can be checked and restored.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::stale;

/// Replaced files; restored on drop unless they are kept.
#[derive(Default)]
pub(super) struct Exchanges {
    done: Vec<Exchange>,
}

struct Exchange {
    /// Temporary path of the new file. Contains the old file if both were swapped.
    temporary: PathBuf,
    target: PathBuf,
    old: Old,
}

/// Location of the replaced file.
enum Old {
    /// No file was replaced.
    None,
    /// The temporary path of the new file.
    Swapped,
    /// This backup path.
    Linked(PathBuf),
}

impl Exchanges {
    /// Replaces `target` by `temporary`.
    pub(super) fn exchange(&mut self, temporary: &Path, target: &Path) -> io::Result<()> {
        if target.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
        }
        let old = match swap(temporary, target) {
            Ok(()) => Old::Swapped,
            Err(_) => self.rename(temporary, target)?,
        };
        self.done.push(Exchange {
            temporary: temporary.to_owned(),
            target: target.to_owned(),
            old,
        });
        Ok(())
    }

    /// Replaces `target` on file systems that cannot swap two files.
    fn rename(&self, temporary: &Path, target: &Path) -> io::Result<Old> {
        if !target.is_file() {
            return fs::rename(temporary, target).map(|()| Old::None);
        }
        let backup = target.with_file_name(stale::backup_name(self.done.len()));
        fs::hard_link(target, &backup).or_else(|_| fs::copy(target, &backup).map(drop))?;
        fs::rename(temporary, target).inspect_err(|_| drop(fs::remove_file(&backup)))?;
        Ok(Old::Linked(backup))
    }

    /// Returns the path of the file that was replaced last.
    pub(super) fn last_old(&self) -> Option<&Path> {
        self.done.last()?.old_path()
    }

    /// Keeps the new files and removes the old ones.
    pub(super) fn keep(mut self) {
        for exchange in self.done.drain(..) {
            if let Some(old) = exchange.old_path() {
                let _ = fs::remove_file(old);
            }
        }
    }
}

impl Drop for Exchanges {
    fn drop(&mut self) {
        for exchange in self.done.drain(..).rev() {
            exchange.revert();
        }
    }
}

impl Exchange {
    fn old_path(&self) -> Option<&Path> {
        match &self.old {
            Old::None => None,
            Old::Swapped => Some(&self.temporary),
            Old::Linked(backup) => Some(backup),
        }
    }

    fn revert(&self) {
        let _ = match &self.old {
            Old::None => fs::remove_file(&self.target),
            Old::Swapped => fs::rename(&self.temporary, &self.target),
            Old::Linked(backup) => fs::rename(backup, &self.target),
        };
    }
}

/// Swaps two files, so that a target that another program has just replaced is not lost.
#[cfg(target_os = "linux")]
fn swap(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn swap(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(exchange: impl Fn(&mut Exchanges, &Path, &Path)) {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let count = || fs::read_dir(directory.path()).unwrap().count();
        for keep in [false, true] {
            fs::write(path("new"), "new").unwrap();
            fs::write(path("a"), "old").unwrap();
            let mut exchanges = Exchanges::default();
            exchange(&mut exchanges, &path("new"), &path("a"));
            assert_eq!(fs::read(path("a")).unwrap(), b"new");
            assert_eq!(fs::read(exchanges.last_old().unwrap()).unwrap(), b"old");
            if keep {
                exchanges.keep();
            } else {
                drop(exchanges);
            }
            let expected: &[u8] = if keep { b"new" } else { b"old" };
            assert_eq!(fs::read(path("a")).unwrap(), expected);
            assert_eq!(count(), 1);
        }
    }

    #[test]
    fn exchanged_files_are_kept_or_restored() {
        check(|exchanges, new, target| exchanges.exchange(new, target).unwrap());
    }

    #[test]
    fn renamed_files_are_kept_or_restored() {
        check(|exchanges, new, target| {
            let old = exchanges.rename(new, target).unwrap();
            exchanges.done.push(Exchange {
                temporary: new.to_owned(),
                target: target.to_owned(),
                old,
            });
        });
    }
}
