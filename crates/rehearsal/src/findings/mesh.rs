//! Findings about control planes that do not become ready, are not removed, or differ too much in version.

use mainstay_catalog::{Catalog, Version};
use mainstay_mesh::PruneDecision;
use mainstay_mesh::references::ReferrerKey;

use super::{Class, finding};
use crate::compose::{Rehearsal, format_count};
use crate::input::text;
use crate::report::{Finding, FindingKind};

/// Maximum number of referrers listed in a finding.
const MAX_LISTED_REFERRERS: usize = 5;

pub(super) fn add_findings(rehearsal: &Rehearsal<'_>, found: &mut Vec<Finding>) {
    let istio = format!("Istio {}", rehearsal.planned.istio.name());
    let final_state = &rehearsal.recording.final_state;
    if rehearsal.recording.ready.is_none() {
        found.push(finding(
            Class::error(FindingKind::ControlPlaneFails),
            istio.clone(),
            format!(
                "new revision does not become ready: {} {}",
                final_state.health.0, final_state.health.1
            ),
            "fix the reported cause",
        ));
    }
    for (subject, why) in &rehearsal.recording.rejections {
        let class = Class::warning(FindingKind::ControlPlaneFails);
        found.push(finding(
            class,
            subject.clone(),
            format!("a write is rejected: {why}"),
            "",
        ));
    }
    check_hold(rehearsal, &istio, found);
    check_remaining_revisions(rehearsal, found);
    check_skew(rehearsal, &istio, found);
}

fn check_hold(rehearsal: &Rehearsal<'_>, istio: &str, found: &mut Vec<Finding>) {
    let Some(preview) = &rehearsal.recording.final_state.preview else {
        return;
    };
    let waiting: usize = preview.batches.iter().map(Vec::len).sum();
    if waiting == 0 {
        return;
    }
    let waiting = format_count(waiting, "workload is", "workloads are");
    let what = match &preview.held {
        Some((reason, message)) => format!("{waiting} not moved ({reason}): {message}"),
        None => format!("{waiting} not moved"),
    };
    let class = Class::error(FindingKind::Held);
    found.push(finding(
        class,
        istio,
        what,
        "change the setting that keeps the migration on hold",
    ));
}

fn check_remaining_revisions(rehearsal: &Rehearsal<'_>, found: &mut Vec<Finding>) {
    for left in &rehearsal.recording.final_state.remaining {
        let (name, decision, referrers) = (&left.revision, &left.decision, &left.referrers);
        let what = match decision {
            PruneDecision::InUse => {
                let mut names: Vec<String> = referrers.iter().map(|(key, _)| format_referrer(key)).collect();
                names.sort();
                names.dedup();
                let more = names.len().saturating_sub(MAX_LISTED_REFERRERS);
                names.truncate(MAX_LISTED_REFERRERS);
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                format!("not removed: in use by {}{more}", names.join(", "))
            }
            PruneDecision::External => "not removed: another cluster may use it".to_owned(),
            _ => "not removed: it is unknown whether it is in use".to_owned(),
        };
        found.push(finding(
            Class::warning(FindingKind::NotPruned),
            format!("IstioRevision {name}"),
            what,
            "move or remove the objects that refer to it",
        ));
    }
}

fn format_referrer(key: &ReferrerKey) -> String {
    match key {
        ReferrerKey::Namespace(name) => format!("Namespace {name}"),
        ReferrerKey::Pod(namespace, name) => format!("Pod {namespace}/{name}"),
        ReferrerKey::Tag(name) => format!("IstioRevisionTag {name}"),
    }
}

fn resolve_version(catalog: &Catalog, name: &str) -> Option<Version> {
    catalog.resolve(name).ok()
}

