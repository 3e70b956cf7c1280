//! Index of the references from namespaces, pods and tags to revisions and tags. Each update returns the
//! names whose use changed.
//!
//! Revisions and tags share one set of names, so the index contains names, not objects. It stores the last
//! observed reference of an object, so that the removal of a label updates the name it referred to. The
//! cost of an update does not depend on the number of pods, and only objects that refer to something are
//! stored.
//!
//! *Invariant:* the index after any sequence of events equals the index built from the final objects.

mod label;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

pub use label::{Labels, injected_revision, namespace_reference, pod_reference};

use crate::workload::WorkloadKey;

/// Name of a revision or tag, shared by all its referrers.
type Name = Arc<str>;

/// The current state of a potential referrer.
#[derive(Clone, Copy, Debug)]
pub enum Referrer<'a> {
    /// A namespace.
    Namespace {
        /// Name of the namespace.
        name: &'a str,
        /// Labels of the namespace.
        labels: &'a Labels,
    },
    /// A pod.
    Pod {
        /// Namespace of the pod.
        namespace: &'a str,
        /// Name of the pod.
        name: &'a str,
        /// Labels of the pod.
        labels: &'a Labels,
        /// Annotations of the pod.
        annotations: &'a Labels,
        /// Whether the pod has succeeded or failed. A finished pod keeps no revision in use.
        finished: bool,
        /// Whether the pod is being deleted. Its proxy still runs, but the pod no longer counts for its
        /// workload.
        terminating: bool,
        /// Workload that the pod belongs to.
        workload: Option<&'a WorkloadKey>,
    },
    /// A tag that refers to a revision.
    Tag {
        /// Name of the tag.
        name: &'a str,
        /// Revision that the tag refers to; empty if there is none.
        revision: &'a str,
    },
}

impl<'a> Referrer<'a> {
    /// Replaces the workload of a pod. Does not change other referrers.
    pub(crate) fn with_workload(mut self, key: Option<&'a WorkloadKey>) -> Self {
        if let Self::Pod { workload, .. } = &mut self {
            *workload = key;
        }
        self
    }
}

/// Identity of a referrer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferrerKey {
    /// A tag.
    Tag(String),
    /// A namespace.
    Namespace(String),
    /// A pod, by namespace and name.
    Pod(String, String),
}

/// Reason why an object counts as a referrer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferenceCause {
    /// The tag refers to the revision.
    TagTarget,
    /// The labels of the namespace select the revision or tag.
    NamespaceLabel,
    /// The labels of the pod select the revision or tag, and those of the namespace select none.
    PodLabel,
    /// The pod runs a proxy of this revision, regardless of its current labels.
    RunningProxy,
}

impl fmt::Display for ReferenceCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TagTarget => "the tag refers to it",
            Self::NamespaceLabel => "the namespace's labels select it",
            Self::PodLabel => "the pod's labels select it",
            Self::RunningProxy => "the pod runs its proxy",
        })
    }
}

impl fmt::Display for ReferrerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(name) => write!(f, "IstioRevisionTag/{name}"),
            Self::Namespace(name) => write!(f, "Namespace/{name}"),
            Self::Pod(namespace, name) => write!(f, "Pod/{namespace}/{name}"),
        }
    }
}

/// Number of referrers of a name, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of tags that refer to the name.
    pub tags: usize,
    /// Number of namespaces whose labels select the name.
    pub namespaces: usize,
    /// Number of pods whose labels select the name, in namespaces whose labels select no revision.
    pub labeled_pods: usize,
    /// Number of pods that run the proxy of the revision.
    pub running_pods: usize,
}

/// Index of references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    namespaces_by_name: BTreeMap<Name, NamespaceReferences>,
    tags: BTreeMap<Name, Name>,
    targets: BTreeMap<Name, Target>,
    pods_by_revision: BTreeMap<WorkloadKey, PodsByRevision>,
}

