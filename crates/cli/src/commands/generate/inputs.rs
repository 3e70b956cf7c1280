//! Which inputs there are: takes paths as they were given, gives each file once, in a stable order.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::Head;
use super::glob;
use crate::error::{CliError, Kind};

/// One text to treat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Input {
    /// What the user calls it.
    pub(super) name: String,
    /// Where it comes from.
    pub(super) source: Source,
}

/// Where a text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Standard input, as far as it has been read.
    Stdin(Arc<Head>),
    /// A file.
    File {
        /// As given, or below a folder that was given.
        path: PathBuf,
        /// Links followed: what an edit replaces.
        real: PathBuf,
        /// Its place in a mirrored folder.
        mirrored: PathBuf,
    },
}

/// What is looked for in folders.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Every input that `paths` name, each once.
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
            Ok(data) if data.is_dir() => self.add_folder(path),
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

    fn add_folder(&mut self, folder: &Path) -> Result<(), CliError> {
        for path in manifests(folder)? {
            let below = path.strip_prefix(folder).unwrap_or(&path).to_owned();
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
        // The part before the first wildcard is what a folder would be.
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

/// What the system says, without its number.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let cut = text.split(" (os error").next().unwrap_or_default();
    let mut letters = cut.chars();
    letters
        .next()
        .map(|first| first.to_lowercase().chain(letters).collect())
        .unwrap_or_default()
}

/// The manifests below `folder`, sorted. Hidden folders and links to folders are left alone.
fn manifests(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let mut waiting = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, &error))? {
            let entry = entry.map_err(|error| failed(&folder, &error))?;
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
