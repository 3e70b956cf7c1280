//! Control planes that no operator manages.

use mainstay_cluster::survey::{Survey, UnmanagedPlane};
use serde::Serialize;

use super::Use;
use crate::ui::table;

/// Hint about unmanaged control planes.
pub(crate) const ADOPT_HINT: &str = "run `mainstay adopt` to see how the operator would manage them";

/// A control plane that no operator manages.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnmanagedReport {
    pub(crate) revision: String,
    pub(crate) namespace: String,
    pub(crate) deployment: String,
    pub(crate) version: String,
    pub(crate) installed_by: String,
    pub(crate) control_plane: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
    pub(crate) in_use_by: Use,
}

/// Returns the unmanaged control planes of a survey.
pub(super) fn reports(survey: &Survey) -> Vec<UnmanagedReport> {
    survey
        .unmanaged
        .iter()
        .map(|plane| report(survey, plane))
        .collect()
}

/// Returns the report of an unmanaged control plane.
pub(crate) fn report(survey: &Survey, plane: &UnmanagedPlane) -> UnmanagedReport {
    UnmanagedReport {
        revision: plane.revision.clone(),
        namespace: plane.namespace.clone(),
        deployment: plane.deployment.clone(),
        version: plane.version.clone().unwrap_or_else(|| "unknown".to_owned()),
        installed_by: plane.installer.to_string(),
        control_plane: format!("{} of {} ready", plane.ready, plane.replicas),
        tags: plane.tags.clone(),
        in_use_by: Use::for_unmanaged(&survey.snapshot, &plane.revision, &plane.tags),
    }
}

/// Formats unmanaged control planes as a section; empty if there are none.
pub(crate) fn section(planes: &[UnmanagedReport]) -> String {
    if planes.is_empty() {
        return String::new();
    }
    let head = [
        "REVISION",
        "VERSION",
        "NAMESPACE",
        "CONTROL PLANE",
        "INSTALLED BY",
        "TAGS",
        "IN USE BY",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for plane in planes {
        let tags = if plane.tags.is_empty() {
            "-".to_owned()
        } else {
            plane.tags.join(",")
        };
        rows.push(vec![
            plane.revision.clone(),
            plane.version.clone(),
            plane.namespace.clone(),
            plane.control_plane.clone(),
            plane.installed_by.clone(),
            tags,
            plane.in_use_by.to_string(),
        ]);
    }
    format!(
        "\nControl planes that no operator manages\n{}  hint: {ADOPT_HINT}\n",
        table::lines("  ", &rows)
    )
}
