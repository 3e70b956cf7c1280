//! Records observations in the snapshot, and returns the subjects whose plan may have changed.
//!
//! A watch event contains only the current state of an object. The previous state is read from the snapshot.

mod install_namespace;

use std::collections::BTreeSet;

use mainstay_api::{
    Istio, IstioCni, IstioRevision, IstioRevisionTag, Kind, ObjectKind, Status, ZTunnel, names,
};

use self::install_namespace::InstallNamespace;
use super::affected::controller;
use super::{
    DaemonSet, Deployment, Failure, Namespace, NamespacedName, Objects, ProbeResult, ReleaseFact, Snapshot,
    Source, SourceState, Webhook, possible_tags, target_key,
};
use crate::Subject;
use crate::plan::ReleaseKey;
use crate::references::{Labels, Referrer, ReferrerKey};
use crate::workload::{Workload, WorkloadKey, has_invalid_annotation};

/// Subjects whose plan may have changed.
pub type AffectedSubjects = BTreeSet<Subject>;

/// One observed fact: the state of an object, a deletion, or the outcome of an attempt.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "it lives for one call, and most are large"
)]
pub enum Observation {
    /// The current state of an Istio.
    Istio(Istio),
    /// The current state of a revision.
    Revision(IstioRevision),
    /// The current state of a tag.
    Tag(IstioRevisionTag),
    /// The current state of an `IstioCNI`.
    Cni(IstioCni),
    /// The current state of a `ZTunnel`.
    ZTunnel(ZTunnel),
    /// The current state of a webhook configuration.
    Webhook(Webhook),
    /// An object of one of the kinds above was deleted.
    Gone(Subject),
    /// The current state of a namespace.
    Namespace {
        /// Name of the namespace.
        name: String,
        /// UID of the namespace.
        uid: String,
        /// Resource version of the namespace.
        resource_version: String,
        /// Labels of the namespace.
        labels: Labels,
        /// Annotations of the namespace.
        annotations: Labels,
        /// Whether the namespace is being deleted.
        terminating: bool,
    },
    /// The current state of a pod.
    Pod {
        /// Namespace of the pod.
        namespace: String,
        /// Name of the pod.
        name: String,
        /// Labels of the pod.
        labels: Labels,
        /// Annotations of the pod.
        annotations: Labels,
        /// Whether the pod has succeeded or failed.
        finished: bool,
        /// Whether the pod is being deleted.
        terminating: bool,
        /// Workload that the pod belongs to.
        workload: Option<WorkloadKey>,
    },
    /// A namespace or a pod was deleted.
    ReferrerGone(ReferrerKey),
    /// The current state of an istiod Deployment, by namespace and name; `None` if it was deleted.
    Deployment(String, String, Option<Deployment>),
    /// The current state of a `DaemonSet`, by namespace and name; `None` if it was deleted.
    DaemonSet(String, String, Option<DaemonSet>),
    /// The current state of a workload; `None` if it was deleted.
    Workload(WorkloadKey, Option<Workload>),
    /// The observed state of a release.
    Release(ReleaseKey, ReleaseFact),
    /// Whether a webhook configuration of another installation, given by name, injects namespaces with
    /// `istio-injection: enabled`.
    ForeignInjector(String, bool),
    /// Result of a probe, by name of the webhook configuration.
    Probed(String, ProbeResult),
    /// An attempt on a subject failed.
    Failed(Subject, Failure),
    /// An attempt on a subject succeeded.
    Succeeded(Subject),
    /// The state of a source changed.
    Source(Source, SourceState),
}

