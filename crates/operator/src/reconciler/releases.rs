//! Tracks installed releases: derives the state of control planes and webhooks from objects with our
//! labels, and detects drift.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstay_api::ObjectMeta;
use mainstay_cluster::apply::{Change, Drift};
use mainstay_cluster::desired::{Desired, ObjectId};
use mainstay_cluster::live::Known;
use mainstay_mesh::plan::{Release, ReleaseKey};
use mainstay_mesh::snapshot::{DaemonSet, Deployment, ReleaseFact, ServiceReference, Webhook, WebhookClient};
use mainstay_mesh::{Observation, Subject};
use serde_json::Value;

use super::Reconciler;
use crate::object::string_at;

/// The last installed state of a release.
#[derive(Clone, Debug)]
pub struct InstalledRelease {
    /// Chart and values of the release.
    pub release: Arc<Release>,
    /// Rendered objects.
    pub desired: Arc<Desired>,
}

impl Reconciler {
    /// Records an object with our labels.
    pub fn observe_managed(&mut self, id: &ObjectId, object: Value) {
        let object = Arc::new(object);
        if self.live.observe(id.clone(), object.clone()) {
            self.record_state(id, Some(&object));
            self.update_releases(id, &object);
        }
    }

    /// Records that an object was deleted or no longer has our labels. `last` is its last version.
    pub fn remove_managed(&mut self, id: &ObjectId, last: &Value) {
        if self.live.remove(id, last) {
            self.record_state(id, None);
            self.record_removal(id);
        }
    }

    /// Completes a list of all objects of a kind. Records the deletion of objects that are not in `listed`.
    pub fn finish_managed_list(&mut self, group: &str, kind: &str, listed: &BTreeSet<ObjectId>) {
        for id in self.live.retain(group, kind, listed) {
            self.record_state(&id, None);
            self.record_removal(&id);
        }
    }

    /// Returns the live objects that the installation of a release is compared with.
    #[must_use]
    pub fn known_objects(&self, desired: &Desired) -> Known {
        self.live.extract(desired)
    }

    /// Returns the rendered objects of a release if it equals the installed one.
    #[must_use]
    pub fn rendered(&self, release: &Release) -> Option<Arc<Desired>> {
        let installed = self.installed.get(&release.key)?;
        (*installed.release == *release).then(|| installed.desired.clone())
    }

    /// Records changes of objects from write responses, which are newer than all watch events so far.
    pub fn observe_changes(&mut self, changes: &[Change]) {
        for change in changes {
            if self.live.record(change.id.clone(), change.live.clone()) {
                self.record_state(&change.id, change.live.as_deref());
            }
        }
    }

    /// Records that a release was installed, and checks it for drift, because events during the
    /// installation were compared with the previous desired state.
    pub fn finish_install(&mut self, release: &Arc<Release>, desired: Arc<Desired>) {
        let drifted = desired.objects.iter().find_map(|object| {
            let live = self.live.get(&object.id).map(|live| &**live);
            Some((&object.id, desired.drift(&object.id, live)?))
        });
        let fact = match drifted {
            Some((object, why)) => {
                tracing::warn!(release = %release.key, %object, %why, "an installed object differs from its release");
                ReleaseFact::Drifted
            }
            None => ReleaseFact::Applied(release.clone()),
        };
        let installed = InstalledRelease {
            release: release.clone(),
            desired,
        };
        self.installed.insert(release.key.clone(), installed);
        self.observe(Observation::Release(release.key.clone(), fact));
    }

    /// Begins an uninstallation and returns the live objects of the release. From now on, deletions do not
    /// count as drift.
    pub fn begin_uninstall(&mut self, key: &ReleaseKey) -> Known {
        self.installed.remove(key);
        self.live.release(key)
    }

    /// Completes an uninstallation, and records whether objects of the release remain.
    pub fn finish_uninstall(&mut self, key: &ReleaseKey) {
        let fact = if self.live.release(key).is_empty() {
            ReleaseFact::Absent
        } else {
            ReleaseFact::Present
        };
        self.observe(Observation::Release(key.clone(), fact));
    }

    /// Records the releases that an earlier process installed, which may no longer be desired.
    pub(super) fn find_releases(&mut self) {
        let found: Vec<ReleaseKey> = self
            .owners()
            .iter()
            .flat_map(|owner| self.live.releases_of(owner))
            .collect();
        for key in found {
            if self.snapshot.release(&key).is_none() {
                self.observe(Observation::Release(key, ReleaseFact::Present));
            }
        }
    }

    /// Removes the releases of a deleted owner.
    pub(super) fn forget_releases(&mut self, owner: &str) {
        self.installed.retain(|key, _| key.owner != owner);
    }

    /// Updates the releases of a changed object.
    fn update_releases(&mut self, id: &ObjectId, object: &Value) {
        self.mark_drifted(id, |installed| installed.desired.drift(id, Some(object)));
        for key in release_keys(object) {
            let is_obsolete = self
                .installed
                .get(&key)
                .is_some_and(|known| !known.desired.contains(id));
            let fact = match self.snapshot.release(&key) {
                None | Some(ReleaseFact::Absent) => ReleaseFact::Present,
                Some(ReleaseFact::Applied(_)) if is_obsolete => ReleaseFact::Drifted,
                Some(_) => continue,
            };
            if self.is_ours(&key) {
                self.observe(Observation::Release(key, fact));
            }
        }
    }