/// Maximum difference of minor versions between revisions: "jumping across two minor versions is supported"
/// for canary upgrades (Istio, *Canary Upgrades*, `/docs/setup/upgrade/canary/`). In-place upgrades, which
/// must not skip a minor version, are never rehearsed.
const MAX_UPGRADE_SKEW: u64 = 2;
/// Maximum difference of minor versions in a documented downgrade (Istio, *In-place Upgrades*, downgrade
/// prerequisites, `/docs/setup/upgrade/in-place/`).
const MAX_DOWNGRADE_SKEW: u64 = 1;

/// Checks version skew.
///
/// Every proxy is served by the control plane that injected it, so a revision and its proxies never differ
/// ("we recommend using revisions so that there is no skew at all": Istio, *Supported Releases*,
/// `/docs/releases/supported-releases/`). Therefore only the difference between the control planes is
/// checked, and that to the CNI plugin and ztunnel, which all revisions share.
fn check_skew(rehearsal: &Rehearsal<'_>, istio: &str, found: &mut Vec<Finding>) {
    if let Some(old) = resolve_version(rehearsal.catalog, &rehearsal.planned.istio.spec.version) {
        found.extend(check_upgrade_skew(istio, &old, rehearsal.version));
    }
    let ambient = rehearsal.input.count("ZTunnel") > 0;
    for (kind, newer) in [("IstioCNI", u64::from(!ambient)), ("ZTunnel", 0)] {
        for object in rehearsal.input.of_kind(kind) {
            let subject = format!("{kind} {}", text(&object, "/metadata/name"));
            if let Some(other) = resolve_version(rehearsal.catalog, text(&object, "/spec/version")) {
                found.extend(check_shared_component(subject, &other, rehearsal.version, newer));
            }
        }
    }
}

fn check_upgrade_skew(istio: &str, old: &Version, new: &Version) -> Option<Finding> {
    let (from, to) = (old.name(), new.name());
    let apart = old.minor().1.abs_diff(new.minor().1);
    let leaps = old.minor().0 != new.minor().0;
    let (class, what, remedy) = if new < old && (leaps || apart > MAX_DOWNGRADE_SKEW) {
        (
            Class::error(FindingKind::VersionSkew),
            format!(
                "{to} is older than {from} by more than one minor version: Istio documents no such downgrade"
            ),
            "downgrade one minor version at a time",
        )
    } else if new < old {
        (
            Class::warning(FindingKind::VersionSkew),
            format!("{to} is older than {from} and lacks its new features"),
            "make sure that no configuration uses features of the newer version",
        )
    } else if leaps || apart > MAX_UPGRADE_SKEW {
        (
            Class::warning(FindingKind::VersionSkew),
            format!("{from} and {to} are more than two minor versions apart"),
            "upgrade through an intermediate version, at most two minor versions at a time",
        )
    } else {
        return None;
    };
    Some(finding(class, istio, what, remedy))
}

/// Checks the version of a component that all revisions share and that the upgrade does not change. It may
/// be one minor version older. In ambient mode, ztunnel and the CNI plugin may not be newer (Istio,
/// *Upgrade with Helm* of ambient mode, `/docs/ambient/upgrade/helm/`). In a sidecar mesh, the CNI plugin
/// may be newer by one minor version (Istio, *Install the Istio CNI node agent*,
/// `/docs/setup/additional-setup/cni/`). `newer` is the number of minor versions by which the component may
/// be newer.
fn check_shared_component(subject: String, other: &Version, new: &Version, newer: u64) -> Option<Finding> {
    let ((major, minor), (new_major, new_minor)) = (other.minor(), new.minor());
    let (here, there) = (other.name(), new.name());
    let (what, remedy) = if major != new_major || minor.abs_diff(new_minor) > 1 {
        (
            format!("stays at {here}, more than one minor version from {there}"),
            "upgrade it as well",
        )
    } else if minor > new_minor + newer {
        (
            format!("stays at {here}, but may not be newer than {there}"),
            "downgrade it first, or upgrade the control plane to its version",
        )
    } else {
        return None;
    };
    let class = Class::warning(FindingKind::VersionSkew);
    Some(finding(class, subject, what, remedy))
}
