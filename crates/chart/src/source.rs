//! Reading of a chart from a directory or an archive file, with Helm's rules for links, ignored files and
//! irregular files. This is the only file of the crate that accesses the disk.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::chart::File;
use crate::dialect::Dialect;
use crate::error::{ArchiveError, ChartError, SourceError};
use crate::load::archive::{MAX_CHART, MAX_ENTRIES, MAX_FILE};
use crate::load::ignore::IgnoreRules;
use crate::load::{Loaded, load_archive, load_files};
use crate::warning::Warning;

/// Maximum number of symbolic links followed in one chart.
const MAX_LINKS: usize = 255;
/// Maximum nesting of directories.
const MAX_DEPTH: usize = 64;
/// Initial buffer size in bytes for files with an unknown length.
const DEFAULT_BUFFER_SIZE: u64 = 16 << 10;

/// Loads the chart at `path`, a directory or an archive.
pub fn load_path(path: &Path, dialect: Dialect) -> Result<Loaded, ChartError> {
    let kind = fs::metadata(path).map_err(|source| io_error("stat", path, source))?;
    let loader = PathLoader { path, dialect };
    if kind.is_dir() {
        loader.load_directory()
    } else {
        loader.load_file()
    }
}

/// Loader for one path.
struct PathLoader<'a> {
    path: &'a Path,
    dialect: Dialect,
}

impl PathLoader<'_> {
    fn load_file(&self) -> Result<Loaded, ChartError> {
        let bytes = read_capped(self.path, MAX_CHART, DEFAULT_BUFFER_SIZE)?;
        check_archive(self.path, &bytes)?;
        load_archive(&bytes, self.dialect).map_err(|error| match error {
            ChartError::Archive(ArchiveError::NotGzip) => SourceError::NotAChart {
                name: self.path.display().to_string(),
            }
            .into(),
            ChartError::Archive(source) => self.dialect.archive_error(source),
            other => other,
        })
    }

    fn load_directory(&self) -> Result<Loaded, ChartError> {
        let top = std::path::absolute(self.path).map_err(|source| io_error("abs", self.path, source))?;
        if self.dialect.opens_chart_yaml_first() {
            check_chart_yaml(&top)?;
        }
        let mut walk = Walk {
            top: top.clone(),
            rules: ignore_rules(&top)?,
            ..Walk::default()
        };
        walk.add_directory(&top, "", 0)?;
        let mut loaded = load_files(walk.files, self.dialect)?;
        walk.warnings.append(&mut loaded.warnings);
        loaded.warnings = walk.warnings;
        Ok(loaded)
    }
}

/// Checks that `bytes` is an archive. Otherwise, the error contains a guess of the file type.
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

/// Guesses the content type as Go does. Limited to types that a wrong argument is likely to have.
fn content_type(bytes: &[u8]) -> &'static str {
    let head = bytes.get(..512).unwrap_or(bytes);
    let text = |byte: &u8| !matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    match head {
        _ if head.starts_with(b"PK\x03\x04") => "application/zip",
        _ if head.starts_with(b"%PDF-") => "application/pdf",
        _ if head.starts_with(b"\x89PNG\x0d\x0a\x1a\x0a") => "image/png",
        // Helm pads its buffer with zeros, so that a short text is detected as binary data.
        _ if head.len() == 512 && head.iter().all(text) => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn check_chart_yaml(top: &Path) -> Result<(), ChartError> {
    let name = top.join("Chart.yaml");
    fs::metadata(&name).map(drop).map_err(|source| {
        let chart = name.display().to_string();
        SourceError::NoChart {
            chart,
            source: Box::new(io_error("open", &name, source)),
        }
        .into()
    })
}

fn ignore_rules(top: &Path) -> Result<IgnoreRules, ChartError> {
    let name = top.join(".helmignore");
    let text = if fs::metadata(&name).is_ok() {
        read_capped(&name, MAX_FILE, DEFAULT_BUFFER_SIZE)?
    } else {
        Vec::new()
    };
    IgnoreRules::parse(&text).map_err(|error| SourceError::Ignore(error).into())
}

/// Recursive traversal of a chart directory.
#[derive(Default)]
struct Walk {
    top: PathBuf,
    rules: IgnoreRules,
    files: Vec<File>,
    bytes: u64,
    entries: usize,
    /// Real paths of the current directory and its parents. Used to detect links that lead back to one of
    /// them.
    open_directories: BTreeSet<PathBuf>,
    warnings: Vec<Warning>,
}

impl Walk {
    /// Collects the files in `directory` in the order of their names. Links are followed.
    fn add_directory(&mut self, directory: &Path, inside: &str, depth: usize) -> Result<(), ChartError> {
        let real = fs::canonicalize(directory).map_err(|source| io_error("open", directory, source))?;
        if depth > MAX_DEPTH || !self.open_directories.insert(real.clone()) {
            return Err(SourceError::Endless {
                path: directory.display().to_string(),
            }
            .into());
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).map_err(|source| io_error("open", directory, source))? {
            let entry = entry.map_err(|source| io_error("readdirent", directory, source))?;
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return Err(ArchiveError::TooManyEntries(MAX_ENTRIES).into());
            }
            names.push(
                entry
                    .file_name()
                    .into_string()
                    .map_err(|name| SourceError::NameNotText {
                        path: directory.join(name).display().to_string(),
                    })?,
            );
        }
        names.sort_unstable();
        for name in names {
            let path = directory.join(&name);
            let inside = if inside.is_empty() {
                name
            } else {
                format!("{inside}/{name}")
            };
            self.add_entry(&path, inside, depth)?;
        }
        self.open_directories.remove(&real);
        Ok(())
    }

    fn add_entry(&mut self, path: &Path, inside: String, depth: usize) -> Result<(), ChartError> {
        let mut kind = fs::symlink_metadata(path).map_err(|source| io_error("lstat", path, source))?;
        if kind.is_symlink() {
            kind = self.follow_link(path)?;
        }
        if self.rules.ignores(&inside, kind.is_dir()) {
            return Ok(());
        }
        if kind.is_dir() {
            return self.add_directory(path, &inside, depth + 1);
        }
        self.add_file(path, inside, &kind)
    }

    fn follow_link(&mut self, path: &Path) -> Result<Metadata, ChartError> {
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
        fs::symlink_metadata(&resolved).map_err(|source| io_error("lstat", &resolved, source))
    }

    fn add_file(&mut self, path: &Path, inside: String, kind: &Metadata) -> Result<(), ChartError> {
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
            return Err(SourceError::DirectoryTooLarge {
                path,
                limit: MAX_CHART,
            }
            .into());
        }
        self.files.push(File::new(inside, &data));
        Ok(())
    }
}

/// Reads a file of about `expected` bytes. Fails if it is larger than `limit`. The buffer has space for one
/// more byte, so that two system calls are sufficient: one for the content and one to detect the end.
fn read_capped(path: &Path, limit: u64, expected: u64) -> Result<Vec<u8>, ChartError> {
    use io::Read;
    let mut data = Vec::with_capacity(expected.min(limit) as usize + 1);
    let file = fs::File::open(path).map_err(|source| io_error("open", path, source))?;
    file.take(limit + 1)
        .read_to_end(&mut data)
        .map_err(|source| io_error("read", path, source))?;
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

fn io_error(what: &'static str, path: &Path, reason: io::Error) -> ChartError {
    SourceError::Io {
        what,
        path: path.display().to_string(),
        reason,
    }
    .into()
}