impl Snapshot {
    /// Records an observation and returns the affected subjects.
    pub fn observe(&mut self, observation: Observation) -> AffectedSubjects {
        match observation {
            Observation::Istio(istio) => self.record_istio(istio),
            Observation::Revision(revision) => self.record_revision(revision),
            Observation::Tag(tag) => self.record_tag(tag),
            Observation::Cni(cni) => self.record_cni(cni),
            Observation::ZTunnel(ztunnel) => self.record_ztunnel(ztunnel),
            Observation::Webhook(webhook) => self.record_webhook(webhook),
            Observation::Gone(subject) => self.remove(&subject),
            Observation::Namespace {
                name,
                uid,
                resource_version,
                labels,
                annotations,
                terminating,
            } => {
                let has_value =
                    |map: &Labels, key: &str, word: &str| map.get(key).is_some_and(|text| text == word);
                let fact = Namespace {
                    uid,
                    resource_version,
                    terminating,
                    skip_migration: has_value(&annotations, names::SKIP_MIGRATION, "true"),
                    invalid_annotation: has_invalid_annotation(&annotations),
                    injection_label: has_value(&labels, names::INJECTION_LABEL, names::INJECTION_ENABLED),
                    injection_disabled: labels
                        .get(names::INJECTION_LABEL)
                        .is_some_and(|value| value != names::INJECTION_ENABLED),
                };
                self.record_namespace(&name, &labels, fact)
            }
            Observation::Pod {
                namespace,
                name,
                labels,
                annotations,
                finished,
                terminating,
                workload,
            } => self.observe_referrer(Referrer::Pod {
                namespace: &namespace,
                name: &name,
                labels: &labels,
                annotations: &annotations,
                finished,
                terminating,
                workload: workload.as_ref(),
            }),
            Observation::ReferrerGone(key) => self.remove_referrer(&key),
            Observation::Deployment(namespace, name, fact) => {
                self.record_deployment(NamespacedName { namespace, name }, fact)
            }
            Observation::DaemonSet(namespace, name, fact) => {
                self.record_daemonset(NamespacedName { namespace, name }, fact)
            }
            Observation::Workload(key, workload) => self.record_workload(key, workload),
            Observation::Release(key, fact) => self.record_release(key, fact),
            Observation::ForeignInjector(name, injects) => self.record_foreign_injector(name, injects),
            Observation::Probed(webhook, result) => self.record_probe(webhook, result),
            Observation::Failed(subject, failure) => {
                let failures = self.failures.entry(subject.clone()).or_default();
                failures.retain(|old| old.retry_at == failure.retry_at && old.action != failure.action);
                failures.push(failure);
                let mut affected = self.affected_by_failure(&subject);
                affected.insert(subject);
                affected
            }
            Observation::Succeeded(subject) => self.record_success(subject),
            Observation::Source(source, state) => self.record_source(source, state),
        }
    }

    /// Records a namespace or a pod and returns the affected subjects. Does not copy the object, because
    /// these are the most frequent events.
    pub fn observe_referrer(&mut self, referrer: Referrer<'_>) -> AffectedSubjects {
        let Referrer::Pod {
            namespace,
            name,
            workload,
            ..
        } = referrer
        else {
            let names = self.references.upsert(referrer);
            return self.subjects_with_names(names);
        };
        let shared = workload.map(|key| self.shared_key(key));
        let before = self.workload_of(namespace, name);
        let names = self.references.upsert(referrer.with_workload(shared.as_ref()));
        let after = self.workload_of(namespace, name);
        let mut affected = self.subjects_with_names(names);
        for key in before.iter().chain(&after) {
            affected.extend(self.reindex_workload(key));
        }
        affected
    }

    /// Returns the workload of a pod, or `None` if no Istio migrates workloads.
    fn workload_of(&self, namespace: &str, pod: &str) -> Option<WorkloadKey> {
        let migrates = self.migrates_workloads();
        let workload = self.references.workload_of(namespace, pod);
        workload.filter(|_| migrates).cloned()
    }

    fn remove_referrer(&mut self, key: &ReferrerKey) -> AffectedSubjects {
        let workload = match key {
            ReferrerKey::Pod(namespace, name) => self.workload_of(namespace, name),
            _ => None,
        };
        let names = self.references.remove(key);
        let mut affected = self.subjects_with_names(names);
        if let Some(workload) = workload {
            affected.extend(self.reindex_workload(&workload));
        }
        if let ReferrerKey::Namespace(name) = key
            && self.namespaces.remove(name).is_some()
        {
            affected.extend(self.installers.get(name).cloned());
            affected.extend(self.reindex_namespace(name));
        }
        affected
    }