/// Number of pods of one workload, by the revision of their proxy.
pub type PodsByRevision = BTreeMap<Name, usize>;

/// References of a namespace and its pods. The entry is removed when there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NamespaceReferences {
    selects: Option<Name>,
    pods: BTreeMap<Box<str>, Pod>,
    labeled: BTreeMap<Name, usize>,
}

/// References of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pod {
    runs: Option<Name>,
    requests: Option<Name>,
    /// Workload of the pod, if the pod runs a proxy and is not being deleted.
    workload: Option<WorkloadKey>,
    /// Whether the pod runs a proxy and belongs to no workload.
    standalone: bool,
}

/// Referrers of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Target {
    tags: BTreeSet<Name>,
    namespaces: BTreeSet<Name>,
    /// Namespaces that select no revision and contain pods that request the name.
    requested_in: BTreeSet<Name>,
    running: usize,
    /// Pods that run the proxy of the revision and belong to no workload.
    standalone: BTreeSet<(Name, Box<str>)>,
}

/// Current references of a pod.
#[derive(Clone, Copy, Debug, Default)]
struct PodReferences<'a> {
    runs: Option<&'a str>,
    requests: Option<&'a str>,
    workload: Option<&'a WorkloadKey>,
    standalone: bool,
}

impl Target {
    fn is_unused(&self) -> bool {
        self.tags.is_empty() && self.running == 0 && !self.is_requested()
    }

    /// Whether labels refer to the name. Only labels keep a tag in use.
    fn is_requested(&self) -> bool {
        !self.namespaces.is_empty() || !self.requested_in.is_empty()
    }
}

impl References {
    /// Records a referrer. Returns the names whose use as a revision or as a tag changed.
    pub fn upsert(&mut self, referrer: Referrer<'_>) -> Vec<String> {
        match referrer {
            Referrer::Namespace { name, labels } => self.set_namespace(name, namespace_reference(labels)),
            Referrer::Pod {
                namespace,
                name,
                labels,
                annotations,
                finished,
                terminating,
                workload,
            } => {
                let runs = injected_revision(annotations).filter(|_| !finished);
                let requests = pod_reference(labels).filter(|_| !finished);
                let has_proxy = runs.is_some() && !terminating;
                let references = PodReferences {
                    runs,
                    requests,
                    workload: workload.filter(|_| has_proxy),
                    standalone: has_proxy && workload.is_none(),
                };
                self.set_pod(namespace, name, references)
            }
            Referrer::Tag { name, revision } => {
                self.set_tag(name, Some(revision).filter(|text| !text.is_empty()))
            }
        }
    }

    /// Removes a referrer. Returns the names whose use changed.
    pub fn remove(&mut self, key: &ReferrerKey) -> Vec<String> {
        match key {
            ReferrerKey::Namespace(name) => self.set_namespace(name, None),
            ReferrerKey::Pod(namespace, name) => self.set_pod(namespace, name, PodReferences::default()),
            ReferrerKey::Tag(name) => self.set_tag(name, None),
        }
    }

    /// Whether anything refers to a revision of this name.
    #[must_use]
    pub fn uses_revision(&self, name: &str) -> bool {
        self.targets.get(name).is_some_and(|target| !target.is_unused())
    }

    /// Whether anything refers to a tag of this name. Only labels count, because a running proxy never
    /// names a tag.
    #[must_use]
    pub fn uses_tag(&self, name: &str) -> bool {
        self.targets.get(name).is_some_and(Target::is_requested)
    }

    /// Returns the number of referrers of a name.
    #[must_use]
    pub fn counts(&self, name: &str) -> Counts {
        let Some(target) = self.targets.get(name) else {
            return Counts::default();
        };
        let labeled_pods = |namespace_name: &Name| {
            self.namespaces_by_name
                .get(namespace_name)?
                .labeled
                .get(name)
                .copied()
        };
        Counts {
            tags: target.tags.len(),
            namespaces: target.namespaces.len(),
            labeled_pods: target.requested_in.iter().filter_map(labeled_pods).sum(),
            running_pods: target.running,
        }
    }

