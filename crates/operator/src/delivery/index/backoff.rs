//! Resets back-offs when a user changes or deletes an object.

use mainstay_api::ObjectMeta;

use super::{HostKind, Index};
use crate::delivery::names::{Name, Subject};

/// Identifies an object and its desired state: UID, generation, and whether it is being deleted. Changes of
/// the status do not change the key.
pub(super) type ChangeKey = (String, i64, bool);

fn key(metadata: &ObjectMeta) -> ChangeKey {
    (metadata.uid.clone(), metadata.generation, metadata.is_deleting())
}

impl Index {
    /// Returns the key of an object that a user changes, or `None` if it is not known or of another kind.
    pub(super) fn change_key(&self, kind: HostKind, name: &Name) -> Option<ChangeKey> {
        match kind {
            HostKind::Application => self.applications.get(name).map(|object| key(&object.metadata)),
            HostKind::Deployment => self.deployments.get(name).map(|object| key(&object.metadata)),
            HostKind::Cluster => self.clusters.get(name).map(|object| key(&object.metadata)),
            HostKind::Action => self.actions.get(name).map(|object| key(&object.metadata)),
            HostKind::Revision | HostKind::Inventory | HostKind::Template => None,
        }
    }

    /// Resets the back-off of the subject that a change of an object concerns, and drops the failures of its
    /// steps, so that the change is handled without delay.
    pub(super) fn reset_backoff(&mut self, kind: HostKind, name: &Name) {
        let deployment = match kind {
            HostKind::Application => return self.queue.reset(&Subject::Application(name.clone())),
            HostKind::Cluster => return self.queue.reset(&Subject::Cluster(name.clone())),
            HostKind::Deployment => name.clone(),
            HostKind::Action => match self.actions.get(name) {
                Some(action) => Name::new(&name.namespace, &action.spec.deployment_name),
                None => return,
            },
            HostKind::Revision | HostKind::Inventory | HostKind::Template => return,
        };
        self.failures.retain(|(subject, _), _| *subject != deployment);
        self.queue.reset(&Subject::Deployment(deployment));
    }
}
