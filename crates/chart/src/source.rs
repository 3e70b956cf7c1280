//! The rim: the one file of this crate that touches the disk. Takes a path to a folder or an archive, gives its files to
//! the loader, with Helm's rules for links, ignored and irregular files.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::chart::File;
use crate::dialect::Dialect;
use crate::error::{ChartError, SourceError};
use crate::load::archive::{MAX_CHART, MAX_ENTRIES, MAX_FILE};
use crate::load::ignore::IgnoreRules;
use crate::load::{Loaded, load_archive, load_files};
use crate::warning::Warning;

/// How many links may lead from one place to the next.
const MAX_LINKS: usize = 255;
/// How deep folders may be.
const MAX_DEPTH: usize = 64;

/// Loads the chart at `path`: a folder, or an archive.
pub fn load_path(path: &Path, dialect: Dialect) -> Result<Loaded, ChartError> {
    let kind = fs::metadata(path).map_err(|source| failed("stat", path, source))?;
    if kind.is_dir() {
        load_folder(path, dialect)
    } else {
        load_file(path, dialect)
    }
}

fn load_file(path: &Path, dialect: Dialect) -> Result<Loaded, ChartError> {
    let bytes = read_capped(path, MAX_CHART, USUAL_SIZE)?;
    check_archive(path, &bytes)?;
    load_archive(&bytes, dialect).map_err(|error| match error {
        ChartError::Archive(source) => unreadable(path, dialect, source),
        other => other,
    })
}

fn unreadable(path: &Path, dialect: Dialect, source: crate::ArchiveError) -> ChartError {
    let name = path.display().to_string();
    match (source, dialect) {
        (crate::ArchiveError::NotGzip, _) => SourceError::NotAChart { name }.into(),
        (source, Dialect::Helm4) => SourceError::Archive { source }.into(),
        (source, Dialect::Helm3) => source.into(),
    }
}

/// Says what the file is if it is no archive.
fn check_archive(path: &Path, bytes: &[u8]) -> Result<(), ChartError> {
    if bytes.starts_with(b"\x1f\x8b\x08") {
        return Ok(());
    }
    let name = path.display().to_string();
    let yaml = [".yml", ".yaml"].iter().any(|ending| name.ends_with(ending));
    Err(if yaml {
        SourceError::YamlNotArchive { name }
    } else {
        SourceError::NotAnArchive {
            name,
            found: content_type(bytes),
        }
    }
    .into())
}

