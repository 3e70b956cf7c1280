//! Who refers to which revision or tag: takes namespaces, pods and tags one event at a time, gives the names whose use changed.
//!
//! A revision and a tag share one space of names, so a *name* is kept here, never an object. What was last seen of an object is
//! remembered: a label that is removed re-evaluates the name it used to give. An event costs a few look-ups, whatever the number
//! of pods; only what refers to something is stored.
//!
//! *Invariant:* the index after any sequence of events equals the one built from what is there at the end.

mod label;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

pub use label::{Labels, injected_revision, namespace_reference, pod_reference};

use crate::workload::WorkloadKey;

/// A name of a revision or a tag, shared by all who refer to it.
type Name = Arc<str>;

/// Something that can refer, as it is now.
#[derive(Clone, Copy, Debug)]
pub enum Referrer<'a> {
    /// A namespace.
    Namespace {
        /// Its name.
        name: &'a str,
        /// Its labels.
        labels: &'a Labels,
    },
    /// A pod.
    Pod {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
        /// Its labels.
        labels: &'a Labels,
        /// Its annotations.
        annotations: &'a Labels,
        /// Succeeded or failed: its proxy is gone, and it keeps nothing in use.
        finished: bool,
        /// It is being deleted: its proxy still runs, but its workload no longer counts on it.
        leaving: bool,
        /// The workload it belongs to.
        workload: Option<&'a WorkloadKey>,
    },
    /// A tag that points to a revision.
    Tag {
        /// Its name.
        name: &'a str,
        /// The revision it points to; empty for none.
        revision: &'a str,
    },
}

impl<'a> Referrer<'a> {
    /// The same, if it is a pod, of this workload.
    pub(crate) fn of(mut self, key: Option<&'a WorkloadKey>) -> Self {
        if let Self::Pod { workload, .. } = &mut self {
            *workload = key;
        }
        self
    }
}

/// Which thing refers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferrerKey {
    /// A tag.
    Tag(String),
    /// A namespace.
    Namespace(String),
    /// A pod, by namespace and name.
    Pod(String, String),
}

/// Why a thing counts as a referrer. These are words for people, so they have a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferenceCause {
    /// The tag points to the revision.
    TagTarget,
    /// The namespace's labels choose it for its pods.
    NamespaceLabel,
    /// The pod's own labels choose it, the namespace being silent.
    PodLabel,
    /// The pod runs a proxy of this revision, whatever its labels say now.
    RunningProxy,
}

impl fmt::Display for ReferenceCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TagTarget => "the tag points to it",
            Self::NamespaceLabel => "the namespace's labels choose it",
            Self::PodLabel => "the pod's labels choose it",
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

/// How many refer to a name, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tags that point to it.
    pub tags: usize,
    /// Namespaces that choose it.
    pub namespaces: usize,
    /// Pods that choose it in a silent namespace.
    pub labelled_pods: usize,
    /// Pods that run its proxy.
    pub running_pods: usize,
}

/// The index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    spaces: BTreeMap<Name, Space>,
    tags: BTreeMap<Name, Name>,
    targets: BTreeMap<Name, Target>,
    /// How many pods of a workload run the proxy of which revision.
    pods_by_revision: BTreeMap<WorkloadKey, PodsByRevision>,
}

/// Pods of one workload by the revision whose proxy they run.
pub type PodsByRevision = BTreeMap<Name, usize>;

/// What a namespace says and what its pods say. Kept only while somebody there says something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Space {
    says: Option<Name>,
    pods: BTreeMap<Box<str>, Pod>,
    labelled: BTreeMap<Name, usize>,
}

/// What one pod says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pod {
    runs: Option<Name>,
    asks: Option<Name>,
    /// The workload it belongs to, if it runs a proxy.
    of: Option<WorkloadKey>,
    /// It runs a proxy and belongs to no workload.
    loose: bool,
}

/// Who refers to one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Target {
    tags: BTreeSet<Name>,
    namespaces: BTreeSet<Name>,
    /// Silent namespaces with pods that ask for it.
    asked_in: BTreeSet<Name>,
    running: usize,
    /// Pods that run its proxy and belong to no workload.
    loose: BTreeSet<(Name, Box<str>)>,
}

