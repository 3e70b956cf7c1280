//! Formats manifests as `helm template` does: as the text of stdout, or as the files of `--output-dir`. Does
//! not access the disk.

mod select;

use std::collections::BTreeMap;

use crate::chart::Chart;
use crate::dialect::Dialect;
use crate::error::{CallbackError, ChartError};
use crate::manifest::{Hook, HookEvent, Manifests, sort_manifests, trim, trim_end, trim_start};
use crate::warning::Warning;

/// Selection of the printed manifests.
#[derive(Clone, Debug, Default)]
pub struct PrintOptions {
    /// `--include-crds`: print the chart's `crds/` first.
    pub include_crds: bool,
    /// `--no-hooks`: leave hooks out.
    pub no_hooks: bool,
    /// `--skip-tests`: leave test hooks out.
    pub skip_tests: bool,
    /// `--show-only`: globs of templates, relative to the chart's directory; empty prints all.
    pub show_only: Vec<String>,
}

/// A filter that all manifests except hooks pass through, for example an external program.
pub type PostRenderer<'a> = dyn FnMut(Vec<u8>) -> Result<Vec<u8>, CallbackError> + 'a;

/// Text that `--output-dir` writes to a file; texts with the same path are appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// Path relative to the output directory: `chart/templates/x.yaml`.
    pub path: String,
    /// The text to write.
    pub text: Vec<u8>,
    /// Kind of the manifest, which decides where and how it is written.
    pub kind: OutputKind,
}

/// Kind of an [`OutputFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// Written outside the release's directory.
    Crd,
    /// Replaces an existing file.
    Manifest,
    /// Appended, also to an existing file.
    Hook,
}

/// Printer for the manifests of one render.
pub(crate) struct Printer<'a> {
    pub(crate) chart: &'a Chart,
    pub(crate) files: &'a BTreeMap<String, Vec<u8>>,
    pub(crate) options: &'a PrintOptions,
    pub(crate) dialect: Dialect,
}

impl<'a> Printer<'a> {
    /// Returns the text of stdout.
    pub(crate) fn text(
        &self,
        post_renderer: Option<&mut PostRenderer<'_>>,
    ) -> Result<(Vec<u8>, Vec<Warning>), ChartError> {
        let sorted = self.sort()?;
        let mut text = Vec::with_capacity(self.files.values().map(|text| text.len() + 128).sum());
        match post_renderer {
            None => self.write_sorted(&sorted, &mut |piece| text.extend_from_slice(piece)),
            Some(run) => {
                self.write_manifests(&sorted, &mut |piece| text.extend_from_slice(piece));
                text = finish(run(text).map_err(ChartError::PostRender)?);
                self.write_hooks(&sorted, &mut |piece| text.extend_from_slice(piece));
            }
        }
        if !self.options.show_only.is_empty() {
            text = select::select(&self.dialect.split_documents(&text), &self.options.show_only)?;
        }
        Ok((text, warnings(sorted)))
    }

    /// Passes the text of stdout to `write`, piece by piece, so that it is not in memory as a whole.
    pub(crate) fn write(&self, write: &mut dyn FnMut(&[u8])) -> Result<Vec<Warning>, ChartError> {
        if !self.options.show_only.is_empty() {
            let (text, warnings) = self.text(None)?;
            write(&text);
            return Ok(warnings);
        }
        let sorted = self.sort()?;
        self.write_sorted(&sorted, write);
        Ok(warnings(sorted))
    }

    fn write_sorted(&self, sorted: &Manifests<'_>, write: &mut dyn FnMut(&[u8])) {
        let mut trimmed = Trimmed::new(write);
        self.write_manifests(sorted, &mut |piece| trimmed.push(piece));
        trimmed.finish();
        self.write_hooks(sorted, write);
    }

    /// Writes definitions and manifests without hooks.
    fn write_manifests(&self, sorted: &Manifests<'_>, write: &mut dyn FnMut(&[u8])) {
        if self.options.include_crds {
            for crd in self.chart.crds() {
                push(write, &crd.filename, &crd.file.data);
            }
        }
        for manifest in &sorted.generic {
            push(write, manifest.path, manifest.content);
        }
    }

    fn write_hooks(&self, sorted: &Manifests<'_>, write: &mut dyn FnMut(&[u8])) {
        for hook in self.shown_hooks(sorted) {
            push(write, hook.manifest.path, hook.manifest.content);
        }
    }

