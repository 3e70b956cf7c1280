//! Snapshots that users name: a file, a directory, or `-` for stdin; and errors that point at the line.

use std::io::Read as _;
use std::path::Path;

use mainstay_sim::snapshot::{SnapshotError, parse, read_path};
use serde_json::Value;

use crate::error::{CliError, Kind, chain};

/// Name of stdin in messages.
pub(crate) const STDIN: &str = "stdin";

/// Whether a path means stdin.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads stdin as text.
pub(crate) fn read_stdin() -> Result<String, CliError> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .read_to_string(&mut text)
        .map_err(|error| {
            CliError::new(Kind::Io, format!("{STDIN}: {error}"))
                .hint("pipe the output of `kubectl get -A -o yaml` into the command")
        })?;
    Ok(text)
}

/// Reads the objects of a file, a directory or stdin.
pub(crate) fn read_objects(path: &Path) -> Result<Vec<Value>, CliError> {
    let read = if is_stdin(path) {
        parse(&read_stdin()?)
    } else {
        read_path(path)
    };
    read.map_err(|error| unreadable(&error))
}

/// Converts an error, with the line it points at.
pub(crate) fn unreadable(error: &SnapshotError) -> CliError {
    let mut message = chain(error);
    let Some((file, place)) = error.place() else {
        return CliError::new(Kind::Manifest, message).hint(hint(error));
    };
    if file.is_none() {
        message = format!("{STDIN}: {message}");
    }
    let result = CliError::new(Kind::Manifest, message).hint(hint(error));
    let file = file.map_or_else(|| STDIN.to_owned(), |path| path.display().to_string());
    result.at(
        &file,
        place.line,
        place.column,
        place.source.clone().unwrap_or_default(),
    )
}

fn hint(error: &SnapshotError) -> &'static str {
    match error {
        SnapshotError::File { .. } => {
            "name a file or directory that exists and can be read, or `-` for stdin"
        }
        SnapshotError::NotEmpty { .. } => "name a new directory: a dump never replaces files",
        SnapshotError::DirectoryLink { .. } | SnapshotError::SpecialFile { .. } => {
            "remove it, or name a directory of regular files"
        }
        _ => "pass the output of `kubectl get -A -o yaml` or a directory of manifests",
    }
}