/// What a pod says now.
#[derive(Clone, Copy, Debug, Default)]
struct Saying<'a> {
    runs: Option<&'a str>,
    asks: Option<&'a str>,
    of: Option<&'a WorkloadKey>,
    loose: bool,
}

impl Target {
    fn is_unused(&self) -> bool {
        self.tags.is_empty() && self.running == 0 && !self.is_asked_for()
    }

    /// By labels: the only way to use a tag.
    fn is_asked_for(&self) -> bool {
        !self.namespaces.is_empty() || !self.asked_in.is_empty()
    }
}

impl References {
    /// Takes in what a thing says now. Gives the names whose use changed by it, as a revision or as a tag.
    pub fn upsert(&mut self, referrer: Referrer<'_>) -> Vec<String> {
        match referrer {
            Referrer::Namespace { name, labels } => self.namespace_says(name, namespace_reference(labels)),
            Referrer::Pod {
                namespace,
                name,
                labels,
                annotations,
                finished,
                leaving,
                workload,
            } => {
                let runs = injected_revision(annotations).filter(|_| !finished);
                let asks = pod_reference(labels).filter(|_| !finished);
                let of = workload.filter(|_| runs.is_some() && !leaving);
                let says = Saying {
                    runs,
                    asks,
                    of,
                    loose: runs.is_some() && !leaving && workload.is_none(),
                };
                self.pod_says(namespace, name, says)
            }
            Referrer::Tag { name, revision } => {
                self.tag_says(name, Some(revision).filter(|text| !text.is_empty()))
            }
        }
    }

    /// Forgets a thing that is gone. Gives the names whose use changed by it.
    pub fn remove(&mut self, key: &ReferrerKey) -> Vec<String> {
        match key {
            ReferrerKey::Namespace(name) => self.namespace_says(name, None),
            ReferrerKey::Pod(namespace, name) => self.pod_says(namespace, name, Saying::default()),
            ReferrerKey::Tag(name) => self.tag_says(name, None),
        }
    }

    /// Whether anything refers to a revision of this name.
    #[must_use]
    pub fn uses_revision(&self, name: &str) -> bool {
        self.targets.get(name).is_some_and(|target| !target.is_unused())
    }

    /// Whether anything refers to a tag of this name: labels do, a running proxy never names a tag.
    #[must_use]
    pub fn uses_tag(&self, name: &str) -> bool {
        self.targets.get(name).is_some_and(Target::is_asked_for)
    }

    /// How many refer to a name.
    #[must_use]
    pub fn counts(&self, name: &str) -> Counts {
        let Some(target) = self.targets.get(name) else {
            return Counts::default();
        };
        let asking = |space: &Name| self.spaces.get(space)?.labelled.get(name).copied();
        Counts {
            tags: target.tags.len(),
            namespaces: target.namespaces.len(),
            labelled_pods: target.asked_in.iter().filter_map(asking).sum(),
            running_pods: target.running,
        }
    }

    /// What a namespace's labels choose.
    #[must_use]
    pub fn selected_by_namespace(&self, namespace: &str) -> Option<&str> {
        self.spaces.get(namespace)?.says.as_deref()
    }

    /// The workload a pod belongs to, if it runs a proxy.
    #[must_use]
    pub fn workload_of(&self, namespace: &str, pod: &str) -> Option<&WorkloadKey> {
        self.spaces.get(namespace)?.pods.get(pod)?.of.as_ref()
    }

    /// How many pods of a workload run the proxy of which revision.
    #[must_use]
    pub fn pods_by_revision(&self, workload: &WorkloadKey) -> Option<&PodsByRevision> {
        self.pods_by_revision.get(workload)
    }

    /// Pods that run the proxy of a revision and belong to no workload: nobody can move them.
    pub fn standalone_pods(&self, revision: &str) -> impl Iterator<Item = (&str, &str)> {
        let loose = self.targets.get(revision).map(|target| &target.loose);
        loose.into_iter().flatten().map(|(space, pod)| (&**space, &**pod))
    }

