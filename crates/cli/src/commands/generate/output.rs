//! Destinations of results, from `--output`, `--check` and `--diff`.

use std::collections::HashMap;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::args::Args;
use super::inputs::{Input, Source};
use super::process::{Payload, Processed};
use super::transaction::{CommitError, Transaction};
use crate::error::{CliError, Kind};

/// Destination of all results.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Replace the inputs.
    InPlace,
    /// Write to standard output.
    Stdout,
    /// Write into one file.
    File(PathBuf),
    /// Mirror the inputs into a directory.
    Directory(PathBuf),
    /// Check only.
    Check,
    /// Print a diff only.
    Diff,
}

/// Destination of one result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Replace this file if the text changed.
    Replace(PathBuf),
    /// Write this file.
    Write(PathBuf),
    /// Append to the output stream.
    Stream,
    /// Append the diff to the output stream.
    Diff,
    /// Discard.
    Nowhere,
}

impl Plan {
    /// Returns the plan of the flags.
    pub(super) fn from_args(args: &Args, inputs: &[Input]) -> Result<Self, CliError> {
        if args.diff {
            return Ok(Self::Diff);
        }
        if args.check {
            return Ok(Self::Check);
        }
        match &args.output {
            None => Ok(Self::InPlace),
            Some(path) if path == Path::new("-") => Ok(Self::Stdout),
            Some(path) if is_directory(path) => mirrored(path, inputs),
            Some(path) => Ok(Self::File(path.clone())),
        }
    }

    /// Returns the destination of an input's result.
    pub(super) fn target(&self, input: &Input) -> Target {
        match (self, &input.source) {
            (Self::Check, _) => Target::Nowhere,
            (Self::Diff, _) => Target::Diff,
            (Self::InPlace, Source::File { real, .. }) => Target::Replace(real.clone()),
            (Self::Directory(directory), Source::File { mirrored, .. }) => {
                Target::Write(directory.join(mirrored))
            }
            _ => Target::Stream,
        }
    }

    /// Whether files are written.
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Self::Check | Self::Diff | Self::Stdout)
    }

    /// Whether standard output carries manifests or a diff.
    pub(super) fn uses_stdout(&self, all: &[Processed]) -> bool {
        match self {
            Self::Stdout | Self::Diff => true,
            Self::InPlace => all
                .iter()
                .any(|processed| !matches!(processed.payload, Payload::None)),
            Self::File(_) | Self::Directory(_) | Self::Check => false,
        }
    }

    /// Writes all results.
    pub(super) fn deliver(&self, all: &mut [Processed], transaction: &Transaction) -> Result<(), CliError> {
        if let Self::File(path) = self {
            let named = |error: io::Error| {
                CliError::new(
                    Kind::Io,
                    format!("{}: {}", path.display(), super::inputs::reason(&error)),
                )
            };
            let mut pending = transaction.create(path).map_err(named)?;
            join(all, &mut pending).map_err(named)?;
            pending.keep();
        }
        transaction.commit().map_err(|error| commit_failure(&error))?;
        if matches!(self, Self::Diff) {
            return Ok(concatenate(all)?);
        }
        if self.uses_stdout(all) {
            let mut out = io::stdout().lock();
            join(all, &mut out)?;
            out.flush()?;
        }
        Ok(())
    }
}

fn commit_failure(error: &CommitError) -> CliError {
    let failure = CliError::new(Kind::Io, error.to_string());
    match error {
        CommitError::Modified(_) => failure.hint("run the command again"),
        CommitError::Io { .. } => failure,
    }
}

/// Whether a path is a directory or has a trailing slash.
fn is_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Checks that every input has a distinct destination.
fn mirrored(directory: &Path, inputs: &[Input]) -> Result<Plan, CliError> {
    let mut taken: HashMap<&Path, &str> = HashMap::new();
    for input in inputs {
        let Source::File { mirrored, .. } = &input.source else {
            let message = format!(
                "--output {}: {} has no file name",
                directory.display(),
                if input.name == "-" {
                    "standard input"
                } else {
                    &input.name
                }
            );
            return Err(CliError::new(Kind::Usage, message).hint("use a file, or - for standard output"));
        };
        if let Some(other) = taken.insert(mirrored, &input.name) {
            let message = format!(
                "{other} and {} would both be written to {}",
                input.name,
                directory.join(mirrored).display()
            );
            return Err(CliError::new(Kind::Usage, message).hint("pass the directory that contains both"));
        }
    }
    Ok(Plan::Directory(directory.to_owned()))
}

fn concatenate(all: &mut [Processed]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for processed in all {
        if let Payload::Text(text) = &processed.payload {
            out.write_all(text)?;
        }
    }
    out.flush()
}

/// Joins texts into one stream with document separators; a single text is unchanged.
fn join(all: &mut [Processed], out: &mut dyn Write) -> io::Result<()> {
    let mut last = None;
    for processed in all {
        match &mut processed.payload {
            Payload::None => {}
            Payload::Text(text) => write_one(&mut text.as_slice(), &mut last, out)?,
            Payload::Spool(spool) => {
                spool.rewind()?;
                write_one(spool, &mut last, out)?;
            }
        }
    }
    Ok(())
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Writes one text; `last` is the last byte that was written.
fn write_one(text: &mut dyn Read, last: &mut Option<u8>, out: &mut dyn Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut first = true;
    loop {
        let count = text.read(&mut buffer)?;
        let mut part = buffer.get(..count).unwrap_or_default();
        let Some(end) = part.last().copied() else {
            return Ok(());
        };
        if first && last.is_some() {
            part = part.strip_prefix(BYTE_ORDER_MARK).unwrap_or(part);
            out.write_all(separator(*last, part))?;
        }
        first = false;
        out.write_all(part)?;
        *last = Some(end);
    }
}

/// Returns the separator between two texts.
fn separator(last: Option<u8>, next: &[u8]) -> &'static [u8] {
    let marked = next.starts_with(b"---");
    match (last == Some(b'\n'), marked) {
        (true, true) => b"",
        (true, false) => b"---\n",
        (false, true) => b"\n",
        (false, false) => b"\n---\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str], expected: &str) {
        let processed = |text: &&str| Processed {
            name: String::new(),
            changed: false,
            objects: Vec::new(),
            error: None,
            unwritable: false,
            payload: Payload::Text(text.as_bytes().to_vec()),
        };
        let mut all: Vec<_> = texts.iter().map(processed).collect();
        let mut out = Vec::new();
        join(&mut all, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn documents_of_several_inputs_are_separated() {
        check(&["a: b"], "a: b");
        check(&["\u{feff}a: b\n"], "\u{feff}a: b\n");
        check(&["a: b\n", "c: d\n"], "a: b\n---\nc: d\n");
        check(&["a: b", "c: d"], "a: b\n---\nc: d");
        check(&["a: b\n", "---\nc: d\n"], "a: b\n---\nc: d\n");
        check(&["a: b", "\u{feff}---\nc: d\n"], "a: b\n---\nc: d\n");
        check(&["", "a: b\n", "", "c: d\n"], "a: b\n---\nc: d\n");
    }
}
