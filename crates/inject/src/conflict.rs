//! Findings about the user's own containers and volumes with reserved names. Pure.

use mainstay_yaml::NodeId;

use crate::ask::Ask;
use crate::profile::{INITIALIZER, Profile, SERVICE_MESH};
use crate::record::{self, Lookup, Record};
use crate::rejection::reject;
use crate::select::Found;
use crate::tree::View;
use crate::undo::kept_containers;
use crate::{Code, Finding, Severity};

/// Returns findings about names and paths that the injected parts need and the user's own parts have.
pub(crate) fn taken(view: &View<'_>, found: &Found, spec: NodeId, needed: &Needed<'_>) -> Vec<Finding> {
    if needed.ask.is_nothing() {
        return Vec::new();
    }
    let claim = claim(view, found, needed.profile);
    let mut findings: Vec<_> = volume(view, spec, needed.profile)
        .into_iter()
        .chain(claim)
        .collect();
    if needed.ask.initializer {
        findings.extend(mount_paths(view, spec, needed.profile));
    }
    findings
}

/// What a pod asks for, in the spelling of a profile.
pub(crate) struct Needed<'a> {
    pub(crate) ask: &'a Ask,
    pub(crate) profile: &'a Profile,
}

/// The shared volume exists and is not an `emptyDir`.
fn volume(view: &View<'_>, spec: NodeId, profile: &Profile) -> Option<Finding> {
    let volumes = view.get(spec, "volumes")?;
    let named = |id: &&NodeId| view.scalar_at(**id, &["name"]) == Some(profile.volume);
    let volume = *view.items(volumes).iter().find(named)?;
    if view.get(volume, "emptyDir").is_some() {
        return None;
    }
    let message = format!(
        "volume {:?} is not an emptyDir, and the initializer writes to it",
        profile.volume
    );
    let help = "make it an emptyDir, or give it another name";
    Some(reject(view, volume, Code::NameConflict, message, help))
}

/// A claim of a `StatefulSet` replaces the volume of its name.
fn claim(view: &View<'_>, found: &Found, profile: &Profile) -> Option<Finding> {
    let spec = view
        .get(found.object, "spec")
        .filter(|_| found.kind == "StatefulSet")?;
    let claims = view.get(spec, "volumeClaimTemplates")?;
    let named = |id: &&NodeId| view.scalar_at(**id, &["metadata", "name"]) == Some(profile.volume);
    let claim = *view.items(claims).iter().find(named)?;
    let message = format!(
        "volume claim {:?} would replace the initializer's volume",
        profile.volume
    );
    Some(reject(
        view,
        claim,
        Code::NameConflict,
        message,
        "give it another name",
    ))
}

/// Containers that have something else at the path of the shared volume, which Kubernetes rejects.
fn mount_paths(view: &View<'_>, spec: NodeId, profile: &Profile) -> Vec<Finding> {
    let lists: &[&str] = if profile.mount_in_init_containers {
        &["containers", "initContainers"]
    } else {
        &["containers"]
    };
    let containers = lists
        .iter()
        .filter_map(|list| view.get(spec, list))
        .flat_map(|list| view.items(list))
        .filter(|id| {
            let name = view.scalar_at(**id, &["name"]);
            name.is_none_or(|name| ![INITIALIZER, SERVICE_MESH].contains(&name))
        });
    containers
        .filter_map(|id| mount_path(view, *id, profile))
        .collect()
}

fn mount_path(view: &View<'_>, container: NodeId, profile: &Profile) -> Option<Finding> {
    let items = |list| view.get(container, list).map_or(&[][..], |list| view.items(list));
    let name = |id: NodeId| view.scalar_at(id, &["name"]);
    let mounts = items("volumeMounts");
    if mounts.iter().any(|id| name(*id) == Some(profile.volume)) {
        return None;
    }
    let is_taken = |id: NodeId, key| {
        let path = view.scalar_at(id, &[key]);
        path.is_some_and(|path| path.trim_end_matches('/') == profile.mount_path)
    };
    let devices = items("volumeDevices").iter();
    let found = mounts
        .iter()
        .find(|id| is_taken(**id, "mountPath"))
        .or_else(|| devices.into_iter().find(|id| is_taken(**id, "devicePath")))?;
    let message = format!(
        "container {:?} has volume {:?} at {}, where the initializer's volume is mounted",
        name(container).unwrap_or_default(),
        name(*found).unwrap_or_default(),
        profile.mount_path
    );
    let help = "mount it at another path";
    Some(reject(view, *found, Code::MountPathConflict, message, help))
}

/// In [`Mode::Uninject`](crate::Mode): init containers with names of injected ones that carry no mark, and so
/// stay.
pub(crate) fn unmarked(view: &View<'_>, found: &Found, spec: NodeId) -> Vec<Finding> {
    let record = match record::find(view, found.template) {
        Lookup::Found(recorded) => recorded.record,
        Lookup::Absent | Lookup::Invalid(_) => Record::default(),
    };
    let kept = kept_containers(view, spec, "initContainers", &record);
    let named = kept.into_iter().filter_map(|item| {
        let name = view.scalar_at(item, &["name"])?;
        [INITIALIZER, SERVICE_MESH]
            .contains(&name)
            .then_some((item, name))
    });
    named.map(|(item, name)| note(view, item, name)).collect()
}

fn note(view: &View<'_>, item: NodeId, name: &str) -> Finding {
    let message = format!("init container {name:?} has no mark of an injection, and stays");
    let help = "remove it by hand if it is not yours";
    let finding = reject(view, item, Code::Unmarked, message, help);
    Finding {
        severity: Severity::Note,
        ..finding
    }
}
