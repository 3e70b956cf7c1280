//! Formatting of manifests as in `helm template`: as the text of stdout or as the files of `--output-dir`.
//! Does not access the disk.

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
    /// `--include-crds`: print the files in `crds/` first.
    pub include_crds: bool,
    /// `--no-hooks`: omit hooks.
    pub no_hooks: bool,
    /// `--skip-tests`: omit test hooks.
    pub skip_tests: bool,
    /// `--show-only`: glob patterns of template paths, relative to the chart's directory. If empty, all
    /// templates are printed.
    pub show_only: Vec<String>,
}

/// Filter for all manifests except hooks, for example an external program.
pub type PostRenderer<'a> = dyn FnMut(Vec<u8>) -> Result<Vec<u8>, CallbackError> + 'a;

/// Text that `--output-dir` writes to a file. Texts with the same path are appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// Path relative to the output directory: `chart/templates/x.yaml`.
    pub path: String,
    /// Text to write.
    pub text: Vec<u8>,
    /// Kind of the manifest. Determines where and how the text is written.
    pub kind: OutputKind,
}

/// Kind of an [`OutputFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// Custom resource definition, written outside of the release's directory.
    Crd,
    /// Manifest, which replaces an existing file.
    Manifest,
    /// Hook, which is appended to an existing file.
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
                text = trim_output(run(text).map_err(ChartError::PostRender)?);
                self.write_hooks(&sorted, &mut |piece| text.extend_from_slice(piece));
            }
        }
        if !self.options.show_only.is_empty() {
            text = select::select(&self.dialect.split_documents(&text), &self.options.show_only)?;
        }
        Ok((text, hook_warnings(sorted)))
    }

    /// Passes the text of stdout to `write` in pieces, so that the whole text is never in memory.
    pub(crate) fn write(&self, write: &mut dyn FnMut(&[u8])) -> Result<Vec<Warning>, ChartError> {
        if !self.options.show_only.is_empty() {
            let (text, warnings) = self.text(None)?;
            write(&text);
            return Ok(warnings);
        }
        let sorted = self.sort()?;
        self.write_sorted(&sorted, write);
        Ok(hook_warnings(sorted))
    }

    fn write_sorted(&self, sorted: &Manifests<'_>, write: &mut dyn FnMut(&[u8])) {
        let mut trimmed = TrimmedWriter::new(write);
        self.write_manifests(sorted, &mut |piece| trimmed.push(piece));
        trimmed.finish();
        self.write_hooks(sorted, write);
    }

    /// Writes custom resource definitions and manifests except hooks.
    fn write_manifests(&self, sorted: &Manifests<'_>, write: &mut dyn FnMut(&[u8])) {
        if self.options.include_crds {
            for crd in self.chart.crds() {
                write_document(write, &crd.filename, &crd.file.data);
            }
        }
        for manifest in &sorted.generic {
            write_document(write, manifest.path, manifest.content);
        }
    }

    fn write_hooks(&self, sorted: &Manifests<'_>, write: &mut dyn FnMut(&[u8])) {
        for hook in self.selected_hooks(sorted) {
            write_document(write, hook.manifest.path, hook.manifest.content);
        }
    }

    /// Returns the files of `--output-dir` in the order in which they are written.
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
            .selected_hooks(&sorted)
            .map(|hook| output_file(hook.manifest.path, hook.manifest.content, OutputKind::Hook));
        let files = crds.chain(generic).chain(hooks).collect();
        if let Some(first) = self.options.show_only.first() {
            // At this point Helm has already written the files, and finds no manifest to show.
            return Err(ChartError::NoSuchTemplate(first.clone()));
        }
        Ok((files, hook_warnings(sorted)))
    }

    /// Sorts the manifests. An error includes the whole rendered output.
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
                rendered: self.unsorted_output(),
            },
            other => other,
        })
    }

    fn unsorted_output(&self) -> Vec<u8> {
        let mut stream = Vec::new();
        for (path, text) in self.files.iter().filter(|(_, text)| !trim(text).is_empty()) {
            write_document(&mut |piece| stream.extend_from_slice(piece), path, text);
        }
        trim_output(stream)
    }

    fn selected_hooks<'s>(&'s self, sorted: &'s Manifests<'_>) -> impl Iterator<Item = &'s Hook<'s>> {
        let hooks: &[Hook<'s>] = if self.options.no_hooks { &[] } else { &sorted.hooks };
        hooks
            .iter()
            .filter(|hook| !(self.options.skip_tests && hook.events.contains(&HookEvent::Test)))
    }
}

fn output_file(path: &str, content: &[u8], kind: OutputKind) -> OutputFile {
    let mut text = Vec::with_capacity(content.len() + 64);
    write_document(&mut |piece| text.extend_from_slice(piece), path, content);
    OutputFile {
        path: path.to_owned(),
        text,
        kind,
    }
}

fn write_document(write: &mut dyn FnMut(&[u8]), path: &str, content: &[u8]) {
    write(b"---\n# Source: ");
    write(path.as_bytes());
    write(b"\n");
    write(content);
    write(b"\n");
}

/// Trims a stream of pieces like [`trim_output`]. Keeps the white space at the end of a piece until other
/// text follows.
struct TrimmedWriter<'w> {
    write: &'w mut dyn FnMut(&[u8]),
    /// Whether all pieces so far consisted of white space.
    is_blank: bool,
    pending_space: Vec<u8>,
}

impl<'w> TrimmedWriter<'w> {
    fn new(write: &'w mut dyn FnMut(&[u8])) -> Self {
        Self {
            write,
            is_blank: true,
            pending_space: Vec::new(),
        }
    }

    fn push(&mut self, piece: &[u8]) {
        let start = if self.is_blank { trim_start(piece) } else { piece };
        let length = trim_end(start).len();
        let (text, space) = start.split_at_checked(length).unwrap_or((start, &[]));
        if !text.is_empty() {
            (self.write)(&self.pending_space);
            (self.write)(text);
            self.pending_space.clear();
            self.is_blank = false;
        }
        self.pending_space.extend_from_slice(space);
    }

    fn finish(self) {
        (self.write)(b"\n");
    }
}

/// Trims the whole stream and adds one line break, as Helm does.
fn trim_output(mut stream: Vec<u8>) -> Vec<u8> {
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

fn hook_warnings(sorted: Manifests<'_>) -> Vec<Warning> {
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
    fn pieces_are_trimmed_like_the_whole_text() {
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
            let mut trimmed = TrimmedWriter::new(&mut write);
            for piece in pieces {
                trimmed.push(piece.as_bytes());
            }
            trimmed.finish();
            assert_eq!(text, trim_output(pieces.concat().into_bytes()), "{pieces:?}");
        }
    }
}
