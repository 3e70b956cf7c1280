//! Where results go: takes `--output`, `--check` and `--diff`, gives a target per input, and delivers.

use std::collections::HashMap;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::args::Args;
use super::inputs::{Input, Source};
use super::stage::Stage;
use super::treat::{Payload, Treated};
use crate::error::{CliError, Kind};

/// What happens to results.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Back to where they came from.
    InPlace,
    /// All of them to standard output.
    Stdout,
    /// All of them into one file.
    File(PathBuf),
    /// Each into its place in a folder.
    Folder(PathBuf),
    /// Looked at, not written.
    Check,
    /// Shown as a diff, not written.
    Diff,
}

/// What happens to one result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// It replaces this file, if it is another text.
    Replace(PathBuf),
    /// It is written to this file.
    Write(PathBuf),
    /// It becomes part of one stream.
    Stream,
    /// Its difference becomes part of one stream.
    Diff,
    /// Nothing.
    Nowhere,
}

impl Plan {
    /// What the flags ask for.
    pub(super) fn of(args: &Args, inputs: &[Input]) -> Result<Self, CliError> {
        if args.diff {
            return Ok(Self::Diff);
        }
        if args.check {
            return Ok(Self::Check);
        }
        match &args.output {
            None => Ok(Self::InPlace),
            Some(path) if path == Path::new("-") => Ok(Self::Stdout),
            Some(path) if is_folder(path) => mirrored(path, inputs),
            Some(path) => Ok(Self::File(path.clone())),
        }
    }

    /// Where the result of `input` goes.
    pub(super) fn target(&self, input: &Input) -> Target {
        match (self, &input.source) {
            (Self::Check, _) => Target::Nowhere,
            (Self::Diff, _) => Target::Diff,
            (Self::InPlace, Source::File { real, .. }) => Target::Replace(real.clone()),
            (Self::Folder(folder), Source::File { mirrored, .. }) => Target::Write(folder.join(mirrored)),
            _ => Target::Stream,
        }
    }

    /// Whether files are written.
    pub(super) fn writes(&self) -> bool {
        !matches!(self, Self::Check | Self::Diff | Self::Stdout)
    }

    /// Whether standard output carries manifests or a diff.
    pub(super) fn uses_stdout(&self, all: &[Treated]) -> bool {
        match self {
            Self::Stdout | Self::Diff => true,
            Self::InPlace => all
                .iter()
                .any(|treated| !matches!(treated.payload, Payload::None)),
            Self::File(_) | Self::Folder(_) | Self::Check => false,
        }
    }

    /// Writes everything that is to be written.
    pub(super) fn deliver(&self, all: &mut [Treated], stage: &Stage) -> Result<(), CliError> {
        if let Self::File(path) = self {
            let named = |error: io::Error| {
                CliError::new(
                    Kind::Io,
                    format!("{}: {}", path.display(), super::inputs::reason(&error)),
                )
            };
            let mut pending = stage.create(path).map_err(named)?;
            join(all, &mut pending).map_err(named)?;
            pending.keep();
        }
        stage
            .commit()
            .map_err(|error| CliError::new(Kind::Io, error.to_string()))?;
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

/// A slash at the end says so, and so does a folder that is there.
fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Every input must have a place of its own.
fn mirrored(folder: &Path, inputs: &[Input]) -> Result<Plan, CliError> {
    let mut taken: HashMap<&Path, &str> = HashMap::new();
    for input in inputs {
        let Source::File { mirrored, .. } = &input.source else {
            let message = format!(
                "--output {}: standard input has no name to write to",
                folder.display()
            );
            return Err(CliError::new(Kind::Usage, message).hint("give a file, or - for standard output"));
        };
        if let Some(other) = taken.insert(mirrored, &input.name) {
            let message = format!(
                "{other} and {} would both be written to {}",
                input.name,
                folder.join(mirrored).display()
            );
            return Err(CliError::new(Kind::Usage, message).hint("give the folder that holds both"));
        }
    }
    Ok(Plan::Folder(folder.to_owned()))
}

fn concatenate(all: &mut [Treated]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for treated in all {
        if let Payload::Text(text) = &treated.payload {
            out.write_all(text)?;
        }
    }
    out.flush()
}

/// One stream of several: documents of different inputs are kept apart, a single input keeps its bytes.
fn join(all: &mut [Treated], out: &mut dyn Write) -> io::Result<()> {
    let mut last = None;
    for treated in all {
        match &mut treated.payload {
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

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// `last` is the last byte that was written, if any.
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
            part = part.strip_prefix(MARK).unwrap_or(part);
            out.write_all(separator(*last, part))?;
        }
        first = false;
        out.write_all(part)?;
        *last = Some(end);
    }
}

/// What must stand between two texts for their documents to stay apart.
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
        let treated = |text: &&str| Treated {
            name: String::new(),
            changed: false,
            objects: Vec::new(),
            error: None,
            unwritable: false,
            payload: Payload::Text(text.as_bytes().to_vec()),
        };
        let mut all: Vec<_> = texts.iter().map(treated).collect();
        let mut out = Vec::new();
        join(&mut all, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn documents_of_several_inputs_stay_apart() {
        check(&["a: b"], "a: b");
        check(&["\u{feff}a: b\n"], "\u{feff}a: b\n");
        check(&["a: b\n", "c: d\n"], "a: b\n---\nc: d\n");
        check(&["a: b", "c: d"], "a: b\n---\nc: d");
        check(&["a: b\n", "---\nc: d\n"], "a: b\n---\nc: d\n");
        check(&["a: b", "\u{feff}---\nc: d\n"], "a: b\n---\nc: d\n");
        check(&["", "a: b\n", "", "c: d\n"], "a: b\n---\nc: d\n");
    }
}
