//! A volume of our name that the user brought: takes a pod spec, gives what to say about it. The volume itself is never touched.

use mainstay_yaml::NodeId;

use crate::ask::Ask;
use crate::refusal::refuse;
use crate::tree::View;
use crate::{Code, Finding, Options};

/// A finding if the volume that will be shared is no `emptyDir`: a note of caution, or an error where the profile says so.
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
    let mut finding = refuse(view, volume, Code::NameConflict, message, help);
    finding.severity = profile.foreign_volume;
    Some(finding)
}

impl Ask {
    /// The init containers that will be put in anew.
    pub(crate) fn replaced(&self) -> &'static [&'static str] {
        use crate::profile::{INITIALIZER, SERVICE_MESH};
        match (self.initializer, self.mesh.is_some()) {
            (true, true) => &[INITIALIZER, SERVICE_MESH],
            (true, false) => &[INITIALIZER],
            (false, true) => &[SERVICE_MESH],
            (false, false) => &[],
        }
    }
}
