//! Installed releases: from objects with our labels, derives facts about control planes and webhooks, and
//! detects drift.

use std::collections::BTreeSet;
use std::sync::Arc;

use mainstay_api::ObjectMeta;
use mainstay_cluster::apply::Change;
use mainstay_cluster::compare::Difference;
use mainstay_cluster::desired::{Desired, ObjectId};
use mainstay_cluster::live::Known;
use mainstay_mesh::plan::{Release, ReleaseKey};
use mainstay_mesh::snapshot::{DaemonSet, Deployment, ReleaseFact, ServiceReference, Webhook, WebhookClient};
use mainstay_mesh::{Observation, Subject};
use serde_json::Value;

use super::Reconciler;
use super::objects::text;

/// A release as it was last installed.
#[derive(Clone, Debug)]
pub struct InstalledRelease {
    /// The chart and values it was rendered from.
    pub release: Arc<Release>,
    /// The rendered objects.
    pub desired: Arc<Desired>,
}

impl Reconciler {
    /// Records an object with our labels.
    pub fn observe_managed(&mut self, id: &ObjectId, object: Value) {
        let object = Arc::new(object);
        if self.live.observe(id.clone(), object.clone()) {
            self.record_fact(id, Some(&object));
            self.update_releases(id, &object);
        }
    }

    /// Records that an object was deleted or lost our labels; `last` is its last version.
    pub fn remove_managed(&mut self, id: &ObjectId, last: &Value) {
        if self.live.remove(id, last) {
            self.record_fact(id, None);
            self.record_loss(id);
        }
    }

    /// Ends a list of all objects of a kind: objects that are not in `listed` were deleted.
    pub fn finish_managed_list(&mut self, group: &str, kind: &str, listed: &BTreeSet<ObjectId>) {
        for id in self.live.retain(group, kind, listed) {
            self.record_fact(&id, None);
            self.record_loss(&id);
        }
    }

    /// Returns the live objects of a release that is to be installed.
    #[must_use]
    pub fn known(&self, desired: &Desired) -> Known {
        self.live.extract(desired)
    }

    /// Returns the rendered objects if exactly this release was installed last.
    #[must_use]
    pub fn rendered(&self, release: &Release) -> Option<Arc<Desired>> {
        let installed = self.installed.get(&release.key)?;
        (*installed.release == *release).then(|| installed.desired.clone())
    }

    /// Records changes of objects from write responses, which are newer than any watch event.
    pub fn changed(&mut self, changes: &[Change]) {
        for change in changes {
            if self.live.record(change.id.clone(), change.live.clone()) {
                self.record_fact(&change.id, change.live.as_deref());
            }
        }
    }

