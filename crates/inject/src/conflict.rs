//! Finds containers and volumes of the user with names or paths that the injection requires.

use mainstay_yaml::NodeId;

use crate::profile::{INITIALIZER, Profile, SERVICE_MESH};
use crate::record::{self, Lookup, Record};
use crate::rejection::reject;
use crate::request::InjectionRequest;
use crate::select::PodTemplate;
use crate::tree::View;
use crate::undo::kept_containers;
use crate::{Code, Finding, Severity};

/// Returns findings about names and paths that the injected parts require and that the user's parts already
/// have.
pub(crate) fn name_conflicts(
    view: &View<'_>,
    pod: &PodTemplate,
    spec: NodeId,
    requirements: &Requirements<'_>,
) -> Vec<Finding> {
    if requirements.request.is_empty() {
        return Vec::new();
    }
    let claim = check_volume_claim(view, pod, requirements.profile);
    let mut findings: Vec<_> = check_volume(view, spec, requirements.profile)
        .into_iter()
        .chain(claim)
        .collect();
    if requirements.request.initializer {
        findings.extend(check_mount_paths(view, spec, requirements.profile));
    }
    findings
}

/// Parts to inject into a pod, and the profile that determines their names.
pub(crate) struct Requirements<'a> {
    pub(crate) request: &'a InjectionRequest,
    pub(crate) profile: &'a Profile,
}

/// Reports a volume with the name of the shared volume that is not an `emptyDir`.
fn check_volume(view: &View<'_>, spec: NodeId, profile: &Profile) -> Option<Finding> {
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

/// Reports a volume claim template with the name of the shared volume: in a `StatefulSet` the claim
/// replaces the volume.
fn check_volume_claim(view: &View<'_>, pod: &PodTemplate, profile: &Profile) -> Option<Finding> {
    let spec = view
        .get(pod.object, "spec")
        .filter(|_| pod.kind == "StatefulSet")?;
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

/// Reports containers that mount something else at the path of the shared volume, which Kubernetes rejects.
fn check_mount_paths(view: &View<'_>, spec: NodeId, profile: &Profile) -> Vec<Finding> {
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
        .filter_map(|id| check_mount_path(view, *id, profile))
        .collect()
}

fn check_mount_path(view: &View<'_>, container: NodeId, profile: &Profile) -> Option<Finding> {
    let items = |list| view.get(container, list).map_or(&[][..], |list| view.items(list));
    let name = |id: NodeId| view.scalar_at(id, &["name"]);
    let mounts = items("volumeMounts");
    if mounts.iter().any(|id| name(*id) == Some(profile.volume)) {
        return None;
    }
    let is_used = |id: NodeId, key| {
        let path = view.scalar_at(id, &[key]);
        path.is_some_and(|path| path.trim_end_matches('/') == profile.mount_path)
    };
    let devices = items("volumeDevices").iter();
    let found = mounts
        .iter()
        .find(|id| is_used(**id, "mountPath"))
        .or_else(|| devices.into_iter().find(|id| is_used(**id, "devicePath")))?;
    let message = format!(
        "container {:?} has volume {:?} at {}, where the initializer's volume is mounted",
        name(container).unwrap_or_default(),
        name(*found).unwrap_or_default(),
        profile.mount_path
    );
    let help = "mount it at another path";
    Some(reject(view, *found, Code::MountPathConflict, message, help))
}

/// Returns notes about init containers that have the name of an injected container but no mark, so that
/// [`Mode::Uninject`](crate::Mode) does not remove them.
pub(crate) fn unmarked_containers(view: &View<'_>, pod: &PodTemplate, spec: NodeId) -> Vec<Finding> {
    let record = match record::find(view, pod.template) {
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
    named
        .map(|(item, name)| unmarked_note(view, item, name))
        .collect()
}

fn unmarked_note(view: &View<'_>, item: NodeId, name: &str) -> Finding {
    let message = format!("init container {name:?} has no injection mark and is kept");
    let help = "remove it manually if it is not yours";
    let finding = reject(view, item, Code::Unmarked, message, help);
    Finding {
        severity: Severity::Note,
        ..finding
    }
}
