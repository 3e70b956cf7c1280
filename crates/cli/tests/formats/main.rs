//! Output of `mainstay generate` and other tools: reformatted output counts as unchanged, and every reader
//! finds the same objects.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot run a tool fails"
)]

mod formatters;
mod readers;

use std::fs;
use std::path::Path;

use mainstay_inject::{Action, Options, run};
use mainstay_testkit::repository_root;

/// A manifest of the corpus with pods to inject into.
struct Manifest {
    name: String,
    plain: Vec<u8>,
    injected: Vec<u8>,
}

/// Injects into every manifest of the corpus; returns those that changed.
fn injected_corpus() -> Vec<Manifest> {
    let directory = repository_root().join("crates/inject/tests/corpus");
    let mut manifests: Vec<Manifest> = fs::read_dir(directory)
        .unwrap()
        .filter_map(|entry| inject(&entry.unwrap().path()))
        .collect();
    manifests.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(manifests.len() > 100, "{} manifests", manifests.len());
    manifests
}

fn inject(path: &Path) -> Option<Manifest> {
    let plain = fs::read(path).unwrap();
    let outcome = run(&plain, &Options::default()).unwrap();
    let is_injected = outcome
        .reports
        .iter()
        .any(|report| report.action == Action::Injected);
    is_injected.then(|| Manifest {
        name: path.file_name().unwrap().to_string_lossy().into_owned(),
        injected: outcome.text.to_vec(),
        plain: plain.clone(),
    })
}

/// Writes one text of each manifest to a directory.
fn write_all(directory: &Path, manifests: &[Manifest], text: impl Fn(&Manifest) -> &[u8]) {
    fs::create_dir_all(directory).unwrap();
    for manifest in manifests {
        fs::write(directory.join(&manifest.name), text(manifest)).unwrap();
    }
}
