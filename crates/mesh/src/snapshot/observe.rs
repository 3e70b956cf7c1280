//! Events into the snapshot: takes one observation, gives the subjects whose plan may differ by it, and no others.
//!
//! A watch shows only what an object is now. Whatever a decision takes from what it *was* comes from the snapshot itself, which
//! still holds it when the event arrives.

use std::collections::BTreeSet;

use mainstay_api::{
    Istio, IstioCni, IstioRevision, IstioRevisionTag, Kind, ObjectKind, Status, ZTunnel, names,
};

use super::wake::controller;
use super::{
    DaemonSet, Deployment, Failure, Namespace, Objects, ProbeResult, ReleaseFact, Snapshot, Source,
    SourceState, Webhook, pointer, requested_tags,
};
use crate::Subject;
use crate::plan::ReleaseKey;
use crate::references::{Labels, Referrer, ReferrerKey};
use crate::workload::{Workload, WorkloadKey};

/// Subjects to plan for.
pub type AffectedSubjects = BTreeSet<Subject>;

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "it lives for one call, and most are large"
)]
pub enum Observation {
    /// An Istio as it is now.
    Istio(Istio),
    /// A revision as it is now.
    Revision(IstioRevision),
    /// A tag as it is now.
    Tag(IstioRevisionTag),
    /// A network plug-in as it is now.
    Cni(IstioCni),
    /// A node proxy as it is now.
    ZTunnel(ZTunnel),
    /// A webhook configuration as it is now.
    Webhook(Webhook),
    /// One of the above is gone.
    Gone(Subject),
    /// A namespace as it is now.
    Namespace {
        /// Its name.
        name: String,
        /// Its identity.
        uid: String,
        /// Its version.
        resource_version: String,
        /// Its labels.
        labels: Labels,
        /// Its annotations.
        annotations: Labels,
        /// Whether it is being deleted.
        terminating: bool,
    },
    /// A pod as it is now.
    Pod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its labels.
        labels: Labels,
        /// Its annotations.
        annotations: Labels,
        /// Whether it succeeded or failed.
        finished: bool,
        /// Whether it is being deleted.
        leaving: bool,
        /// The workload it belongs to.
        workload: Option<WorkloadKey>,
    },
    /// A namespace or a pod is gone.
    ReferrerGone(ReferrerKey),
    /// An istiod Deployment as it is now, by namespace and name; nothing if it is gone.
    Deployment(String, String, Option<Deployment>),
    /// A `DaemonSet` as it is now, by namespace and name; nothing if it is gone.
    DaemonSet(String, String, Option<DaemonSet>),
    /// A workload as it is now; nothing if it is gone.
    Workload(WorkloadKey, Option<Workload>),
    /// What is known of a release now.
    Release(ReleaseKey, ReleaseFact),
    /// What a remote control plane answered, by its webhook configuration.
    Probed(String, ProbeResult),
    /// An attempt on a subject failed.
    Failed(Subject, Failure),
    /// An attempt on a subject got through.
    Succeeded(Subject),
    /// Whether a source can be believed changed.
    Source(Source, SourceState),
}