    fn record_istio(&mut self, istio: Istio) -> AffectedSubjects {
        let name = istio.name().to_owned();
        let mut affected = self.dependents_of_istio(&name);
        let requested_tags = possible_tags(&istio);
        if let Some(old) = self.istios.insert(istio) {
            self.remove_requested_tags(&old);
        }
        for tag in requested_tags {
            self.istios_by_tag.insert(tag, name.clone());
        }
        affected.extend(self.dependents_of_istio(&name));
        affected.extend(self.update_migration_target(&name));
        affected.extend(self.relabeled_namespaces(&name));
        affected.insert(Subject::istio(name));
        affected
    }

    fn record_revision(&mut self, revision: IstioRevision) -> AffectedSubjects {
        let name = revision.name().to_owned();
        let mut affected = self.dependents_of_revision(&name);
        let subject = Subject::revision(&name);
        self.update_installer(
            &subject,
            old_namespace(&self.revisions, &name),
            Some(revision.spec.namespace.clone()),
        );
        let owners = revision.metadata.owner_references.clone();
        let old = self.revisions.insert(revision);
        if old.is_none_or(|old| old.metadata.owner_references != owners) {
            affected.extend(self.reindex_all());
        }
        affected.extend(self.dependents_of_revision(&name));
        affected.insert(subject);
        affected
    }

    fn record_tag(&mut self, tag: IstioRevisionTag) -> AffectedSubjects {
        let name = tag.name().to_owned();
        let mut affected = self.dependents_of_tag(&name);
        self.remove_target(
            &Subject::tag(&name),
            self.tags.get(&name).map(|tag| target_key(&tag.spec.target_ref)),
        );
        self.targeted_by
            .insert(target_key(&tag.spec.target_ref), Subject::tag(&name));
        let changed_names = self.references.upsert(Referrer::Tag {
            name: &name,
            revision: &tag.status.istio_revision,
        });
        let target = (tag.spec.target_ref.clone(), tag.status.istio_revision.clone());
        let old = self.tags.insert(tag);
        if old.is_none_or(|old| (old.spec.target_ref, old.status.istio_revision) != target) {
            affected.extend(self.reindex_all());
        }
        affected.extend(self.subjects_with_names(changed_names));
        affected.extend(self.dependents_of_tag(&name));
        affected.insert(Subject::tag(name));
        affected
    }

    fn record_cni(&mut self, cni: IstioCni) -> AffectedSubjects {
        let subject = Subject::cni(cni.name());
        let namespace = cni.spec.namespace.clone();
        self.update_installer(
            &subject,
            old_namespace(&self.cnis, subject.name()),
            Some(namespace),
        );
        let state = Some(cni.status.state().clone());
        let old = self.cnis.insert(cni);
        self.affected_by_dependency(subject, old.map(|old| old.status.state) != state)
    }

    fn record_ztunnel(&mut self, ztunnel: ZTunnel) -> AffectedSubjects {
        let subject = Subject::ztunnel(ztunnel.name());
        let namespace = ztunnel.spec.namespace.clone();
        self.update_installer(
            &subject,
            old_namespace(&self.ztunnels, subject.name()),
            Some(namespace),
        );
        let old = self
            .ztunnels
            .get(subject.name())
            .and_then(|old| old.spec.target_ref.as_ref());
        self.remove_target(&subject, old.map(target_key));
        if let Some(target) = &ztunnel.spec.target_ref {
            self.targeted_by.insert(target_key(target), subject.clone());
        }
        let state = Some(ztunnel.status.state().clone());
        let old = self.ztunnels.insert(ztunnel);
        self.affected_by_dependency(subject, old.map(|old| old.status.state) != state)
    }

    /// Returns `IstioCNI` or `ZTunnel`, and all revisions if its state changed. Revisions do not depend on
    /// its other fields.
    fn affected_by_dependency(&self, subject: Subject, state_changed: bool) -> AffectedSubjects {
        let mut affected = AffectedSubjects::from([subject]);
        if state_changed {
            affected.extend(
                self.revisions
                    .iter()
                    .map(|revision| Subject::revision(revision.name())),
            );
        }
        affected
    }