    /// Returns the revision or tag that the labels of a namespace select.
    #[must_use]
    pub fn selected_by_namespace(&self, namespace: &str) -> Option<&str> {
        self.namespaces_by_name.get(namespace)?.selects.as_deref()
    }

    /// Returns the workload of a pod, if the pod runs a proxy and is not being deleted.
    #[must_use]
    pub fn workload_of(&self, namespace: &str, pod: &str) -> Option<&WorkloadKey> {
        self.namespaces_by_name
            .get(namespace)?
            .pods
            .get(pod)?
            .workload
            .as_ref()
    }

    /// Returns the number of pods of a workload by the revision of their proxy.
    #[must_use]
    pub fn pods_by_revision(&self, workload: &WorkloadKey) -> Option<&PodsByRevision> {
        self.pods_by_revision.get(workload)
    }

    /// Returns the pods that run the proxy of a revision and belong to no workload. They cannot be
    /// migrated.
    pub fn standalone_pods(&self, revision: &str) -> impl Iterator<Item = (&str, &str)> {
        let standalone = self.targets.get(revision).map(|target| &target.standalone);
        standalone
            .into_iter()
            .flatten()
            .map(|(namespace_name, pod)| (&**namespace_name, &**pod))
    }

    /// Returns all pairs of a selected name and a namespace that selects it.
    pub fn selected_names(&self) -> impl Iterator<Item = (&str, &str)> {
        let targets = self.targets.iter();
        targets.flat_map(|(name, target)| target.namespaces.iter().map(move |space| (&**name, &**space)))
    }

    /// Returns the tags that refer to a revision of this name.
    pub fn tags_targeting(&self, name: &str) -> impl Iterator<Item = &str> {
        let tags = self.targets.get(name).map(|target| &target.tags);
        tags.into_iter().flatten().map(|tag| &**tag)
    }

    /// Returns all pods that refer to anything, by namespace and name.
    pub fn pods(&self) -> impl Iterator<Item = (&str, &str)> {
        self.namespaces_by_name
            .iter()
            .flat_map(|(name, namespace_entry)| namespace_entry.pods.keys().map(move |pod| (&**name, &**pod)))
    }

    /// Returns all referrers of a name with the cause, in a stable order. For reports only, because the cost
    /// is linear in the number of referring pods.
    #[must_use]
    pub fn referrers(&self, name: &str) -> Vec<(ReferrerKey, ReferenceCause)> {
        let Some(target) = self.targets.get(name) else {
            return Vec::new();
        };
        let tags = target
            .tags
            .iter()
            .map(|tag| (ReferrerKey::Tag(tag.to_string()), ReferenceCause::TagTarget));
        let namespaces = target.namespaces.iter().map(|namespace_name| {
            (
                ReferrerKey::Namespace(namespace_name.to_string()),
                ReferenceCause::NamespaceLabel,
            )
        });
        let mut found: Vec<_> = tags.chain(namespaces).collect();
        for (namespace_name, namespace_entry) in &self.namespaces_by_name {
            for (pod_name, pod) in &namespace_entry.pods {
                let key = || ReferrerKey::Pod(namespace_name.to_string(), pod_name.to_string());
                if pod.runs.as_deref() == Some(name) {
                    found.push((key(), ReferenceCause::RunningProxy));
                }
                if pod.requests.as_deref() == Some(name) && target.requested_in.contains(namespace_name) {
                    found.push((key(), ReferenceCause::PodLabel));
                }
            }
        }
        found
    }

