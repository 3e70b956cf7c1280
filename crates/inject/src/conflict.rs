//! Findings about the user's own containers and volumes with reserved names. Pure.

use mainstay_yaml::NodeId;

use crate::ask::Ask;
use crate::profile::{INITIALIZER, SERVICE_MESH};
use crate::record::{self, Lookup, Record};
use crate::rejection::reject;
use crate::select::Found;
use crate::tree::View;
use crate::undo::kept_containers;
use crate::{Code, Finding, Options, Severity};

/// Returns a finding if the shared volume is not an `emptyDir`: a warning, or an error where the profile says
/// so.
pub(crate) fn volume(view: &View<'_>, spec: NodeId, ask: &Ask, options: &Options) -> Option<Finding> {
    let profile = options.profile;
    let volumes = view.get(spec, "volumes").filter(|_| !ask.is_nothing())?;
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
    let mut finding = reject(view, volume, Code::NameConflict, message, help);
    finding.severity = profile.foreign_volume;
    Some(finding)
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