    fn record_webhook(&mut self, webhook: Webhook) -> AffectedSubjects {
        let name = webhook.metadata.name.clone();
        if self.webhooks.get(&name) == Some(&webhook) {
            return AffectedSubjects::new();
        }
        let mut affected = AffectedSubjects::from([Subject::Webhook(name.clone())]);
        affected.extend(controller(&webhook.metadata));
        self.webhooks.insert(name, webhook);
        affected
    }

    fn remove(&mut self, subject: &Subject) -> AffectedSubjects {
        self.failures.remove(subject);
        match subject {
            Subject::Webhook(name) => {
                self.probes.remove(name);
                let old = self.webhooks.remove(name);
                old.and_then(|webhook| controller(&webhook.metadata))
                    .into_iter()
                    .collect()
            }
            Subject::Workload(key) => self.record_workload(key.clone(), None),
            Subject::Namespace(name) => self.remove_referrer(&ReferrerKey::Namespace(name.clone())),
            Subject::Object(ObjectKind::Istio, name) => self.remove_istio(name),
            Subject::Object(ObjectKind::IstioRevision, name) => self.remove_revision(name),
            Subject::Object(ObjectKind::IstioRevisionTag, name) => self.remove_tag(name),
            Subject::Object(ObjectKind::IstioCni, name) => {
                self.update_installer(subject, old_namespace(&self.cnis, name), None);
                let old = self.cnis.remove(name);
                self.remove_releases(old.map(|old| old.metadata.uid));
                self.all_revisions()
            }
            Subject::Object(ObjectKind::ZTunnel, name) => {
                self.update_installer(subject, old_namespace(&self.ztunnels, name), None);
                let old = self.ztunnels.remove(name);
                let target = old
                    .as_ref()
                    .and_then(|old| old.spec.target_ref.as_ref())
                    .map(target_key);
                self.remove_target(subject, target);
                self.remove_releases(old.map(|old| old.metadata.uid));
                self.all_revisions()
            }
        }
    }

    fn remove_istio(&mut self, name: &str) -> AffectedSubjects {
        let mut affected = self.dependents_of_istio(name);
        if let Some(old) = self.istios.remove(name) {
            self.remove_requested_tags(&old);
        }
        affected.extend(self.update_migration_target(name));
        affected.remove(&Subject::istio(name));
        affected
    }

    fn remove_revision(&mut self, name: &str) -> AffectedSubjects {
        let mut affected = self.dependents_of_revision(name);
        self.update_installer(
            &Subject::revision(name),
            old_namespace(&self.revisions, name),
            None,
        );
        let old = self.revisions.remove(name);
        self.remove_releases(old.map(|old| old.metadata.uid));
        affected.extend(self.reindex_all());
        affected.extend(self.dependents_of_revision(name));
        affected
    }

    fn remove_tag(&mut self, name: &str) -> AffectedSubjects {
        let mut affected = self.dependents_of_tag(name);
        let changed_names = self.references.remove(&ReferrerKey::Tag(name.to_owned()));
        let old = self.tags.remove(name);
        self.remove_target(
            &Subject::tag(name),
            old.as_ref().map(|tag| target_key(&tag.spec.target_ref)),
        );
        self.remove_releases(old.map(|old| old.metadata.uid));
        affected.extend(self.reindex_all());
        affected.extend(self.subjects_with_names(changed_names));
        affected
    }

    fn record_namespace(&mut self, name: &str, labels: &Labels, fact: Namespace) -> AffectedSubjects {
        let old_selection = self.references.selected_by_namespace(name).map(str::to_owned);
        let mut affected = self.observe_referrer(Referrer::Namespace { name, labels });
        let selection_changed = self.references.selected_by_namespace(name) != old_selection.as_deref();
        let old = self.namespaces.insert(name.to_owned(), fact);
        let new = self.namespaces.get(name);
        let differs = |part: fn(&Namespace) -> bool| old.as_ref().map(part) != new.map(part);
        if differs(|space| space.terminating) {
            affected.extend(self.installers.get(name).cloned());
        }
        let reindexed = selection_changed
            || differs(|space| space.terminating)
            || differs(|space| space.skip_migration)
            || differs(|space| space.invalid_annotation)
            || differs(|space| space.injection_disabled);
        if reindexed {
            affected.extend(self.reindex_namespace(name));
        }
        // The status of a migration lists namespaces that name a missing revision.
        if selection_changed {
            affected.extend(self.migration_targets.keys().map(Subject::istio));
        }
        // The plan of the namespace must contain the new resource version.
        if self.relabeling_istio(name).is_some() {
            affected.insert(Subject::Namespace(name.to_owned()));
        }
        affected
    }

