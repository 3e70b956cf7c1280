//! Finds the inputs: each file once, in a stable order.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::Head;
use super::glob;
use crate::error::{CliError, Kind};

/// An input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    /// Name as given by the user.
    pub(super) name: String,
    /// Source of the text.
    pub(super) source: Source,
}

/// Source of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Standard input with its beginning.
    Stdin(Arc<Head>),
    /// A file.
    File {
        /// Path as given, or below a given directory.
        path: PathBuf,
        /// Canonical path, which an edit replaces.
        real: PathBuf,
        /// Path in a mirrored directory.
        mirrored: PathBuf,
    },
}

/// File extensions searched in directories.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Returns every input of `paths` once.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<Input>, CliError> {
    let mut found = Found::default();
    for path in paths {
        found.add(path)?;
    }
    if found.inputs.is_empty() {
        return Err(CliError::new(Kind::Usage, "no .yaml, .yml or .json files found"));
    }
    Ok(found.inputs)
}

#[derive(Default)]
struct Found {
    inputs: Vec<Input>,
    seen: HashSet<PathBuf>,
}

impl Found {
    fn add(&mut self, path: &Path) -> Result<(), CliError> {
        if path == Path::new("-") {
            return self.add_stdin();
        }
        match fs::metadata(path) {
            Ok(data) if data.is_dir() => self.add_directory(path),
            Ok(_) => self.add_file(path, Path::new(path.file_name().unwrap_or(path.as_os_str()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound && glob::is_pattern(path) => {
                self.add_pattern(path)
            }
            Err(error) => Err(failed(path, &error)),
        }
    }

    fn add_stdin(&mut self) -> Result<(), CliError> {
        if self
            .inputs
            .iter()
            .all(|input| !matches!(input.source, Source::Stdin(_)))
        {
            let head = Head::read().map_err(|error| failed(Path::new("-"), &error))?;
            self.inputs.push(Input {
                name: "-".to_owned(),
                source: Source::Stdin(Arc::new(head)),
            });
        }
        Ok(())
    }

    fn add_file(&mut self, path: &Path, mirrored: &Path) -> Result<(), CliError> {
        let real = fs::canonicalize(path).map_err(|error| failed(path, &error))?;
        if self.seen.insert(real.clone()) {
            let source = Source::File {
                path: path.to_owned(),
                real,
                mirrored: mirrored.to_owned(),
            };
            self.inputs.push(Input {
                name: path.display().to_string(),
                source,
            });
        }
        Ok(())
    }

    fn add_directory(&mut self, directory: &Path) -> Result<(), CliError> {
        for path in manifests(directory)? {
            let below = path.strip_prefix(directory).unwrap_or(&path).to_owned();
            self.add_file(&path, &below)?;
        }
        Ok(())
    }

    fn add_pattern(&mut self, pattern: &Path) -> Result<(), CliError> {
        let matching = glob::expand(pattern).map_err(|error| failed(pattern, &error))?;
        if matching.is_empty() {
            return Err(CliError::new(
                Kind::Usage,
                format!("{}: no file matches", pattern.display()),
            ));
        }
        // The part before the first wildcard acts as the directory.
        let fixed: PathBuf = pattern
            .components()
            .take_while(|it| !glob::is_pattern(Path::new(it)))
            .collect();
        for path in matching {
            let below = path.strip_prefix(&fixed).unwrap_or(&path).to_owned();
            self.add_file(&path, &below)?;
        }
        Ok(())
    }
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    CliError::new(Kind::Io, format!("{}: {}", path.display(), reason(error)))
}

/// Returns the system's message without its number.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let cut = text.split(" (os error").next().unwrap_or_default();
    let mut characters = cut.chars();
    characters
        .next()
        .map(|first| first.to_lowercase().chain(characters).collect())
        .unwrap_or_default()
}

/// Returns the manifests below a directory, sorted. Hidden directories and links to directories are skipped.
fn manifests(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let mut waiting = vec![directory.to_owned()];
    let mut found = Vec::new();
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| failed(&directory, &error))? {
            let entry = entry.map_err(|error| failed(&directory, &error))?;
            let kind = entry.file_type().map_err(|error| failed(&entry.path(), &error))?;
            let path = entry.path();
            if kind.is_dir() {
                if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                    waiting.push(path);
                }
            } else if is_manifest(&path) && !path.is_dir() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_manifest(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}