    /// Returns the files of `--output-dir`, in the order they are written.
    pub(crate) fn files(&self) -> Result<(Vec<OutputFile>, Vec<Warning>), ChartError> {
        let sorted = self.sort()?;
        let crds = if self.options.include_crds {
            self.chart.crds()
        } else {
            Vec::new()
        };
        let crds = crds
            .iter()
            .map(|crd| output_file(&crd.filename, &crd.file.data, OutputKind::Crd));
        let generic = sorted
            .generic
            .iter()
            .map(|manifest| output_file(manifest.path, manifest.content, OutputKind::Manifest));
        let hooks = self
            .shown_hooks(&sorted)
            .map(|hook| output_file(hook.manifest.path, hook.manifest.content, OutputKind::Hook));
        let files = crds.chain(generic).chain(hooks).collect();
        if let Some(first) = self.options.show_only.first() {
            // Helm has already written the files and finds no manifest left to show.
            return Err(ChartError::NoSuchTemplate(first.clone()));
        }
        Ok((files, warnings(sorted)))
    }

    /// Sorts the manifests; an error contains everything that was rendered.
    fn sort(&self) -> Result<Manifests<'a>, ChartError> {
        sort_manifests(self.files, self.dialect).map_err(|error| match error {
            ChartError::Manifest {
                path,
                problem,
                location,
                ..
            } => ChartError::Manifest {
                path,
                problem,
                location,
                rendered: self.unsorted(),
            },
            other => other,
        })
    }

    fn unsorted(&self) -> Vec<u8> {
        let mut stream = Vec::new();
        for (path, text) in self.files.iter().filter(|(_, text)| !trim(text).is_empty()) {
            push(&mut |piece| stream.extend_from_slice(piece), path, text);
        }
        finish(stream)
    }

    fn shown_hooks<'s>(&'s self, sorted: &'s Manifests<'_>) -> impl Iterator<Item = &'s Hook<'s>> {
        let hooks: &[Hook<'s>] = if self.options.no_hooks { &[] } else { &sorted.hooks };
        hooks
            .iter()
            .filter(|hook| !(self.options.skip_tests && hook.events.contains(&HookEvent::Test)))
    }
}

fn output_file(path: &str, content: &[u8], kind: OutputKind) -> OutputFile {
    let mut text = Vec::with_capacity(content.len() + 64);
    push(&mut |piece| text.extend_from_slice(piece), path, content);
    OutputFile {
        path: path.to_owned(),
        text,
        kind,
    }
}

fn push(write: &mut dyn FnMut(&[u8]), path: &str, content: &[u8]) {
    write(b"---\n# Source: ");
    write(path.as_bytes());
    write(b"\n");
    write(content);
    write(b"\n");
}

/// Trims a stream of pieces like [`finish`]: holds back the space at the end of a piece until more follows.
struct Trimmed<'w> {
    write: &'w mut dyn FnMut(&[u8]),
    /// Whether all pieces so far were space.
    is_blank: bool,
    held: Vec<u8>,
}

impl<'w> Trimmed<'w> {
    fn new(write: &'w mut dyn FnMut(&[u8])) -> Self {
        Self {
            write,
            is_blank: true,
            held: Vec::new(),
        }
    }

    fn push(&mut self, piece: &[u8]) {
        let start = if self.is_blank { trim_start(piece) } else { piece };
        let length = trim_end(start).len();
        let (text, space) = start.split_at_checked(length).unwrap_or((start, &[]));
        if !text.is_empty() {
            (self.write)(&self.held);
            (self.write)(text);
            self.held.clear();
            self.is_blank = false;
        }
        self.held.extend_from_slice(space);
    }

    fn finish(self) {
        (self.write)(b"\n");
    }
}

/// Trims the stream as a whole and ends it with one line break, as Helm does.
fn finish(mut stream: Vec<u8>) -> Vec<u8> {
    let trimmed = trim(&stream);
    let before = (trimmed.as_ptr() as usize).saturating_sub(stream.as_ptr() as usize);
    let length = trimmed.len();
    if before > 0 {
        stream.drain(..before);
    }
    stream.truncate(length);
    stream.push(b'\n');
    stream
}

fn warnings(sorted: Manifests<'_>) -> Vec<Warning> {
    sorted
        .unknown_hooks
        .into_iter()
        .map(|types| Warning::UnknownHook { types })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_trimmed_like_the_whole() {
        for pieces in [
            &[][..],
            &[" ", "\n"],
            &["\n", "a"],
            &["a", " \n", "\u{a0}", "b \n", "\n"],
            &[" a ", " ", " b"],
            &["a\u{3000}", "\u{2003}"],
        ] {
            let mut text = Vec::new();
            let mut write = |piece: &[u8]| text.extend_from_slice(piece);
            let mut trimmed = Trimmed::new(&mut write);
            for piece in pieces {
                trimmed.push(piece.as_bytes());
            }
            trimmed.finish();
            assert_eq!(text, finish(pieces.concat().into_bytes()), "{pieces:?}");
        }
    }
}