    fn record_deployment(&mut self, key: NamespacedName, fact: Option<Deployment>) -> AffectedSubjects {
        let revision = match key.name.strip_prefix("istiod") {
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

    fn record_daemonset(&mut self, key: NamespacedName, fact: Option<DaemonSet>) -> AffectedSubjects {
        let subject = match key.name.as_str() {
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

    fn record_release(&mut self, key: ReleaseKey, fact: ReleaseFact) -> AffectedSubjects {
        let subject = self.release_owner(&key.owner);
        let old = self.releases.insert(key, fact.clone());
        if old == Some(fact) {
            AffectedSubjects::new()
        } else {
            subject.into_iter().collect()
        }
    }

    /// Records whether another installation's webhook configuration injects enabled namespaces. Implicit
    /// tags depend on it.
    fn record_foreign_injector(&mut self, name: String, injects: bool) -> AffectedSubjects {
        let is_changed = if injects {
            self.foreign_injectors.insert(name)
        } else {
            self.foreign_injectors.remove(&name)
        };
        let istios = self
            .istios_by_tag
            .get(names::DEFAULT_REVISION)
            .filter(|_| is_changed);
        istios.map(Subject::istio).collect()
    }

    fn record_probe(&mut self, webhook: String, result: ProbeResult) -> AffectedSubjects {
        self.probes.insert(webhook.clone(), result);
        AffectedSubjects::from([Subject::Webhook(webhook)])
    }

    fn record_success(&mut self, subject: Subject) -> AffectedSubjects {
        if self.failures.remove(&subject).is_none() {
            return AffectedSubjects::new();
        }
        let mut affected = self.affected_by_failure(&subject);
        affected.insert(subject);
        affected
    }

    /// Returns the subjects that depend on failures of a subject. The state of a workload depends on
    /// whether its restart was rejected.
    fn affected_by_failure(&mut self, subject: &Subject) -> AffectedSubjects {
        match subject {
            Subject::Workload(key) => self.reindex_workload(key),
            Subject::Namespace(name) => {
                let mut affected = self.reindex_namespace(name);
                // Restarts wait until all namespaces are relabeled, except those whose relabeling is
                // rejected.
                let waiting = self.relabeling_istio(name).map(|istio| istio.name().to_owned());
                affected.extend(
                    waiting
                        .into_iter()
                        .flat_map(|istio| self.restartable_subjects(&istio)),
                );
                affected
            }
            Subject::Object(..) | Subject::Webhook(_) => AffectedSubjects::new(),
        }
    }

    fn record_source(&mut self, source: Source, state: SourceState) -> AffectedSubjects {
        if *self.source(source) == state {
            return AffectedSubjects::new();
        }
        self.sources.insert(source, state);
        self.subjects()
    }

    fn update_installer(&mut self, subject: &Subject, old: Option<String>, new: Option<String>) {
        if let Some(old) = old {
            self.installers.remove(old.as_str(), subject);
        }
        if let Some(new) = new {
            self.installers.insert(new, subject.clone());
        }
    }

    fn remove_target(&mut self, subject: &Subject, old: Option<(String, String)>) {
        if let Some(old) = old {
            self.targeted_by.remove(&old, subject);
        }
    }

    fn remove_requested_tags(&mut self, istio: &Istio) {
        for tag in possible_tags(istio) {
            self.istios_by_tag.remove(tag.as_str(), &istio.metadata.name);
        }
    }

    fn remove_releases(&mut self, owner: Option<String>) {
        if let Some(owner) = owner {
            let keys: Vec<_> = self.releases_of(&owner).map(|(key, _)| key.clone()).collect();
            for key in keys {
                self.releases.remove(&key);
            }
        }
    }
}

fn old_namespace<S: Kind + InstallNamespace>(objects: &Objects<S>, name: &str) -> Option<String> {
    objects.get(name).map(|object| object.spec.namespace().to_owned())
}