/// The few of Go's sniffed types that a mistaken argument is likely to have.
fn content_type(bytes: &[u8]) -> &'static str {
    let head = bytes.get(..512).unwrap_or(bytes);
    let text = |byte: &u8| !matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    match head {
        _ if head.starts_with(b"PK\x03\x04") => "application/zip",
        _ if head.starts_with(b"%PDF-") => "application/pdf",
        _ if head.starts_with(b"\x89PNG\x0d\x0a\x1a\x0a") => "image/png",
        // Helm pads what it read with zeros, so that a short text looks binary to it.
        _ if head.len() == 512 && head.iter().all(text) => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn load_folder(path: &Path, dialect: Dialect) -> Result<Loaded, ChartError> {
    let top = std::path::absolute(path).map_err(|source| failed("abs", path, source))?;
    if dialect == Dialect::Helm4 {
        detect(&top)?;
    }
    let mut walk = Walk {
        top: top.clone(),
        rules: ignore_rules(&top)?,
        ..Walk::default()
    };
    walk.folder(&top, "", 0)?;
    let mut loaded = load_files(walk.files, dialect)?;
    walk.warnings.append(&mut loaded.warnings);
    loaded.warnings = walk.warnings;
    Ok(loaded)
}

/// Helm 4 opens `Chart.yaml` before it looks at anything else.
fn detect(top: &Path) -> Result<(), ChartError> {
    let name = top.join("Chart.yaml");
    fs::metadata(&name).map(drop).map_err(|source| {
        let chart = name.display().to_string();
        SourceError::NoChart {
            chart,
            source: Box::new(failed("open", &name, source)),
        }
        .into()
    })
}

fn ignore_rules(top: &Path) -> Result<IgnoreRules, ChartError> {
    let name = top.join(".helmignore");
    let text = if fs::metadata(&name).is_ok() {
        read_capped(&name, MAX_FILE, USUAL_SIZE)?
    } else {
        Vec::new()
    };
    IgnoreRules::parse(&text).map_err(|error| SourceError::Ignore(error).into())
}

#[derive(Default)]
struct Walk {
    top: PathBuf,
    rules: IgnoreRules,
    files: Vec<File>,
    bytes: u64,
    entries: usize,
    /// The real folders we are inside of: a link back to one of them would never end.
    inside: BTreeSet<PathBuf>,
    warnings: Vec<Warning>,
}

impl Walk {
    /// Everything in `folder`, in the order of names, links followed.
    fn folder(&mut self, folder: &Path, inside: &str, depth: usize) -> Result<(), ChartError> {
        let real = fs::canonicalize(folder).map_err(|source| failed("open", folder, source))?;
        if depth > MAX_DEPTH || !self.inside.insert(real.clone()) {
            return Err(SourceError::Endless {
                path: folder.display().to_string(),
            }
            .into());
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(|source| failed("open", folder, source))? {
            let entry = entry.map_err(|source| failed("readdirent", folder, source))?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(crate::ArchiveError::TooManyEntries(MAX_ENTRIES).into());
            }
            names.push(
                entry
                    .file_name()
                    .into_string()
                    .map_err(|name| SourceError::NameNotText {
                        path: folder.join(name).display().to_string(),
                    })?,
            );
        }
        names.sort_unstable();
        for name in names {
            let path = folder.join(&name);
            let inside = if inside.is_empty() {
                name
            } else {
                format!("{inside}/{name}")
            };
            self.entry(&path, inside, depth)?;
        }
        self.inside.remove(&real);
        Ok(())
    }

    fn entry(&mut self, path: &Path, inside: String, depth: usize) -> Result<(), ChartError> {
        let mut kind = fs::symlink_metadata(path).map_err(|source| failed("lstat", path, source))?;
        if kind.is_symlink() {
            kind = self.follow(path)?;
        }
        if self.rules.ignores(&inside, kind.is_dir()) {
            return Ok(());
        }
        if kind.is_dir() {
            return self.folder(path, &inside, depth + 1);
        }
        self.file(path, inside, &kind)
    }

    fn follow(&mut self, path: &Path) -> Result<Metadata, ChartError> {
        let resolved = fs::canonicalize(path).map_err(|reason| {
            let target = fs::read_link(path).unwrap_or_default();
            let target = path.parent().unwrap_or(path).join(target).display().to_string();
            let path = path.display().to_string();
            SourceError::Link { path, target, reason }
        })?;
        if self.warnings.len() > MAX_LINKS {
            return Err(SourceError::Endless {
                path: path.display().to_string(),
            }
            .into());
        }
        self.warnings.push(Warning::SymbolicLink {
            path: path.display().to_string(),
            resolved: resolved.display().to_string(),
        });
        fs::symlink_metadata(&resolved).map_err(|source| failed("lstat", &resolved, source))
    }

    fn file(&mut self, path: &Path, inside: String, kind: &Metadata) -> Result<(), ChartError> {
        if !kind.is_file() {
            return Err(SourceError::Irregular {
                path: path.display().to_string(),
            }
            .into());
        }
        if kind.len() > MAX_FILE {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            return Err(SourceError::TooLarge {
                name,
                limit: MAX_FILE,
            }
            .into());
        }
        let data = read_capped(path, MAX_FILE, kind.len())?;
        self.bytes += data.len() as u64;
        if self.bytes > MAX_CHART {
            let path = self.top.display().to_string();
            return Err(SourceError::FolderTooLarge {
                path,
                limit: MAX_CHART,
            }
            .into());
        }
        self.files.push(File::new(inside, &data));
        Ok(())
    }
}

/// The file, or an error if it has grown past `limit` since anyone looked.
/// A guess where nobody asked how long a file is.
const USUAL_SIZE: u64 = 16 << 10;

/// Reads a file of about `expected` bytes. With room for them and one more it takes two calls to the system: the file, and its
/// end.
fn read_capped(path: &Path, limit: u64, expected: u64) -> Result<Vec<u8>, ChartError> {
    use io::Read;
    let mut data = Vec::with_capacity(expected.min(limit) as usize + 1);
    let file = fs::File::open(path).map_err(|source| failed("open", path, source))?;
    file.take(limit + 1)
        .read_to_end(&mut data)
        .map_err(|source| failed("read", path, source))?;
    if data.len() as u64 > limit {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        return Err(SourceError::TooLarge { name, limit }.into());
    }
    Ok(data)
}

fn failed(what: &'static str, path: &Path, reason: io::Error) -> ChartError {
    SourceError::Io {
        what,
        path: path.display().to_string(),
        reason,
    }
    .into()
}
