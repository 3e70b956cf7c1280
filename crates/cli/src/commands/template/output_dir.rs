//! `--output-dir`: writes all files or none.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mainstay_chart::{OutputFile, OutputKind};

use crate::error::CliError;

/// Writes the pieces; returns Helm's report, one line per piece.
pub(super) fn write(
    directory: &Path,
    release: Option<&str>,
    pieces: &[OutputFile],
) -> Result<String, CliError> {
    let mut files: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    let mut report = String::new();
    for piece in pieces {
        let base = match release {
            Some(name) if piece.kind != OutputKind::Crd => directory.join(name),
            _ => directory.to_path_buf(),
        };
        let path = base.join(&piece.path);
        let _ = writeln!(report, "wrote {}/{}", base.display(), piece.path);
        let text = match files.entry(path) {
            std::collections::btree_map::Entry::Occupied(text) => text.into_mut(),
            std::collections::btree_map::Entry::Vacant(slot) => {
                let before = if piece.kind == OutputKind::Hook {
                    existing(slot.key())?
                } else {
                    Vec::new()
                };
                slot.insert(before)
            }
        };
        text.extend_from_slice(&piece.text);
    }
    let mut staged = Staged::default();
    staged.stage_all(&files)?;
    staged.commit()?;
    Ok(report)
}

/// Returns the content of a file of an earlier run, to which Helm appends hooks.
fn existing(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    }
}

/// Temporary files and created directories; removed unless committed.
#[derive(Default)]
struct Staged {
    files: Vec<(PathBuf, PathBuf)>,
    directories: Vec<PathBuf>,
}

impl Staged {
    fn stage_all(&mut self, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
        for (number, (path, text)) in files.iter().enumerate() {
            let parent = path.parent().unwrap_or(Path::new("."));
            self.make_directory(parent)?;
            let temporary = parent.join(format!(".mainstay-{}-{number}.tmp", std::process::id()));
            self.files.push((temporary.clone(), path.clone()));
            fs::write(&temporary, text)?;
        }
        Ok(())
    }

    fn make_directory(&mut self, directory: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = directory
            .ancestors()
            .take_while(|it| !it.as_os_str().is_empty() && !it.exists())
            .collect();
        for directory in missing.into_iter().rev() {
            fs::create_dir(directory)?;
            self.directories.push(directory.to_path_buf());
        }
        Ok(())
    }

    /// Renames the files within their directories, which fails only on disk errors.
    fn commit(mut self) -> io::Result<()> {
        for (temporary, path) in std::mem::take(&mut self.files) {
            fs::rename(temporary, path)?;
        }
        self.directories.clear();
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        for (temporary, _) in &self.files {
            let _ = fs::remove_file(temporary);
        }
        for directory in self.directories.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }
}