    fn set_tag(&mut self, tag: &str, revision: Option<&str>) -> Vec<String> {
        let old = self.tags.get(tag).cloned();
        if old.as_deref() == revision {
            return Vec::new();
        }
        let new = revision.map(|name| self.shared_name(name));
        let touched = old.iter().chain(&new).cloned().collect();
        self.track_changes(&touched, |index| {
            let tag: Name = tag.into();
            if let Some(target) = old.and_then(|old| index.targets.get_mut(&old)) {
                target.tags.remove(&tag);
            }
            match new {
                Some(new) => {
                    index
                        .targets
                        .entry(new.clone())
                        .or_default()
                        .tags
                        .insert(tag.clone());
                    index.tags.insert(tag, new);
                }
                None => {
                    index.tags.remove(&tag);
                }
            }
        })
    }

    fn set_namespace(&mut self, namespace: &str, selects: Option<&str>) -> Vec<String> {
        let old = self
            .namespaces_by_name
            .get(namespace)
            .and_then(|namespace_entry| namespace_entry.selects.clone());
        if old.as_deref() == selects {
            return Vec::new();
        }
        let new = selects.map(|name| self.shared_name(name));
        let requested = self
            .namespaces_by_name
            .get(namespace)
            .map(|namespace_entry| namespace_entry.labeled.keys().cloned());
        let requested: Vec<Name> = requested.into_iter().flatten().collect();
        let touched = old.iter().chain(&new).chain(&requested).cloned().collect();
        self.track_changes(&touched, |index| {
            let namespace_name = index.shared_namespace_name(namespace);
            if let Some(target) = old.and_then(|old| index.targets.get_mut(&old)) {
                target.namespaces.remove(&namespace_name);
            }
            if let Some(new) = &new {
                index
                    .targets
                    .entry(new.clone())
                    .or_default()
                    .namespaces
                    .insert(namespace_name.clone());
            }
            // A namespace that selects a revision overrides the labels of its pods.
            for name in requested {
                let target = index.targets.entry(name).or_default();
                match new {
                    Some(_) => target.requested_in.remove(&namespace_name),
                    None => target.requested_in.insert(namespace_name.clone()),
                };
            }
            index
                .namespaces_by_name
                .entry(namespace_name.clone())
                .or_default()
                .selects = new;
            index.remove_empty_namespace(&namespace_name);
        })
    }

    fn set_pod(&mut self, namespace: &str, pod: &str, references: PodReferences<'_>) -> Vec<String> {
        let known = self
            .namespaces_by_name
            .get(namespace)
            .and_then(|namespace_entry| namespace_entry.pods.get(pod));
        let old = known.cloned().unwrap_or_default();
        let same = old.runs.as_deref() == references.runs && old.requests.as_deref() == references.requests;
        if same && old.workload.as_ref() == references.workload && old.standalone == references.standalone {
            return Vec::new();
        }
        let new = Pod {
            runs: references.runs.map(|name| self.shared_name(name)),
            requests: references.requests.map(|name| self.shared_name(name)),
            workload: references.workload.map(|workload| self.shared_key(workload)),
            standalone: references.standalone,
        };
        let touched = [&old.runs, &old.requests, &new.runs, &new.requests];
        let touched = touched.into_iter().flatten().cloned().collect();
        self.track_changes(&touched, |index| {
            let namespace_name = index.shared_namespace_name(namespace);
            index.remove_pod(&namespace_name, pod, &old);
            index.add_pod(&namespace_name, pod, new);
            index.remove_empty_namespace(&namespace_name);
        })
    }

    fn remove_pod(&mut self, namespace_name: &Name, pod: &str, old: &Pod) {
        if let Some(target) = old.runs.as_ref().and_then(|name| self.targets.get_mut(name)) {
            target.running = target.running.saturating_sub(1);
            target.standalone.remove(&(namespace_name.clone(), pod.into()));
        }
        if let (Some(workload), Some(runs)) = (&old.workload, &old.runs) {
            self.remove_workload_pod(workload, runs);
        }
        let Some(namespace_entry) = self.namespaces_by_name.get_mut(namespace_name) else {
            return;
        };
        namespace_entry.pods.remove(pod);
        let Some(requests) = &old.requests else { return };
        let left = namespace_entry
            .labeled
            .get(requests)
            .map_or(0, |count| count.saturating_sub(1));
        if left > 0 {
            namespace_entry.labeled.insert(requests.clone(), left);
            return;
        }
        namespace_entry.labeled.remove(requests);
        if let Some(target) = self.targets.get_mut(requests) {
            target.requested_in.remove(namespace_name);
        }
    }

