//! Writing to a catalogue on disk: takes the flavours of a version, puts them in its folder, all of them or none.
#![allow(
    clippy::disallowed_methods,
    reason = "the rim of this crate: it is here that folders are read and written"
)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::derive::Files;
use crate::error::CatalogError;
use crate::flavour::Flavour;
use crate::version::Version;

/// Puts `flavours` and a `note` (its name and text) into the folder of `version` below `catalogue`, replacing what was there.
///
/// Everything is written beside its place first and renamed at the end, so a reader sees the old version or the new one.
pub fn put_version(
    catalogue: &Path,
    version: &Version,
    flavours: &[(Flavour, Files)],
    note: (&str, &str),
) -> Result<PathBuf, CatalogError> {
    let target = catalogue.join(version.to_string());
    let fresh = catalogue.join(format!(".new-{version}-{}", std::process::id()));
    let done = write_all(&fresh, flavours, note).and_then(|()| exchange(&fresh, &target));
    if done.is_err() {
        // The first error is the one to tell.
        let _ = remove(&fresh);
    }
    done.map(|()| target)
}

fn write_all(top: &Path, flavours: &[(Flavour, Files)], note: (&str, &str)) -> Result<(), CatalogError> {
    remove(top)?;
    create(top)?;
    for (flavour, files) in flavours {
        for (path, bytes) in files {
            write_file(&top.join(flavour.name()), path, bytes)?;
        }
    }
    write_file(top, note.0, note.1.as_bytes())
}

fn write_file(top: &Path, path: &str, bytes: &[u8]) -> Result<(), CatalogError> {
    let target = top.join(path);
    if !path.split('/').all(is_plain) {
        return Err(CatalogError::Refused {
            path: target,
            reason: "its name would lead out of its folder",
        });
    }
    if let Some(folder) = target.parent() {
        create(folder)?;
    }
    fs::write(&target, bytes).map_err(|source| write_error(&target, source))
}

/// A name that is a name on every system, and nothing else.
fn is_plain(part: &str) -> bool {
    !matches!(part, "" | "." | "..") && !part.contains(['\\', ':', '\0'])
}

/// The old folder goes aside before the new one takes its place, and comes back if that fails.
fn exchange(fresh: &Path, target: &Path) -> Result<(), CatalogError> {
    let aside = fresh.with_extension("old");
    let had = match fs::rename(target, &aside) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(source) => return Err(write_error(target, source)),
    };
    if let Err(source) = fs::rename(fresh, target) {
        if had {
            let _ = fs::rename(&aside, target);
        }
        return Err(write_error(target, source));
    }
    if had { remove(&aside) } else { Ok(()) }
}

fn create(folder: &Path) -> Result<(), CatalogError> {
    fs::create_dir_all(folder).map_err(|source| write_error(folder, source))
}

fn remove(folder: &Path) -> Result<(), CatalogError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(|source| write_error(folder, source)),
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

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("mainstay-store-{name}-{}", std::process::id()));
        remove(&path).unwrap();
        create(&path).unwrap();
        path
    }

    fn put(top: &Path, files: &[&str]) -> Result<PathBuf, CatalogError> {
        let files = files
            .iter()
            .map(|path| ((*path).to_owned(), b"x".to_vec()))
            .collect();
        put_version(
            top,
            &"1.2.3".parse().unwrap(),
            &[(Flavour::Installer, files)],
            ("note", "n"),
        )
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_version_is_replaced_whole() {
        let top = folder("whole");
        put(&top, &["charts/a/old"]).unwrap();
        let target = put(&top, &["charts/a/new"]).unwrap();
        assert_eq!(names(&top), ["1.2.3"]);
        assert_eq!(names(&target), ["installer", "note"]);
        assert_eq!(names(&target.join("installer/charts/a")), ["new"]);
        remove(&top).unwrap();
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let top = folder("failure");
        put(&top, &["charts/a/old"]).unwrap();
        for bad in [
            &["a", "a/b"][..],
            &["../../x"],
            &["a/../../x"],
            &["a//b"],
            &["/x"],
            &["c:/x"],
            &["a\\..\\x"],
        ] {
            assert!(put(&top, bad).is_err(), "{bad:?}");
            assert_eq!(names(&top), ["1.2.3"]);
            assert_eq!(names(&top.join("1.2.3/installer/charts/a")), ["old"]);
        }
        remove(&top).unwrap();
    }
}
