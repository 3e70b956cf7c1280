//! Installs, verifies and uninstalls the components of an `IstioOperator`: executes the plans of
//! [`mainstay_manifest`].
//!
//! ```text
//! plan ──▶ namespace ──▶ inventories ──▶ components, each after its parent is ready ──▶ prune
//! ```
//!
//! Every object belongs to one set: the objects that all revisions share, the objects of one revision, or
//! the tags. The inventory of a set is a `ConfigMap`, the parent of an `ApplySet`. *Invariant:* the
//! inventory lists the kinds of a set before the first of its objects is written and until the last one
//! is deleted, so that an interrupted run can be continued or undone.

mod api;
mod cluster_facts;
mod components;
mod error;
mod member;
mod readiness;
mod sets;
mod tags;
mod uninstall;
mod verify;
mod wait;

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Client;
use mainstay_manifest::{ComponentName, InstallationPlan};
use mainstay_mesh::plan::ReleaseKey;
use serde_json::Value;

pub use api::ServedKind;
pub use cluster_facts::{ClusterFacts, read_cluster_facts};
pub use components::{ComponentOutcome, InstallEvent, InstallOutcome};
pub use error::InstallError;
pub use readiness::{Readiness, readiness};
pub use sets::{InstalledSet, SetName, installed_sets};
pub use tags::LiveRevisionTag;
pub use uninstall::{RemovalEvent, RemovalPlan, UninstallRequest};
pub use verify::{Problem, VerifiedObject};

use crate::apply::{Engine, Preview};

/// Installs, verifies and uninstalls control planes.
pub struct Installer {
    client: Client,
    engine: Engine,
    readiness_timeout: Duration,
}

impl Installer {
    /// Creates an installer. A component that is not ready within `readiness_timeout` fails.
    #[must_use]
    pub fn new(client: Client, readiness_timeout: Duration) -> Self {
        Self {
            engine: Engine::new(client.clone()),
            client,
            readiness_timeout,
        }
    }

    /// Returns a preview of each object that an installation would write.
    pub async fn preview(&self, plan: &InstallationPlan) -> Result<Vec<Preview>, InstallError> {
        let accepted = self.accepted_sets().await?;
        let mut previews = Vec::new();
        for planned in &plan.components {
            let key = set_key(plan, planned.component);
            let objects = member::to_json(&planned.objects)?;
            let applied = |error| InstallError::apply(planned.component, error);
            let (served, unserved) = self.engine.split_served(objects).await.map_err(applied)?;
            let desired = self.engine.desired(key, None, served).await.map_err(applied)?;
            let desired = desired.with_accepted_sets(accepted.clone());
            previews.extend(self.engine.preview(&desired).await.map_err(applied)?);
            previews.extend(unserved.into_iter().filter_map(unserved_preview));
        }
        Ok(previews)
    }

    /// Returns the served kinds of a plan's objects that are not in `known`, and adds all kinds of the
    /// plan to `known`.
    pub async fn new_kinds(
        &self,
        plan: &InstallationPlan,
        known: &mut BTreeSet<String>,
    ) -> Result<Vec<ServedKind>, InstallError> {
        let mut new = BTreeSet::new();
        for planned in &plan.components {
            let objects = member::to_json(&planned.objects)?;
            let ids = objects
                .iter()
                .filter_map(|object| crate::desired::ObjectId::from_object(object).ok());
            new.extend(ids.map(|id| id.group_kind()).filter(|kind| !known.contains(kind)));
        }
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let served = api::discover(&self.client, &new).await?;
        known.extend(new);
        Ok(served)
    }

    /// Returns the IDs of the sets of all installations. Objects may move between them.
    async fn accepted_sets(&self) -> Result<Vec<String>, InstallError> {
        let sets = installed_sets(&self.client).await?;
        Ok(sets.iter().map(|set| crate::desired::set_id(&set.key)).collect())
    }
}

fn unserved_preview(after: Value) -> Option<Preview> {
    Some(Preview {
        id: crate::desired::ObjectId::from_object(&after).ok()?,
        before: None,
        after,
        is_exact: false,
    })
}

/// Returns the key of the set of a component. All revisions share the objects of `Base`.
fn set_key(plan: &InstallationPlan, component: ComponentName) -> ReleaseKey {
    let set = match component {
        ComponentName::Base => SetName::Shared,
        _ => SetName::Revision(plan.revision.clone()),
    };
    set.key(&plan.namespace)
}
