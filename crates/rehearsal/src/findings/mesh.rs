//! The control planes themselves: those that do not come up, do not go, or are too far apart.

use mainstay_catalog::{Catalog, Version};
use mainstay_mesh::PruneDecision;
use mainstay_mesh::references::ReferrerKey;

use super::finding;
use crate::compose::{Play, counted};
use crate::input::text;
use crate::report::{Finding, FindingKind, Severity};

/// How many referrers a finding names.
const NAMED: usize = 5;

/// Findings about control planes.
pub(super) fn find(play: &Play<'_>, found: &mut Vec<Finding>) {
    let istio = format!("Istio {}", play.plot.istio.name());
    let finale = &play.recording.finale;
    if play.recording.ready.is_none() {
        found.push(finding(
            (Severity::Error, FindingKind::ControlPlaneFails),
            istio.clone(),
            format!(
                "the new revision does not become ready: {} {}",
                finale.health.0, finale.health.1
            ),
            "mend what the message names",
        ));
    }
    for (subject, why) in &play.recording.refusals {
        let sort = (Severity::Warning, FindingKind::ControlPlaneFails);
        found.push(finding(
            sort,
            subject.clone(),
            format!("a step is refused: {why}"),
            "",
        ));
    }
    held(play, &istio, found);
    remaining(play, found);
    skew(play, &istio, found);
}

fn held(play: &Play<'_>, istio: &str, found: &mut Vec<Finding>) {
    let Some(preview) = &play.recording.finale.preview else {
        return;
    };
    let waiting: usize = preview.batches.iter().map(Vec::len).sum();
    if waiting == 0 {
        return;
    }
    let waiting = counted(waiting, "workload is", "workloads are");
    let what = match &preview.held {
        Some((reason, message)) => format!("{waiting} not moved ({reason}): {message}"),
        None => format!("{waiting} not moved"),
    };
    let sort = (Severity::Error, FindingKind::Held);
    found.push(finding(sort, istio, what, "change what holds it back"));
}

fn remaining(play: &Play<'_>, found: &mut Vec<Finding>) {
    for left in &play.recording.finale.remaining {
        let (name, prospect, referrers) = (&left.revision, &left.prospect, &left.referrers);
        let what = match prospect {
            PruneDecision::InUse => {
                let mut names: Vec<String> = referrers.iter().map(|(key, _)| named(key)).collect();
                names.sort();
                names.dedup();
                let more = names.len().saturating_sub(NAMED);
                names.truncate(NAMED);
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                format!("it is not removed: in use by {}{more}", names.join(", "))
            }
            PruneDecision::External => "it is not removed: another cluster may use it".to_owned(),
            _ => "it is not removed: nobody can tell whether it is in use".to_owned(),
        };
        found.push(finding(
            (Severity::Warning, FindingKind::NotPruned),
            format!("IstioRevision {name}"),
            what,
            "move or remove what refers to it",
        ));
    }
}

fn named(key: &ReferrerKey) -> String {
    match key {
        ReferrerKey::Namespace(name) => format!("Namespace {name}"),
        ReferrerKey::Pod(namespace, name) => format!("Pod {namespace}/{name}"),
        ReferrerKey::Tag(name) => format!("IstioRevisionTag {name}"),
    }
}

fn resolved(catalog: &Catalog, name: &str) -> Option<Version> {
    catalog.resolve(name).ok()
}

/// How many minor versions a revision may leap: "jumping across two minor versions is supported" when both control planes run side by side,
/// while an upgrade in place takes each one (Istio, *Canary Upgrades*, `/docs/setup/upgrade/canary/`). A rehearsal is always of revisions.
const LEAP: u64 = 2;
/// How many minor versions there is a documented way back (Istio, *In-place Upgrades*, downgrade prerequisites, `/docs/setup/upgrade/in-place/`).
const WAY_BACK: u64 = 1;

/// How far apart versions may be.
///
/// Every proxy is served by the control plane that injected it, so that revisions and their proxies are never apart ("we recommend using revisions
/// so that there is no skew at all": Istio, *Supported Releases*, `/docs/releases/supported-releases/`). What remains is how far the control
/// planes leap, and what all revisions share: network plug-in and node proxy.
fn skew(play: &Play<'_>, istio: &str, found: &mut Vec<Finding>) {
    if let Some(old) = resolved(play.catalog, &play.plot.istio.spec.version) {
        found.extend(leap(istio, &old, play.version));
    }
    let ambient = play.input.of_kind("ZTunnel").next().is_some();
    for (kind, newer) in [("IstioCNI", u64::from(!ambient)), ("ZTunnel", 0)] {
        for object in play.input.of_kind(kind) {
            let subject = format!("{kind} {}", text(object, "/metadata/name"));
            if let Some(other) = resolved(play.catalog, text(object, "/spec/version")) {
                found.extend(shared(subject, &other, play.version, newer));
            }
        }
    }
}

fn leap(istio: &str, old: &Version, new: &Version) -> Option<Finding> {
    let (from, to) = (old.name(), new.name());
    let apart = old.minor().1.abs_diff(new.minor().1);
    let leaps = old.minor().0 != new.minor().0;
    let (severity, what, remedy) = if new < old && (leaps || apart > WAY_BACK) {
        (
            Severity::Error,
            format!(
                "{to} is older than {from} by more than one minor version: there is no documented way back"
            ),
            "go back one minor version at a time",
        )
    } else if new < old {
        (
            Severity::Warning,
            format!("{to} is older than {from}: it does not know what is new in {from}"),
            "make sure that nothing uses what only the newer version knows",
        )
    } else if leaps || apart > LEAP {
        (
            Severity::Warning,
            format!("from {from} to {to} is more than two minor versions"),
            "upgrade over a version between them, at most two minor versions at a time",
        )
    } else {
        return None;
    };
    Some(finding((severity, FindingKind::VersionSkew), istio, what, remedy))
}

/// What serves every revision stays as it is, and must fit the new one. It may be one minor version older; a node proxy may not be newer, nor
/// may the plug-in beside one (Istio, *Upgrade with Helm* of ambient mode, `/docs/ambient/upgrade/helm/`), while the plug-in of sidecars may be
/// newer by one (Istio, *Install the Istio CNI node agent*, `/docs/setup/additional-setup/cni/`).
fn shared(subject: String, other: &Version, new: &Version, newer: u64) -> Option<Finding> {
    let ((major, minor), (new_major, new_minor)) = (other.minor(), new.minor());
    let (here, there) = (other.name(), new.name());
    let (what, remedy) = if major != new_major || minor.abs_diff(new_minor) > 1 {
        (
            format!("it is of {here} and stays so: more than one minor version from {there}"),
            "upgrade it too",
        )
    } else if minor > new_minor + newer {
        (
            format!("it is of {here} and stays so: it may not be newer than {there}"),
            "take it back first, or upgrade the control plane as far",
        )
    } else {
        return None;
    };
    let sort = (Severity::Warning, FindingKind::VersionSkew);
    Some(finding(sort, subject, what, remedy))
}