    /// Updates the releases of a deleted object, because a release may have drifted or its uninstallation
    /// may be complete.
    fn record_removal(&mut self, id: &ObjectId) {
        self.mark_drifted(id, |installed| installed.desired.drift(id, None));
        let facts = self.owners().into_iter().flat_map(|owner| {
            let facts = self.snapshot.releases_of(&owner);
            let leaving = facts
                .filter(|(key, fact)| **fact == ReleaseFact::Present && !self.installed.contains_key(*key));
            leaving.map(|(key, _)| key.clone()).collect::<Vec<_>>()
        });
        let gone: Vec<ReleaseKey> = facts.filter(|key| self.live.release(key).is_empty()).collect();
        for key in gone {
            self.observe(Observation::Release(key, ReleaseFact::Absent));
        }
    }

    fn mark_drifted(&mut self, id: &ObjectId, drift: impl Fn(&InstalledRelease) -> Option<Drift>) {
        let mut drifted = Vec::new();
        for (key, installed) in &self.installed {
            let is_applied = matches!(self.snapshot.release(key), Some(ReleaseFact::Applied(_)));
            if is_applied
                && installed.desired.contains(id)
                && let Some(why) = drift(installed)
            {
                tracing::info!(release = %key, object = %id, %why, "an installed object was changed by another client");
                drifted.push(key.clone());
            }
        }
        for key in drifted {
            self.observe(Observation::Release(key, ReleaseFact::Drifted));
        }
    }

    fn is_ours(&self, key: &ReleaseKey) -> bool {
        self.owners().contains(&key.owner)
    }

    /// Returns the UIDs of all objects that may own releases.
    fn owners(&self) -> Vec<String> {
        let snapshot = &self.snapshot;
        let revisions = snapshot.revisions().iter().map(|object| &object.metadata);
        let tags = snapshot.tags().iter().map(|object| &object.metadata);
        let cnis = snapshot.cnis().iter().map(|object| &object.metadata);
        let ztunnels = snapshot.ztunnels().iter().map(|object| &object.metadata);
        let all = revisions.chain(tags).chain(cnis).chain(ztunnels);
        all.map(|metadata: &ObjectMeta| metadata.uid.clone()).collect()
    }

    /// Records the state of a Deployment, `DaemonSet` or webhook configuration with our labels, which the
    /// planner reads. `object` is `None` if it was deleted.
    fn record_state(&mut self, id: &ObjectId, object: Option<&Value>) {
        let key = || (id.namespace.clone(), id.name.clone());
        match (id.group.as_str(), id.kind.as_str()) {
            ("apps", "Deployment") => {
                let (namespace, name) = key();
                self.observe(Observation::Deployment(
                    namespace,
                    name,
                    object.map(read_deployment),
                ));
            }
            ("apps", "DaemonSet") => {
                let (namespace, name) = key();
                self.observe(Observation::DaemonSet(
                    namespace,
                    name,
                    object.map(read_daemonset),
                ));
            }
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => {
                match object.map(read_webhook) {
                    Some(Ok(webhook)) => self.observe(Observation::Webhook(webhook)),
                    Some(Err(error)) => {
                        tracing::warn!(object = %id, %error, "cannot decode a webhook configuration");
                    }
                    None => self.observe(Observation::Gone(Subject::Webhook(id.name.clone()))),
                }
            }
            _ => {}
        }
    }
}

/// Returns the keys of the releases to which an object belongs, one per owner.
fn release_keys(object: &Value) -> Vec<ReleaseKey> {
    let annotation = |name: &str| object.pointer("/metadata/annotations")?.get(name)?.as_str();
    let (Some(name), Some(namespace)) = (
        annotation("meta.helm.sh/release-name"),
        annotation("meta.helm.sh/release-namespace"),
    ) else {
        return Vec::new();
    };
    let owners = object
        .pointer("/metadata/ownerReferences")
        .and_then(Value::as_array);
    let key = |owner: &Value| ReleaseKey {
        owner: string_at(owner, "/uid").to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    owners.into_iter().flatten().map(key).collect()
}

fn i32_at(object: &Value, pointer: &str) -> i32 {
    let number = object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default();
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn read_deployment(object: &Value) -> Deployment {
    Deployment {
        replicas: i32_at(object, "/status/replicas"),
        ready: i32_at(object, "/status/readyReplicas"),
    }
}

fn read_daemonset(object: &Value) -> DaemonSet {
    DaemonSet {
        scheduled: i32_at(object, "/status/currentNumberScheduled"),
        ready: i32_at(object, "/status/numberReady"),
    }
}

fn read_webhook(object: &Value) -> Result<Webhook, serde_json::Error> {
    let mut metadata: ObjectMeta =
        serde_json::from_value(object.get("metadata").cloned().unwrap_or_default())?;
    metadata.labels.clear();
    metadata
        .annotations
        .retain(|name, _| name.starts_with("sailoperator.io/readinessProbe."));
    let client = object.pointer("/webhooks/0").map(|first| WebhookClient {
        service: first.pointer("/clientConfig/service").map(read_service_reference),
        ca_bundle: decode_base64(string_at(first, "/clientConfig/caBundle")).into(),
    });
    Ok(Webhook { metadata, client })
}

fn read_service_reference(service: &Value) -> ServiceReference {
    let port = service.get("port").and_then(Value::as_u64);
    ServiceReference {
        namespace: string_at(service, "/namespace").to_owned(),
        name: string_at(service, "/name").to_owned(),
        port: port.and_then(|port| port.try_into().ok()),
    }
}

/// Decodes base64 that the API server has validated. Returns an empty result for invalid input.
fn decode_base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap_or_default()
}
