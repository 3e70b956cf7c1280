//! Checks the annotations of a workload and returns findings. No I/O.

mod context;
mod level;
mod mesh;
mod spelling;
mod types;

use crate::workload::Workload;
use crate::{Finding, Options};
use context::AnnotationContext;

/// Returns findings about the annotations of `workload`; an error prevents injection. Called once per
/// workload with a Contrast runtime class, before its edits are planned, in [`Mode::Inject`](crate::Mode)
/// only.
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