impl Snapshot {
    /// Takes in what was seen.
    pub fn observe(&mut self, seen: Observation) -> AffectedSubjects {
        match seen {
            Observation::Istio(istio) => self.istio_seen(istio),
            Observation::Revision(revision) => self.revision_seen(revision),
            Observation::Tag(tag) => self.tag_seen(tag),
            Observation::Cni(cni) => self.cni_seen(cni),
            Observation::ZTunnel(ztunnel) => self.ztunnel_seen(ztunnel),
            Observation::Webhook(webhook) => self.webhook_seen(webhook),
            Observation::Gone(subject) => self.gone(&subject),
            Observation::Namespace {
                name,
                uid,
                resource_version,
                labels,
                annotations,
                terminating,
            } => {
                let says =
                    |map: &Labels, key: &str, word: &str| map.get(key).is_some_and(|text| text == word);
                let fact = Namespace {
                    uid,
                    resource_version,
                    terminating,
                    skip_migration: says(&annotations, names::SKIP_MIGRATION, "true"),
                    injection_label: says(&labels, names::INJECTION_LABEL, names::INJECTION_ENABLED),
                };
                self.namespace_seen(&name, &labels, fact)
            }
            Observation::Pod {
                namespace,
                name,
                labels,
                annotations,
                finished,
                leaving,
                workload,
            } => self.observe_referrer(Referrer::Pod {
                namespace: &namespace,
                name: &name,
                labels: &labels,
                annotations: &annotations,
                finished,
                leaving,
                workload: workload.as_ref(),
            }),
            Observation::ReferrerGone(key) => self.referrer_gone(&key),
            Observation::Deployment(namespace, name, fact) => self.deployment_seen((namespace, name), fact),
            Observation::DaemonSet(namespace, name, fact) => self.daemonset_seen((namespace, name), fact),
            Observation::Workload(key, workload) => self.workload_seen(key, workload),
            Observation::Release(key, fact) => self.release_seen(key, fact),
            Observation::Probed(webhook, result) => self.probed(webhook, result),
            Observation::Failed(subject, failure) => {
                self.failures.insert(subject.clone(), failure);
                let mut woken = self.fate_changed(&subject);
                woken.insert(subject);
                woken
            }
            Observation::Succeeded(subject) => self.succeeded(subject),
            Observation::Source(source, state) => self.source_changed(source, state),
        }
    }

    /// Takes in what a namespace or a pod says, without a copy of it: the busiest of all events.
    pub fn observe_referrer(&mut self, referrer: Referrer<'_>) -> AffectedSubjects {
        let Referrer::Pod {
            namespace,
            name,
            workload,
            ..
        } = referrer
        else {
            let names = self.references.upsert(referrer);
            return self.by_names(names);
        };
        let shared = workload.map(|key| self.shared_key(key));
        let before = self.workload_of(namespace, name);
        let names = self.references.upsert(referrer.of(shared.as_ref()));
        let after = self.workload_of(namespace, name);
        let mut woken = self.by_names(names);
        for key in before.iter().chain(&after) {
            woken.extend(self.refresh_workload(key));
        }
        woken
    }

    /// The workload of a pod, where it matters.
    fn workload_of(&self, namespace: &str, pod: &str) -> Option<WorkloadKey> {
        let matters = !self.routes.is_empty();
        let found = self.references.workload_of(namespace, pod);
        found.filter(|_| matters).cloned()
    }

    fn referrer_gone(&mut self, key: &ReferrerKey) -> AffectedSubjects {
        let workload = match key {
            ReferrerKey::Pod(namespace, name) => self.workload_of(namespace, name),
            _ => None,
        };
        let names = self.references.remove(key);
        let mut woken = self.by_names(names);
        if let Some(workload) = workload {
            woken.extend(self.refresh_workload(&workload));
        }
        if let ReferrerKey::Namespace(name) = key
            && self.namespaces.remove(name).is_some()
        {
            woken.extend(self.tenants.of(name).cloned());
            woken.extend(self.refresh_namespace(name));
        }
        woken
    }

    fn istio_seen(&mut self, istio: Istio) -> AffectedSubjects {
        let name = istio.name().to_owned();
        let mut woken = self.around_istio(&name);
        let claims = requested_tags(&istio);
        if let Some(old) = self.istios.insert(istio) {
            self.drop_claims(&old);
        }
        for tag in claims {
            self.claims.insert(tag, name.clone());
        }
        woken.extend(self.around_istio(&name));
        woken.extend(self.reroute(&name));
        woken.extend(self.stir_namespaces(&name));
        woken.insert(Subject::istio(name));
        woken
    }

