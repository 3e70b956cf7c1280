//! What a workload's annotations deserve to be told: takes a workload, gives findings. Changes nothing.

mod level;
mod mesh;
mod scene;
mod spelling;
mod types;

use crate::workload::Workload;
use crate::{Finding, Options};
use scene::Scene;

/// Findings about the annotations of `workload`; an error keeps it from being injected. Called once for every
/// workload of a runtime class of ours, before anything is planned, in [`Mode::Inject`](crate::Mode) only.
pub(crate) fn advise(workload: &Workload<'_>, options: &Options) -> Vec<Finding> {
    let scene = Scene::of(workload, options);
    let mut findings = spelling::check(&scene);
    findings.extend(level::check(&scene));
    findings.extend(types::check(&scene));
    findings.extend(mesh::check(&scene));
    findings.sort_by_key(|finding| finding.place.offset);
    findings
}

#[cfg(test)]
mod tests;
