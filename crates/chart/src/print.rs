//! Manifests to what `helm template` writes: takes a render, gives the text of stdout, or the files of `--output-dir`.
//! Touches no disk.

mod pattern;
mod select;

use std::collections::BTreeMap;

use crate::chart::Chart;
use crate::dialect::Dialect;
use crate::error::ChartError;
use crate::manifest::{Hook, HookEvent, Manifests, sort_manifests, trim};
use crate::warning::Warning;

/// What to print.
#[derive(Clone, Debug, Default)]
pub struct PrintOptions {
    /// Whether the chart's `crds/` come first.
    pub include_crds: bool,
    /// Whether hooks are left out.
    pub no_hooks: bool,
    /// Whether test hooks are left out.
    pub skip_tests: bool,
    /// Templates to print, as globs under the chart's folder; empty prints all.
    pub show_only: Vec<String>,
}

/// A filter that all manifests but hooks pass through, such as a program the user names.
pub type PostRenderer<'a> = dyn FnMut(Vec<u8>) -> Result<Vec<u8>, String> + 'a;

/// One piece of a file that `--output-dir` writes; pieces of one path are appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// The path under the folder: `chart/templates/x.yaml`.
    pub path: String,
    /// What it says.
    pub text: Vec<u8>,
    /// Which kind of piece.
    pub kind: OutputKind,
}

/// Helm treats the three a little differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// Goes beside the release's folder, never into it.
    Crd,
    /// Starts its file afresh.
    Manifest,
    /// Is appended, even to a file that was there before.
    Hook,
}

/// The text of stdout.
pub(crate) fn print(
    chart: &Chart,
    files: &BTreeMap<String, Vec<u8>>,
    options: &PrintOptions,
    dialect: Dialect,
    post_renderer: Option<&mut PostRenderer<'_>>,
) -> Result<(Vec<u8>, Vec<Warning>), ChartError> {
    let sorted = sort(files, dialect)?;
    let mut stream = Vec::with_capacity(files.values().map(|text| text.len() + 128).sum());
    if options.include_crds {
        for crd in chart.crds() {
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
    for hook in shown_hooks(&sorted, options) {
        push(&mut text, hook.manifest.path, hook.manifest.content);
    }
    if !options.show_only.is_empty() {
        text = select::select(&text, &options.show_only, dialect)?;
    }
    Ok((text, warnings(sorted)))
}

/// The files of `--output-dir`, in the order they are written.
pub(crate) fn pieces(
    chart: &Chart,
    files: &BTreeMap<String, Vec<u8>>,
    options: &PrintOptions,
    dialect: Dialect,
) -> Result<(Vec<OutputFile>, Vec<Warning>), ChartError> {
    let sorted = sort(files, dialect)?;
    let piece = |path: &str, content: &[u8], kind| {
        let mut text = Vec::with_capacity(content.len() + 64);
        push(&mut text, path, content);
        OutputFile {
            path: path.to_owned(),
            text,
            kind,
        }
    };
    let crds = if options.include_crds {
        chart.crds()
    } else {
        Vec::new()
    };
    let crds = crds
        .iter()
        .map(|crd| piece(&crd.filename, &crd.file.data, OutputKind::Crd));
    let generic = sorted
        .generic
        .iter()
        .map(|it| piece(it.path, it.content, OutputKind::Manifest));
    let hooks = shown_hooks(&sorted, options)
        .map(|hook| piece(hook.manifest.path, hook.manifest.content, OutputKind::Hook));
    let pieces = crds.chain(generic).chain(hooks).collect();
    if let Some(first) = options.show_only.first() {
        // Helm has written its files by then and finds nothing left to show.
        return Err(ChartError::NoSuchTemplate(first.clone()));
    }
    Ok((pieces, warnings(sorted)))
}

/// Sorts; on failure the error carries everything that was rendered.
fn sort(files: &BTreeMap<String, Vec<u8>>, dialect: Dialect) -> Result<Manifests<'_>, ChartError> {
    sort_manifests(files, dialect).map_err(|error| match error {
        ChartError::Manifest {
            path, problem, place, ..
        } => {
            let mut stream = Vec::new();
            for (path, text) in files.iter().filter(|(_, text)| !trim(text).is_empty()) {
                push(&mut stream, path, text);
            }
            ChartError::Manifest {
                path,
                problem,
                place,
                rendered: finish(stream),
            }
        }
        other => other,
    })
}

fn push(out: &mut Vec<u8>, path: &str, content: &[u8]) {
    out.extend_from_slice(b"---\n# Source: ");
    out.extend_from_slice(path.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(content);
    out.push(b'\n');
}

/// Helm trims the stream as a whole and ends it with one line break.
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

fn shown_hooks<'a>(
    sorted: &'a Manifests<'_>,
    options: &'a PrintOptions,
) -> impl Iterator<Item = &'a Hook<'a>> {
    let hooks: &[Hook<'a>] = if options.no_hooks { &[] } else { &sorted.hooks };
    hooks
        .iter()
        .filter(|hook| !(options.skip_tests && hook.events.contains(&HookEvent::Test)))
}

fn warnings(sorted: Manifests<'_>) -> Vec<Warning> {
    sorted
        .unknown_hooks
        .into_iter()
        .map(|types| Warning::UnknownHook { types })
        .collect()
}