    fn revision_seen(&mut self, revision: IstioRevision) -> AffectedSubjects {
        let name = revision.name().to_owned();
        let mut woken = self.around_revision(&name);
        let subject = Subject::revision(&name);
        self.move_tenant(
            &subject,
            old_home(&self.revisions, &name),
            Some(revision.spec.namespace.clone()),
        );
        let owners = revision.metadata.owner_references.clone();
        let old = self.revisions.insert(revision);
        if old.is_none_or(|old| old.metadata.owner_references != owners) {
            woken.extend(self.refresh_all());
        }
        woken.extend(self.around_revision(&name));
        woken.insert(subject);
        woken
    }

    fn tag_seen(&mut self, tag: IstioRevisionTag) -> AffectedSubjects {
        let name = tag.name().to_owned();
        let mut woken = self.around_tag(&name);
        self.drop_pointer(
            &Subject::tag(&name),
            self.tags.get(&name).map(|tag| pointer(&tag.spec.target_ref)),
        );
        self.pointers
            .insert(pointer(&tag.spec.target_ref), Subject::tag(&name));
        let flipped = self.references.upsert(Referrer::Tag {
            name: &name,
            revision: &tag.status.istio_revision,
        });
        let leads = (tag.spec.target_ref.clone(), tag.status.istio_revision.clone());
        let old = self.tags.insert(tag);
        if old.is_none_or(|old| (old.spec.target_ref, old.status.istio_revision) != leads) {
            woken.extend(self.refresh_all());
        }
        woken.extend(self.by_names(flipped));
        woken.extend(self.around_tag(&name));
        woken.insert(Subject::tag(name));
        woken
    }

    fn cni_seen(&mut self, cni: IstioCni) -> AffectedSubjects {
        let subject = Subject::cni(cni.name());
        let home = cni.spec.namespace.clone();
        self.move_tenant(&subject, old_home(&self.cnis, subject.name()), Some(home));
        let state = Some(cni.status.state().clone());
        let old = self.cnis.insert(cni);
        self.dependency_changed(subject, old.map(|old| old.status.state) != state)
    }

    fn ztunnel_seen(&mut self, ztunnel: ZTunnel) -> AffectedSubjects {
        let subject = Subject::ztunnel(ztunnel.name());
        let home = ztunnel.spec.namespace.clone();
        self.move_tenant(&subject, old_home(&self.ztunnels, subject.name()), Some(home));
        let old = self
            .ztunnels
            .get(subject.name())
            .and_then(|old| old.spec.target_ref.as_ref());
        self.drop_pointer(&subject, old.map(pointer));
        if let Some(target) = &ztunnel.spec.target_ref {
            self.pointers.insert(pointer(target), subject.clone());
        }
        let state = Some(ztunnel.status.state().clone());
        let old = self.ztunnels.insert(ztunnel);
        self.dependency_changed(subject, old.map(|old| old.status.state) != state)
    }

    /// Revisions look at the state of plug-in and node proxy, and at nothing else of them.
    fn dependency_changed(&self, subject: Subject, state_changed: bool) -> AffectedSubjects {
        let mut woken = AffectedSubjects::from([subject]);
        if state_changed {
            woken.extend(
                self.revisions
                    .iter()
                    .map(|revision| Subject::revision(revision.name())),
            );
        }
        woken
    }

    fn webhook_seen(&mut self, webhook: Webhook) -> AffectedSubjects {
        let name = webhook.metadata.name.clone();
        if self.webhooks.get(&name) == Some(&webhook) {
            return AffectedSubjects::new();
        }
        let mut woken = AffectedSubjects::from([Subject::Webhook(name.clone())]);
        woken.extend(controller(&webhook.metadata));
        self.webhooks.insert(name, webhook);
        woken
    }

