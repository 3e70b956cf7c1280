//! Reasons why a part of a mesh is not transferred to Helm.

use crate::session::Skipped;

/// Reason why a component or a chart is not transferred.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SkipReason {
    #[error("gateways have no resource")]
    Gateway,
    #[error("it no longer exists")]
    Deleted,
    #[error("its labels do not match an Istio chart")]
    UnknownChart,
    /// Without the label, the name of the release would have to be added to the pod template.
    #[error("its pods have no label with a release name")]
    NoReleaseName,
    #[error(
        "its pods have the label of release {namespace}/{release}, which already contains the chart {chart}; another release name would restart the pods"
    )]
    DuplicateChart {
        namespace: String,
        release: String,
        chart: &'static str,
    },
    #[error("its chart renders other objects; `helm upgrade` would change them")]
    Different,
}

impl SkipReason {
    /// Returns the entry of the report about `what`.
    pub(super) fn skip(&self, what: String) -> Skipped {
        Skipped {
            what,
            reason: self.to_string(),
        }
    }
}