    /// The tags that point to a revision of this name.
    pub fn tags_targeting(&self, name: &str) -> impl Iterator<Item = &str> {
        let tags = self.targets.get(name).map(|target| &target.tags);
        tags.into_iter().flatten().map(|tag| &**tag)
    }

    /// Every pod that refers to anything, by namespace and name.
    pub fn pods(&self) -> impl Iterator<Item = (&str, &str)> {
        let spaces = self.spaces.iter();
        spaces.flat_map(|(name, space)| space.pods.keys().map(move |pod| (&**name, &**pod)))
    }

    /// Everything that refers to a name, and why, in a stable order. For people: it walks all pods that refer to anything.
    #[must_use]
    pub fn referrers(&self, name: &str) -> Vec<(ReferrerKey, ReferenceCause)> {
        let Some(target) = self.targets.get(name) else {
            return Vec::new();
        };
        let tags = target
            .tags
            .iter()
            .map(|tag| (ReferrerKey::Tag(tag.to_string()), ReferenceCause::TagTarget));
        let spaces = target.namespaces.iter();
        let spaces = spaces.map(|space| {
            (
                ReferrerKey::Namespace(space.to_string()),
                ReferenceCause::NamespaceLabel,
            )
        });
        let mut found: Vec<_> = tags.chain(spaces).collect();
        for (space_name, space) in &self.spaces {
            for (pod_name, pod) in &space.pods {
                let key = || ReferrerKey::Pod(space_name.to_string(), pod_name.to_string());
                if pod.runs.as_deref() == Some(name) {
                    found.push((key(), ReferenceCause::RunningProxy));
                }
                if pod.asks.as_deref() == Some(name) && target.asked_in.contains(space_name) {
                    found.push((key(), ReferenceCause::PodLabel));
                }
            }
        }
        found
    }

