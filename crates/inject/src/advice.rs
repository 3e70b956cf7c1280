//! What a workload's annotations deserve to be told: takes a workload, gives findings. Changes nothing.

use crate::workload::Workload;
use crate::{Finding, Options};

/// Findings about the annotations of `workload`; an error keeps it from being injected. Called once for every workload
/// of a runtime class of ours, before anything is planned, in [`Mode::Inject`](crate::Mode) only.
pub(crate) fn advise(_workload: &Workload<'_>, _options: &Options) -> Vec<Finding> {
    Vec::new()
}
