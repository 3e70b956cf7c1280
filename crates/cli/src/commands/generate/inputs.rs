//! Finds the inputs: each file once, in a stable order.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::Head;
use super::glob;
use super::text_report::warn;
use crate::error::{CliError, Kind};

/// An input.
#[derive(Clone, Debug)]
pub(super) struct Input {
    /// Name as given by the user.
    pub(super) name: String,
    /// Source of the text.
    pub(super) source: Source,
}

/// Source of an input.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// Standard input or a named pipe, with its beginning.
    Pipe(Arc<Head>),
    File {
        /// Canonical path, which an edit replaces.
        real: PathBuf,
        /// Path in a mirrored directory.
        mirrored: PathBuf,
    },
}

/// Names of standard input. The paths in `/dev` resolve to the redirected file, which must not be replaced.
const STDIN: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

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
    has_stdin: bool,
}

impl Found {
    fn add(&mut self, path: &Path) -> Result<(), CliError> {
        if STDIN.iter().any(|name| path == Path::new(name)) {
            return self.add_stdin();
        }
        match fs::metadata(path) {
            Ok(data) if data.is_dir() => self.add_directory(path),
            Ok(data) if data.is_file() => {
                self.add_file(path, Path::new(path.file_name().unwrap_or(path.as_os_str())))
            }
            Ok(data) if is_pipe(&data) => self.add_pipe(path, Head::from_pipe),
            Ok(_) => Err(CliError::new(
                Kind::Usage,
                format!("{}: not a file, directory or pipe", path.display()),
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound && glob::is_pattern(path) => {
                self.add_pattern(path)
            }
            Err(error) => Err(failed(path, &error)),
        }
    }

    fn add_stdin(&mut self) -> Result<(), CliError> {
        if std::mem::replace(&mut self.has_stdin, true) {
            return Ok(());
        }
        self.add_pipe(Path::new("-"), |_| Head::from_stdin())
    }

    fn add_pipe(&mut self, path: &Path, read: impl Fn(&Path) -> io::Result<Head>) -> Result<(), CliError> {
        let head = read(path).map_err(|error| failed(path, &error))?;
        self.inputs.push(Input {
            name: path.display().to_string(),
            source: Source::Pipe(Arc::new(head)),
        });
        Ok(())
    }

    fn add_file(&mut self, path: &Path, mirrored: &Path) -> Result<(), CliError> {
        let real = fs::canonicalize(path).map_err(|error| failed(path, &error))?;
        if self.seen.insert(real.clone()) {
            let source = Source::File {
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

/// Whether a file is a pipe, such as that of `<(…)`.
#[cfg(unix)]
fn is_pipe(data: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    data.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_: &fs::Metadata) -> bool {
    false
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    CliError::new(Kind::Io, format!("{}: {}", path.display(), reason(error)))
        .hint("name files or directories that exist and can be read, or `-` for stdin")
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

/// Returns the manifests below a directory, sorted. Hidden directories, links to directories, links out of
/// the directory and special files are skipped.
fn manifests(directory: &Path) -> Result<Vec<PathBuf>, CliError> {
    let root = fs::canonicalize(directory).map_err(|error| failed(directory, &error))?;
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
            } else if !is_manifest(&path) {
            } else if kind.is_symlink() && leads_outside(&path, &root) {
                let name = path.display();
                warn(&format!(
                    "{name}: skipped: the symbolic link leaves the directory"
                ));
            } else if path.is_file() || kind.is_symlink() && !path.exists() {
                // A dangling link is reported as an error.
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Whether a link refers to a file outside `root`. False for a dangling link.
fn leads_outside(link: &Path, root: &Path) -> bool {
    fs::canonicalize(link).is_ok_and(|real| !real.starts_with(root))
}

fn is_manifest(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known))
}
