//! Formats manifests as `helm template` does: as the text of stdout, or as the files of `--output-dir`. Does
//! not access the disk.

mod select;

use std::collections::BTreeMap;

use crate::chart::Chart;
use crate::dialect::Dialect;
use crate::error::{CallbackError, ChartError};
use crate::manifest::{Hook, HookEvent, Manifests, sort_manifests, trim};
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
        let mut stream = Vec::with_capacity(self.files.values().map(|text| text.len() + 128).sum());
        if self.options.include_crds {
            for crd in self.chart.crds() {
                push(&mut stream, &crd.filename, &crd.file.data);
            }
        }
        for manifest in &sorted.generic {
            push(&mut stream, manifest.path, manifest.content);
        }
        if let Some(run) = post_renderer {
            stream = run(stream).map_err(ChartError::PostRender)?;
        }
        let mut text = finish(stream);
        for hook in self.shown_hooks(&sorted) {
            push(&mut text, hook.manifest.path, hook.manifest.content);
        }
        if !self.options.show_only.is_empty() {
            text = select::select(&self.dialect.split_documents(&text), &self.options.show_only)?;
        }
        Ok((text, warnings(sorted)))
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
            push(&mut stream, path, text);
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
    push(&mut text, path, content);
    OutputFile {
        path: path.to_owned(),
        text,
        kind,
    }
}

fn push(out: &mut Vec<u8>, path: &str, content: &[u8]) {
    out.extend_from_slice(b"---\n# Source: ");
    out.extend_from_slice(path.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(content);
    out.push(b'\n');
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