    fn gone(&mut self, subject: &Subject) -> AffectedSubjects {
        self.failures.remove(subject);
        match subject {
            Subject::Webhook(name) => {
                self.probes.remove(name);
                let old = self.webhooks.remove(name);
                old.and_then(|webhook| controller(&webhook.metadata))
                    .into_iter()
                    .collect()
            }
            Subject::Workload(key) => self.workload_seen(key.clone(), None),
            Subject::Namespace(name) => self.referrer_gone(&ReferrerKey::Namespace(name.clone())),
            Subject::Object(ObjectKind::Istio, name) => self.istio_gone(name),
            Subject::Object(ObjectKind::IstioRevision, name) => self.revision_gone(name),
            Subject::Object(ObjectKind::IstioRevisionTag, name) => self.tag_gone(name),
            Subject::Object(ObjectKind::IstioCni, name) => {
                self.move_tenant(subject, old_home(&self.cnis, name), None);
                let old = self.cnis.remove(name);
                self.forget_releases(old.map(|old| old.metadata.uid));
                self.all_revisions()
            }
            Subject::Object(ObjectKind::ZTunnel, name) => {
                self.move_tenant(subject, old_home(&self.ztunnels, name), None);
                let old = self.ztunnels.remove(name);
                let target = old
                    .as_ref()
                    .and_then(|old| old.spec.target_ref.as_ref())
                    .map(pointer);
                self.drop_pointer(subject, target);
                self.forget_releases(old.map(|old| old.metadata.uid));
                self.all_revisions()
            }
        }
    }

    fn istio_gone(&mut self, name: &str) -> AffectedSubjects {
        let mut woken = self.around_istio(name);
        if let Some(old) = self.istios.remove(name) {
            self.drop_claims(&old);
        }
        woken.extend(self.reroute(name));
        woken.remove(&Subject::istio(name));
        woken
    }

    fn revision_gone(&mut self, name: &str) -> AffectedSubjects {
        let mut woken = self.around_revision(name);
        self.move_tenant(&Subject::revision(name), old_home(&self.revisions, name), None);
        let old = self.revisions.remove(name);
        self.forget_releases(old.map(|old| old.metadata.uid));
        woken.extend(self.refresh_all());
        woken.extend(self.around_revision(name));
        woken
    }

    fn tag_gone(&mut self, name: &str) -> AffectedSubjects {
        let mut woken = self.around_tag(name);
        let flipped = self.references.remove(&ReferrerKey::Tag(name.to_owned()));
        let old = self.tags.remove(name);
        self.drop_pointer(
            &Subject::tag(name),
            old.as_ref().map(|tag| pointer(&tag.spec.target_ref)),
        );
        self.forget_releases(old.map(|old| old.metadata.uid));
        woken.extend(self.refresh_all());
        woken.extend(self.by_names(flipped));
        woken
    }

    fn namespace_seen(&mut self, name: &str, labels: &Labels, fact: Namespace) -> AffectedSubjects {
        let chosen = self.references.selected_by_namespace(name).map(str::to_owned);
        let mut woken = self.observe_referrer(Referrer::Namespace { name, labels });
        let rechosen = self.references.selected_by_namespace(name) != chosen.as_deref();
        let old = self.namespaces.insert(name.to_owned(), fact);
        let new = self.namespaces.get(name);
        let differs = |part: fn(&Namespace) -> bool| old.as_ref().map(part) != new.map(part);
        if differs(|space| space.terminating) {
            woken.extend(self.tenants.of(name).cloned());
        }
        if rechosen || differs(|space| space.terminating) || differs(|space| space.skip_migration) {
            woken.extend(self.refresh_namespace(name));
        }
        // Its version changed: what was planned for the version before is planned anew.
        if self.relabeling_istio(name).is_some() {
            woken.insert(Subject::Namespace(name.to_owned()));
        }
        woken
    }

    fn deployment_seen(&mut self, key: (String, String), fact: Option<Deployment>) -> AffectedSubjects {
        let revision = match key.1.strip_prefix("istiod") {
            Some("") => names::DEFAULT_REVISION,
            Some(rest) => rest.strip_prefix('-').unwrap_or(rest),
            None => return AffectedSubjects::new(),
        };
        let subject = Subject::revision(revision);
        let old = match fact {
            Some(fact) => self.deployments.insert(key, fact),
            None => self.deployments.remove(&key),
        };
        if old == fact {
            AffectedSubjects::new()
        } else {
            AffectedSubjects::from([subject])
        }
    }

