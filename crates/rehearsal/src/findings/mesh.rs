//! The control planes themselves: those that do not come up, do not go, or are too far apart.

use mainstay_catalog::{Catalog, Version};
use mainstay_mesh::Prospect;
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
            Prospect::InUse => {
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
            Prospect::External => "it is not removed: another cluster may use it".to_owned(),
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

/// How far apart versions may be: control planes are upgraded one minor version at a time, a proxy is never newer than its control plane,
/// and the network plug-in serves the versions next to its own.
fn skew(play: &Play<'_>, istio: &str, found: &mut Vec<Finding>) {
    let new = play.version.minor();
    if let Some(old) = resolved(play.catalog, &play.plot.istio.spec.version) {
        let (from, to) = (old.name(), play.version.name());
        if *play.version < old {
            found.push(finding(
                (Severity::Error, FindingKind::VersionSkew),
                istio,
                format!("{to} is older than {from}: proxies may not be newer than their control plane"),
                "go back only while the old revision still runs",
            ));
        } else if old.minor().0 != new.0 || new.1 > old.minor().1 + 1 {
            found.push(finding(
                (Severity::Warning, FindingKind::VersionSkew),
                istio,
                format!("from {from} to {to} is more than one minor version"),
                "upgrade one minor version at a time",
            ));
        }
    }
    for kind in ["IstioCNI", "ZTunnel"] {
        for object in play.input.of_kind(kind) {
            let name = text(object, "/metadata/name");
            let Some(other) = resolved(play.catalog, text(object, "/spec/version")) else {
                continue;
            };
            let apart = other.minor().1.abs_diff(new.1);
            if other.minor().0 != new.0 || apart > 1 {
                found.push(finding(
                    (Severity::Warning, FindingKind::VersionSkew),
                    format!("{kind} {name}"),
                    format!(
                        "it is of {} and stays so: more than one minor version from {}",
                        other.name(),
                        play.version.name()
                    ),
                    "upgrade it too",
                ));
            }
        }
    }
}
