//! Injection: whole runs compared with `istioctl kube-inject`, and the throughput of `mainstay generate` on
//! streams of several kinds.

pub(crate) mod istioctl;
mod manifests;
mod streams;

use std::path::Path;

use crate::measure::{Cost, cost_of};

/// Measures all inputs.
pub(super) fn measure(bench: &mut super::Bench) -> anyhow::Result<()> {
    bench.attempt("generate beside istioctl", istioctl::measure);
    streams::measure(bench)
}

/// Runs `mainstay generate` once.
fn generate(mainstay: &Path, arguments: &[&str], scratch: &Path) -> anyhow::Result<Cost> {
    let program = mainstay.display().to_string();
    cost_of(
        &[&[program.as_str(), "generate", "--quiet"], arguments].concat(),
        scratch,
    )
}