    fn tag_says(&mut self, tag: &str, revision: Option<&str>) -> Vec<String> {
        let old = self.tags.get(tag).cloned();
        if old.as_deref() == revision {
            return Vec::new();
        }
        let new = revision.map(|name| self.shared(name));
        let touched = old.iter().chain(&new).cloned().collect();
        self.watch(&touched, |index| {
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

    fn namespace_says(&mut self, namespace: &str, says: Option<&str>) -> Vec<String> {
        let old = self.spaces.get(namespace).and_then(|space| space.says.clone());
        if old.as_deref() == says {
            return Vec::new();
        }
        let new = says.map(|name| self.shared(name));
        let asked = self
            .spaces
            .get(namespace)
            .map(|space| space.labelled.keys().cloned());
        let asked: Vec<Name> = asked.into_iter().flatten().collect();
        let touched = old.iter().chain(&new).chain(&asked).cloned().collect();
        self.watch(&touched, |index| {
            let space_name = index.space(namespace);
            if let Some(target) = old.and_then(|old| index.targets.get_mut(&old)) {
                target.namespaces.remove(&space_name);
            }
            if let Some(new) = &new {
                index
                    .targets
                    .entry(new.clone())
                    .or_default()
                    .namespaces
                    .insert(space_name.clone());
            }
            // A namespace that begins to speak silences its pods, and one that falls silent lets them speak.
            for name in asked {
                let target = index.targets.entry(name).or_default();
                match new {
                    Some(_) => target.asked_in.remove(&space_name),
                    None => target.asked_in.insert(space_name.clone()),
                };
            }
            index.spaces.entry(space_name.clone()).or_default().says = new;
            index.tidy(&space_name);
        })
    }

    fn pod_says(&mut self, namespace: &str, pod: &str, says: Saying<'_>) -> Vec<String> {
        let known = self.spaces.get(namespace).and_then(|space| space.pods.get(pod));
        let old = known.cloned().unwrap_or_default();
        let same = old.runs.as_deref() == says.runs && old.asks.as_deref() == says.asks;
        if same && old.of.as_ref() == says.of && old.loose == says.loose {
            return Vec::new();
        }
        let new = Pod {
            runs: says.runs.map(|name| self.shared(name)),
            asks: says.asks.map(|name| self.shared(name)),
            of: says.of.map(|workload| self.shared_key(workload)),
            loose: says.loose,
        };
        let touched = [&old.runs, &old.asks, &new.runs, &new.asks];
        let touched = touched.into_iter().flatten().cloned().collect();
        self.watch(&touched, |index| {
            let space = index.space(namespace);
            index.forget_pod(&space, pod, &old);
            index.remember_pod(&space, pod, new);
            index.tidy(&space);
        })
    }

    fn forget_pod(&mut self, space_name: &Name, pod: &str, old: &Pod) {
        if let Some(target) = old.runs.as_ref().and_then(|name| self.targets.get_mut(name)) {
            target.running = target.running.saturating_sub(1);
            target.loose.remove(&(space_name.clone(), pod.into()));
        }
        if let (Some(of), Some(runs)) = (&old.of, &old.runs) {
            self.leave_crew(of, runs);
        }
        let Some(space) = self.spaces.get_mut(space_name) else {
            return;
        };
        space.pods.remove(pod);
        let Some(asks) = &old.asks else { return };
        let left = space
            .labelled
            .get(asks)
            .map_or(0, |count| count.saturating_sub(1));
        if left > 0 {
            space.labelled.insert(asks.clone(), left);
            return;
        }
        space.labelled.remove(asks);
        if let Some(target) = self.targets.get_mut(asks) {
            target.asked_in.remove(space_name);
        }
    }

    fn remember_pod(&mut self, space_name: &Name, pod: &str, new: Pod) {
        if new == Pod::default() {
            return;
        }
        if let Some(runs) = &new.runs {
            let target = self.targets.entry(runs.clone()).or_default();
            target.running += 1;
            if new.loose {
                target.loose.insert((space_name.clone(), pod.into()));
            }
            if let Some(of) = &new.of {
                let crew = self.pods_by_revision.entry(of.clone()).or_default();
                *crew.entry(runs.clone()).or_default() += 1;
            }
        }
        let space = self.spaces.entry(space_name.clone()).or_default();
        if let Some(asks) = &new.asks {
            *space.labelled.entry(asks.clone()).or_default() += 1;
            if space.says.is_none() {
                let target = self.targets.entry(asks.clone()).or_default();
                target.asked_in.insert(space_name.clone());
            }
        }
        space.pods.insert(pod.into(), new);
    }

    fn leave_crew(&mut self, workload: &WorkloadKey, revision: &Name) {
        let Some(crew) = self.pods_by_revision.get_mut(workload) else {
            return;
        };
        if let Some(count) = crew.get_mut(revision) {
            *count = count.saturating_sub(1);
        }
        crew.retain(|_, count| *count > 0);
        if crew.is_empty() {
            self.pods_by_revision.remove(workload);
        }
    }

    /// Runs an edit and gives those of the touched names whose use it changed; names nobody refers to any more are forgotten.
    fn watch(&mut self, touched: &BTreeSet<Name>, edit: impl FnOnce(&mut Self)) -> Vec<String> {
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

    /// The name as others hold it, so that twenty thousand pods of one revision share one text.
    fn shared(&self, name: &str) -> Name {
        self.targets
            .get_key_value(name)
            .map_or_else(|| name.into(), |(known, _)| known.clone())
    }

    /// The key of a workload as its pods hold it.
    pub(crate) fn shared_key(&self, key: &WorkloadKey) -> WorkloadKey {
        let known = self.pods_by_revision.get_key_value(key);
        known.map_or(key, |(known, _)| known).clone()
    }

    fn space(&self, name: &str) -> Name {
        self.spaces
            .get_key_value(name)
            .map_or_else(|| name.into(), |(known, _)| known.clone())
    }

    fn tidy(&mut self, space_name: &Name) {
        let silent = |space: &Space| space.says.is_none() && space.pods.is_empty();
        if self.spaces.get(space_name).is_some_and(silent) {
            self.spaces.remove(space_name);
        }
    }
}

#[cfg(test)]
mod tests;