    /// Records that a release was installed, and checks for drift: events during the installation were
    /// compared with the previous desired state.
    pub fn finish_install(&mut self, release: &Arc<Release>, desired: Arc<Desired>) {
        let drifted = desired.objects.iter().find_map(|wanted| {
            let live = self.live.get(&wanted.id).map(|live| &**live);
            Some((&wanted.id, desired.drift(&wanted.id, live)?))
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

    /// Begins an uninstallation and returns the live objects: from now on, deletions are not drift.
    pub fn begin_uninstall(&mut self, key: &ReleaseKey) -> Known {
        self.installed.remove(key);
        self.live.release(key)
    }

    /// Ends an uninstallation.
    pub fn finish_uninstall(&mut self, key: &ReleaseKey) {
        let fact = if self.live.release(key).is_empty() {
            ReleaseFact::Absent
        } else {
            ReleaseFact::Present
        };
        self.observe(Observation::Release(key.clone(), fact));
    }

    /// Finds releases that were installed by an earlier process and may not be desired any more.
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

    /// Updates the releases of an object that changed.
    fn update_releases(&mut self, id: &ObjectId, object: &Value) {
        self.mark_drifted(id, |installed| installed.desired.drift(id, Some(object)));
        for key in keys(object) {
            let is_leftover = self
                .installed
                .get(&key)
                .is_some_and(|known| !known.desired.contains(id));
            let fact = match self.snapshot.release(&key) {
                None | Some(ReleaseFact::Absent) => ReleaseFact::Present,
                Some(ReleaseFact::Applied(_)) if is_leftover => ReleaseFact::Drifted,
                Some(_) => continue,
            };
            if self.is_ours(&key) {
                self.observe(Observation::Release(key, fact));
            }
        }
    }

    /// Updates the releases of a deleted object: a release may have drifted, or its uninstallation may be
    /// complete.
    fn record_loss(&mut self, id: &ObjectId) {
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

    fn mark_drifted(&mut self, id: &ObjectId, drift: impl Fn(&InstalledRelease) -> Option<Difference>) {
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

    /// UIDs of all objects that may own releases.
    fn owners(&self) -> Vec<String> {
        let snapshot = &self.snapshot;
        let revisions = snapshot.revisions().iter().map(|object| &object.metadata);
        let tags = snapshot.tags().iter().map(|object| &object.metadata);
        let cnis = snapshot.cnis().iter().map(|object| &object.metadata);
        let ztunnels = snapshot.ztunnels().iter().map(|object| &object.metadata);
        let all = revisions.chain(tags).chain(cnis).chain(ztunnels);
        all.map(|metadata: &ObjectMeta| metadata.uid.clone()).collect()
    }

    /// Records the facts that plans read from an object with our labels.
    fn record_fact(&mut self, id: &ObjectId, object: Option<&Value>) {
        let key = || (id.namespace.clone(), id.name.clone());
        match (id.group.as_str(), id.kind.as_str()) {
            ("apps", "Deployment") => {
                let (namespace, name) = key();
                self.observe(Observation::Deployment(namespace, name, object.map(deployment)));
            }
            ("apps", "DaemonSet") => {
                let (namespace, name) = key();
                self.observe(Observation::DaemonSet(namespace, name, object.map(daemonset)));
            }
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => match object.map(webhook) {
                Some(Ok(webhook)) => self.observe(Observation::Webhook(webhook)),
                Some(Err(error)) => {
                    tracing::warn!(object = %id, %error, "cannot decode a webhook configuration");
                }
                None => self.observe(Observation::Gone(Subject::Webhook(id.name.clone()))),
            },
            _ => {}
        }
    }
}

/// Returns the releases an object belongs to, one per owner.
fn keys(object: &Value) -> Vec<ReleaseKey> {
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
        owner: text(owner, "/uid").to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    owners.into_iter().flatten().map(key).collect()
}

fn count(object: &Value, pointer: &str) -> i32 {
    let number = object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default();
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn deployment(object: &Value) -> Deployment {
    Deployment {
        replicas: count(object, "/status/replicas"),
        ready: count(object, "/status/readyReplicas"),
    }
}

fn daemonset(object: &Value) -> DaemonSet {
    DaemonSet {
        scheduled: count(object, "/status/currentNumberScheduled"),
        ready: count(object, "/status/numberReady"),
    }
}

fn webhook(object: &Value) -> Result<Webhook, serde_json::Error> {
    let mut metadata: ObjectMeta =
        serde_json::from_value(object.get("metadata").cloned().unwrap_or_default())?;
    metadata.labels.clear();
    metadata
        .annotations
        .retain(|name, _| name.starts_with("sailoperator.io/readinessProbe."));
    let client = object.pointer("/webhooks/0").map(|first| WebhookClient {
        service: first.pointer("/clientConfig/service").map(service),
        ca_bundle: decode_base64(text(first, "/clientConfig/caBundle")).into(),
    });
    Ok(Webhook { metadata, client })
}

fn service(service: &Value) -> ServiceReference {
    let port = service.get("port").and_then(Value::as_u64);
    ServiceReference {
        namespace: text(service, "/namespace").to_owned(),
        name: text(service, "/name").to_owned(),
        port: port.and_then(|port| port.try_into().ok()),
    }
}

/// Decodes base64, which the server has validated; invalid input counts as empty.
fn decode_base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap_or_default()
}
