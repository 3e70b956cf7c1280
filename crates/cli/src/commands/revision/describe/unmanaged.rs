//! Details of a control plane that no operator manages.

use std::fmt::Write as _;

use mainstay_cluster::survey::{Survey, UnmanagedPlane};
use serde::Serialize;

use super::{Referrer, facts, or_dash, used_by};
use crate::commands::revision::{Format, structured};
use crate::error::CliError;
use crate::report::{ADOPT_HINT, UnmanagedReport, referrers, tag_referrers, unmanaged_report};
use crate::ui::style::HINT;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    #[serde(flatten)]
    plane: UnmanagedReport,
    referrers: Vec<Referrer>,
}

/// Formats the details of a control plane.
pub(super) fn page(found: &Survey, plane: &UnmanagedPlane, format: Format) -> Result<String, CliError> {
    let description = describe(found, plane);
    match format {
        Format::Text | Format::Wide => Ok(text(&description, format == Format::Wide)),
        other => structured(&description, other),
    }
}

fn describe(found: &Survey, plane: &UnmanagedPlane) -> Description {
    let mut all = referrers(&found.snapshot, &plane.revision);
    for tag in plane.tags.iter().filter(|tag| **tag != plane.revision) {
        all.extend(tag_referrers(&found.snapshot, tag));
    }
    Description {
        plane: unmanaged_report(found, plane),
        referrers: all.into_iter().map(|(who, why)| Referrer { who, why }).collect(),
    }
}

fn text(description: &Description, wide: bool) -> String {
    let plane = &description.plane;
    let mut out = facts(&[
        ("Name", plane.revision.clone()),
        ("Version", plane.version.clone()),
        ("Namespace", plane.namespace.clone()),
        ("Deployment", plane.deployment.clone()),
        ("Installed by", plane.installed_by.clone()),
        ("Control plane", plane.control_plane.clone()),
        ("Tags", or_dash(&plane.tags.join(", "))),
        ("In use by", plane.in_use_by.to_string()),
    ]);
    out.push_str(&used_by(&description.referrers, wide));
    let _ = writeln!(
        out,
        "\nNo operator manages this control plane.\n{HINT}hint:{HINT:#} {ADOPT_HINT}"
    );
    out
}