    fn daemonset_seen(&mut self, key: (String, String), fact: Option<DaemonSet>) -> AffectedSubjects {
        let subject = match key.1.as_str() {
            names::CNI_DAEMONSET => Subject::cni(names::SINGLETON),
            names::ZTUNNEL_DAEMONSET => Subject::ztunnel(names::SINGLETON),
            _ => return AffectedSubjects::new(),
        };
        let old = match fact {
            Some(fact) => self.daemonsets.insert(key, fact),
            None => self.daemonsets.remove(&key),
        };
        if old == fact {
            AffectedSubjects::new()
        } else {
            AffectedSubjects::from([subject])
        }
    }

    fn release_seen(&mut self, key: ReleaseKey, fact: ReleaseFact) -> AffectedSubjects {
        let subject = self.owner_of(&key.owner);
        let old = self.releases.insert(key, fact.clone());
        if old == Some(fact) {
            AffectedSubjects::new()
        } else {
            subject.into_iter().collect()
        }
    }

    fn probed(&mut self, webhook: String, result: ProbeResult) -> AffectedSubjects {
        self.probes.insert(webhook.clone(), result);
        AffectedSubjects::from([Subject::Webhook(webhook)])
    }

    fn succeeded(&mut self, subject: Subject) -> AffectedSubjects {
        if self.failures.remove(&subject).is_none() {
            return AffectedSubjects::new();
        }
        let mut woken = self.fate_changed(&subject);
        woken.insert(subject);
        woken
    }

    /// Whether something can be moved at all is part of where it stands.
    fn fate_changed(&mut self, subject: &Subject) -> AffectedSubjects {
        match subject {
            Subject::Workload(key) => self.refresh_workload(key),
            Subject::Namespace(name) => {
                let mut woken = self.refresh_namespace(name);
                // Nothing restarts before all namespaces are relabelled, but one that cannot be is not waited for.
                let waiting = self.relabeling_istio(name).map(|istio| istio.name().to_owned());
                woken.extend(waiting.into_iter().flat_map(|istio| self.stir(&istio)));
                woken
            }
            Subject::Object(..) | Subject::Webhook(_) => AffectedSubjects::new(),
        }
    }

    fn source_changed(&mut self, source: Source, state: SourceState) -> AffectedSubjects {
        if *self.source(source) == state {
            return AffectedSubjects::new();
        }
        self.sources.insert(source, state);
        self.subjects()
    }

    fn move_tenant(&mut self, subject: &Subject, old: Option<String>, new: Option<String>) {
        if let Some(old) = old {
            self.tenants.remove(old.as_str(), subject);
        }
        if let Some(new) = new {
            self.tenants.insert(new, subject.clone());
        }
    }

    fn drop_pointer(&mut self, subject: &Subject, old: Option<(String, String)>) {
        if let Some(old) = old {
            self.pointers.remove(&old, subject);
        }
    }

    fn drop_claims(&mut self, istio: &Istio) {
        for tag in requested_tags(istio) {
            self.claims.remove(tag.as_str(), &istio.metadata.name);
        }
    }

    fn forget_releases(&mut self, owner: Option<String>) {
        if let Some(owner) = owner {
            let keys: Vec<_> = self.releases_of(&owner).map(|(key, _)| key.clone()).collect();
            for key in keys {
                self.releases.remove(&key);
            }
        }
    }
}

fn old_home<S: Kind + Home>(objects: &Objects<S>, name: &str) -> Option<String> {
    objects.get(name).map(|object| object.spec.home().to_owned())
}

/// Where a kind installs.
trait Home {
    fn home(&self) -> &str;
}

impl Home for mainstay_api::RevisionSpec {
    fn home(&self) -> &str {
        &self.namespace
    }
}

impl Home for mainstay_api::CniSpec {
    fn home(&self) -> &str {
        &self.namespace
    }
}

impl Home for mainstay_api::ZTunnelSpec {
    fn home(&self) -> &str {
        &self.namespace
    }
}
