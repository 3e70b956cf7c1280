//! Checks the annotations of a workload and returns findings. Pure.

mod context;
mod level;
mod mesh;
mod spelling;
mod types;

use crate::workload::Workload;
use crate::{Finding, Options};
use context::AnnotationContext;

/// Findings about the annotations of `workload`; an error keeps it from being injected. Called once for every
/// workload of a runtime class of ours, before anything is planned, in [`Mode::Inject`](crate::Mode) only.
pub(crate) fn advise(workload: &Workload<'_>, options: &Options) -> Vec<Finding> {
    let context = AnnotationContext::new(workload, options);
    let mut findings = spelling::check(&context);
    findings.extend(level::check(&context));
    findings.extend(types::check(&context));
    findings.extend(mesh::check(&context));
    findings.sort_by_key(|finding| finding.place.offset);
    findings
}

#[cfg(test)]
mod tests;
