//! Writes the flavours of a version to a catalog on disk, atomically.
#![allow(clippy::disallowed_methods, reason = "I/O module: writes directories")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::derive::Files;
use crate::error::CatalogError;
use crate::flavour::Flavour;
use crate::version::Version;

/// A text file stored next to the flavours of a version, for example its provenance.
#[derive(Clone, Copy, Debug)]
pub struct Note<'a> {
    /// File name.
    pub name: &'a str,
    /// File content.
    pub text: &'a str,
}

/// Writes `flavours` and `note` to the directory of `version` below `catalog`, replacing its previous
/// content.
///
/// All files are written to a temporary directory that is then renamed, so that a reader sees either the
/// old version or the new one.
pub fn write_version(
    catalog: &Path,
    version: &Version,
    flavours: &[(Flavour, Files)],
    note: Note<'_>,
) -> Result<PathBuf, CatalogError> {
    let target = catalog.join(version.to_string());
    let staged = catalog.join(format!(".new-{version}-{}", std::process::id()));
    let result = write_all(&staged, flavours, note).and_then(|()| replace_directory(&staged, &target));
    if result.is_err() {
        // Reports the write error instead of an error of the clean-up.
        let _ = remove_directory(&staged);
    }
    result.map(|()| target)
}

fn write_all(top: &Path, flavours: &[(Flavour, Files)], note: Note<'_>) -> Result<(), CatalogError> {
    remove_directory(top)?;
    create_directory(top)?;
    for (flavour, files) in flavours {
        for (path, bytes) in files {
            write_file(&top.join(flavour.name()), path, bytes)?;
        }
    }
    write_file(top, note.name, note.text.as_bytes())
}

fn write_file(top: &Path, path: &str, bytes: &[u8]) -> Result<(), CatalogError> {
    let target = top.join(path);
    if !path.split('/').all(is_plain) {
        return Err(CatalogError::Rejected {
            path: target,
            reason: "the path is not a plain relative path",
        });
    }
    if let Some(directory) = target.parent() {
        create_directory(directory)?;
    }
    fs::write(&target, bytes).map_err(|source| write_error(&target, source))
}

/// Whether `part` is a plain file name on all operating systems.
fn is_plain(part: &str) -> bool {
    !matches!(part, "" | "." | "..") && !part.contains(['\\', ':', '\0'])
}

/// Replaces `target` with `staged`. The old directory is renamed first, and restored on failure.
fn replace_directory(staged: &Path, target: &Path) -> Result<(), CatalogError> {
    let aside = staged.with_extension("old");
    let replaces = match fs::rename(target, &aside) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(source) => return Err(write_error(target, source)),
    };
    if let Err(source) = fs::rename(staged, target) {
        if replaces && fs::rename(&aside, target).is_err() {
            return Err(CatalogError::NotRestored {
                path: target.to_owned(),
                aside,
                source,
            });
        }
        return Err(write_error(target, source));
    }
    if replaces {
        remove_directory(&aside)
    } else {
        Ok(())
    }
}

fn create_directory(directory: &Path) -> Result<(), CatalogError> {
    fs::create_dir_all(directory).map_err(|source| write_error(directory, source))
}

fn remove_directory(directory: &Path) -> Result<(), CatalogError> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(|source| write_error(directory, source)),
    }
}

fn write_error(path: &Path, source: io::Error) -> CatalogError {
    CatalogError::Write {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("mainstay-store-{name}-{}", std::process::id()));
        remove_directory(&path).unwrap();
        create_directory(&path).unwrap();
        path
    }

    fn write(top: &Path, files: &[&str]) -> Result<PathBuf, CatalogError> {
        let files = files
            .iter()
            .map(|path| ((*path).to_owned(), b"x".to_vec()))
            .collect();
        write_version(
            top,
            &"1.2.3".parse().unwrap(),
            &[(Flavour::Installer, files)],
            Note {
                name: "note",
                text: "n",
            },
        )
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_version_is_replaced_completely() {
        let top = directory("whole");
        write(&top, &["charts/a/old"]).unwrap();
        let target = write(&top, &["charts/a/new"]).unwrap();
        assert_eq!(names(&top), ["1.2.3"]);
        assert_eq!(names(&target), ["installer", "note"]);
        assert_eq!(names(&target.join("installer/charts/a")), ["new"]);
        remove_directory(&top).unwrap();
    }

    #[test]
    fn a_failure_keeps_the_previous_version() {
        let top = directory("failure");
        write(&top, &["charts/a/old"]).unwrap();
        for bad in [
            &["a", "a/b"][..],
            &["../../x"],
            &["a/../../x"],
            &["a//b"],
            &["/x"],
            &["c:/x"],
            &["a\\..\\x"],
        ] {
            assert!(write(&top, bad).is_err(), "{bad:?}");
            assert_eq!(names(&top), ["1.2.3"]);
            assert_eq!(names(&top.join("1.2.3/installer/charts/a")), ["old"]);
        }
        remove_directory(&top).unwrap();
    }
}