    fn add_pod(&mut self, namespace_name: &Name, pod: &str, new: Pod) {
        if new == Pod::default() {
            return;
        }
        if let Some(runs) = &new.runs {
            let target = self.targets.entry(runs.clone()).or_default();
            target.running += 1;
            if new.standalone {
                target.standalone.insert((namespace_name.clone(), pod.into()));
            }
            if let Some(workload) = &new.workload {
                let pods = self.pods_by_revision.entry(workload.clone()).or_default();
                *pods.entry(runs.clone()).or_default() += 1;
            }
        }
        let namespace_entry = self.namespaces_by_name.entry(namespace_name.clone()).or_default();
        if let Some(requests) = &new.requests {
            *namespace_entry.labeled.entry(requests.clone()).or_default() += 1;
            if namespace_entry.selects.is_none() {
                let target = self.targets.entry(requests.clone()).or_default();
                target.requested_in.insert(namespace_name.clone());
            }
        }
        namespace_entry.pods.insert(pod.into(), new);
    }

    fn remove_workload_pod(&mut self, workload: &WorkloadKey, revision: &Name) {
        let Some(pods) = self.pods_by_revision.get_mut(workload) else {
            return;
        };
        if let Some(count) = pods.get_mut(revision) {
            *count = count.saturating_sub(1);
        }
        pods.retain(|_, count| *count > 0);
        if pods.is_empty() {
            self.pods_by_revision.remove(workload);
        }
    }

    /// Runs `edit` and returns those of the touched names whose use changed. Removes names without
    /// referrers.
    fn track_changes(&mut self, touched: &BTreeSet<Name>, edit: impl FnOnce(&mut Self)) -> Vec<String> {
        let uses = |index: &Self, name: &Name| (index.uses_revision(name), index.uses_tag(name));
        let before: Vec<_> = touched.iter().map(|name| uses(self, name)).collect();
        edit(self);
        let changed = touched
            .iter()
            .zip(before)
            .filter(|(name, was)| uses(self, name) != *was);
        let changed = changed.map(|(name, _)| name.to_string()).collect();
        for name in touched {
            if self.targets.get(name).is_some_and(Target::is_unused) {
                self.targets.remove(name);
            }
        }
        changed
    }

    /// Returns the stored copy of a name, so that all its referrers share one string.
    fn shared_name(&self, name: &str) -> Name {
        self.targets
            .get_key_value(name)
            .map_or_else(|| name.into(), |(known, _)| known.clone())
    }

    /// Returns the stored copy of a workload key, so that all pods of a workload share one key.
    pub(crate) fn shared_key(&self, key: &WorkloadKey) -> WorkloadKey {
        let known = self.pods_by_revision.get_key_value(key);
        known.map_or(key, |(known, _)| known).clone()
    }

    fn shared_namespace_name(&self, name: &str) -> Name {
        self.namespaces_by_name
            .get_key_value(name)
            .map_or_else(|| name.into(), |(known, _)| known.clone())
    }

    fn remove_empty_namespace(&mut self, namespace_name: &Name) {
        let is_empty = |namespace_entry: &NamespaceReferences| {
            namespace_entry.selects.is_none() && namespace_entry.pods.is_empty()
        };
        if self.namespaces_by_name.get(namespace_name).is_some_and(is_empty) {
            self.namespaces_by_name.remove(namespace_name);
        }
    }
}

#[cfg(test)]
mod tests;
