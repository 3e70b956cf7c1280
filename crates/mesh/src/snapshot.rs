//! The observed state of the cluster, indexed for planning.
//!
//! *Invariant:* a snapshot contains no decisions and no progress. A snapshot rebuilt from the cluster leads
//! to the same plans, except that releases are compared again.

mod affected;
mod facts;
mod objects;
mod observe;
mod workloads;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use mainstay_api::{
    CniSpec, Istio, IstioSpec, Kind, ObjectKind, RevisionSpec, TagSpec, TargetReference, UpdateStrategyType,
    ZTunnelSpec, names,
};

pub(crate) use affected::may_be_active;
pub use facts::{
    DaemonSet, Deployment, Failure, Namespace, ProbeResult, ReleaseFact, ServiceReference, Source,
    SourceState, Webhook, WebhookClient,
};
pub use objects::Objects;
pub use observe::{AffectedSubjects, Observation};

use crate::migration::{MigrationIndex, MigrationTarget};
use crate::multimap::Multimap;
use crate::plan::{Action, ReleaseKey};
use crate::workload::{Workload, WorkloadKey};
use crate::{Library, References, Settings, Subject};

/// The observed state at a point in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The current time.
    pub now: Timestamp,
    /// Settings of the cluster.
    pub settings: Arc<Settings>,
    /// Versions and profiles.
    pub library: Arc<Library>,
    istios: Objects<IstioSpec>,
    revisions: Objects<RevisionSpec>,
    tags: Objects<TagSpec>,
    cnis: Objects<CniSpec>,
    ztunnels: Objects<ZTunnelSpec>,
    references: References,
    namespaces: BTreeMap<String, Namespace>,
    deployments: BTreeMap<NamespacedName, Deployment>,
    daemonsets: BTreeMap<NamespacedName, DaemonSet>,
    webhooks: BTreeMap<String, Webhook>,
    foreign_injectors: BTreeSet<String>,
    probes: BTreeMap<String, ProbeResult>,
    releases: BTreeMap<ReleaseKey, ReleaseFact>,
    /// Failures of the last attempt on each subject.
    failures: BTreeMap<Subject, Vec<Failure>>,
    sources: BTreeMap<Source, SourceState>,
    /// Istios that request a tag, by tag name.
    istios_by_tag: Multimap<String, String>,
    /// Objects that refer to a target, by kind and name of the target.
    targeted_by: Multimap<(String, String), Subject>,
    /// Objects that install into a namespace.
    installers: Multimap<String, Subject>,
    workloads: BTreeMap<WorkloadKey, Workload>,
    /// Target of each Istio that migrates workloads.
    migration_targets: BTreeMap<String, MigrationTarget>,
    migration_indexes: BTreeMap<String, MigrationIndex>,
}

/// Key of a namespaced object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NamespacedName {
    namespace: String,
    name: String,
}

impl NamespacedName {
    fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl Snapshot {
    /// Creates an empty snapshot without any listed source.
    #[must_use]
    pub fn new(now: Timestamp, settings: Arc<Settings>, library: Arc<Library>) -> Self {
        Self {
            now,
            settings,
            library,
            istios: Objects::default(),
            revisions: Objects::default(),
            tags: Objects::default(),
            cnis: Objects::default(),
            ztunnels: Objects::default(),
            references: References::default(),
            namespaces: BTreeMap::new(),
            deployments: BTreeMap::new(),
            daemonsets: BTreeMap::new(),
            webhooks: BTreeMap::new(),
            foreign_injectors: BTreeSet::new(),
            probes: BTreeMap::new(),
            releases: BTreeMap::new(),
            failures: BTreeMap::new(),
            sources: BTreeMap::new(),
            istios_by_tag: Multimap::default(),
            targeted_by: Multimap::default(),
            installers: Multimap::default(),
            workloads: BTreeMap::new(),
            migration_targets: BTreeMap::new(),
            migration_indexes: BTreeMap::new(),
        }
    }

    /// Returns all Istios.
    #[must_use]
    pub fn istios(&self) -> &Objects<IstioSpec> {
        &self.istios
    }

    /// Returns all revisions.
    #[must_use]
    pub fn revisions(&self) -> &Objects<RevisionSpec> {
        &self.revisions
    }

    /// Returns all tags.
    #[must_use]
    pub fn tags(&self) -> &Objects<TagSpec> {
        &self.tags
    }

    /// Returns all `IstioCNI`s.
    #[must_use]
    pub fn cnis(&self) -> &Objects<CniSpec> {
        &self.cnis
    }

    /// Returns all `ZTunnel`s.
    #[must_use]
    pub fn ztunnels(&self) -> &Objects<ZTunnelSpec> {
        &self.ztunnels
    }

    /// Returns the index of references.
    #[must_use]
    pub fn references(&self) -> &References {
        &self.references
    }

    /// Returns a namespace.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.get(name)
    }

    /// Returns an istiod Deployment.
    #[must_use]
    pub fn deployment(&self, namespace: &str, name: &str) -> Option<&Deployment> {
        self.deployments.get(&NamespacedName::new(namespace, name))
    }

    /// Returns the `DaemonSet` of `IstioCNI` or `ZTunnel`.
    #[must_use]
    pub fn daemonset(&self, namespace: &str, name: &str) -> Option<&DaemonSet> {
        self.daemonsets.get(&NamespacedName::new(namespace, name))
    }

    /// Returns a webhook configuration.
    #[must_use]
    pub fn webhook(&self, name: &str) -> Option<&Webhook> {
        self.webhooks.get(name)
    }

    /// Returns the last probe result of a webhook configuration.
    #[must_use]
    pub fn probe(&self, webhook: &str) -> Option<&ProbeResult> {
        self.probes.get(webhook)
    }

    /// Returns the observed state of a release, or `None` if it was never compared.
    #[must_use]
    pub fn release(&self, key: &ReleaseKey) -> Option<&ReleaseFact> {
        self.releases.get(key)
    }

    /// Returns the releases of an owner with their observed state.
    pub fn releases_of<'a>(&'a self, owner: &str) -> impl Iterator<Item = (&'a ReleaseKey, &'a ReleaseFact)> {
        let first = ReleaseKey {
            owner: owner.to_owned(),
            namespace: String::new(),
            name: String::new(),
        };
        let owner = owner.to_owned();
        self.releases
            .range(first..)
            .take_while(move |(key, _)| key.owner == owner)
    }

    /// Returns the failure of `action`, if the same action has failed and must not be retried yet.
    #[must_use]
    pub fn failure(&self, subject: &Subject, action: &Action) -> Option<&Failure> {
        let mut failures = self.failures.get(subject)?.iter();
        failures.find(|failure| failure.action == *action && failure.retry_at > self.now)
    }

    /// Returns the last failure of a subject, unless a later attempt succeeded.
    #[must_use]
    pub fn last_failure(&self, subject: &Subject) -> Option<&Failure> {
        self.failures.get(subject)?.last()
    }

    /// Returns the Istios that request a tag.
    pub fn istios_requesting<'a>(&'a self, tag: &str) -> impl Iterator<Item = &'a Istio> {
        let istios = self
            .istios_by_tag
            .get(tag)
            .filter_map(|name| self.istios.get(name));
        istios.filter(|istio| listed_tags(istio).is_some() || self.has_implicit_tag(istio))
    }

    /// Returns the tags an Istio requests, without duplicates: those it lists, or its implicit tag with the
    /// strategy `RevisionBased`. Empty while the Istio is being deleted.
    #[must_use]
    pub fn requested_tags(&self, istio: &Istio) -> Vec<String> {
        let mut tags = possible_tags(istio);
        if listed_tags(istio).is_none() && !self.has_implicit_tag(istio) {
            tags.clear();
        }
        tags
    }

    /// Whether an Istio that lists no tags has the implicit tag `default`: it owns that tag, the operator
    /// created its first revision, or it never had a revision.
    pub(crate) fn has_implicit_tag(&self, istio: &Istio) -> bool {
        let uid = &istio.metadata.uid;
        let tag = self.tags.get(names::DEFAULT_REVISION);
        let controller = tag.and_then(|tag| tag.metadata.controller());
        if controller.is_some_and(|owner| !uid.is_empty() && owner.uid == *uid) {
            return true;
        }
        let mut owned = self.revisions.owned_by(uid).peekable();
        if owned.peek().is_none() {
            return istio.status.active_revision_name.is_empty();
        }
        owned.any(|revision| revision.metadata.annotations.contains_key(names::IMPLICIT_TAG))
    }

    /// Returns the webhook configurations of other installations that inject namespaces with
    /// `istio-injection: enabled`.
    pub fn foreign_injectors(&self) -> impl Iterator<Item = &str> {
        self.foreign_injectors.iter().map(String::as_str)
    }

    /// Whether every source was listed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        Source::ALL
            .iter()
            .all(|source| *self.source(*source) != SourceState::Pending)
    }

    /// Returns the state of a source.
    #[must_use]
    pub fn source(&self, source: Source) -> &SourceState {
        self.sources.get(&source).unwrap_or(&SourceState::Pending)
    }

    /// Checks that a source can be read, and otherwise returns the error message.
    pub fn readable(&self, source: Source) -> Result<(), &str> {
        match self.source(source) {
            SourceState::Ready => Ok(()),
            SourceState::Pending => Err("not listed yet"),
            SourceState::Failing(error) => Err(error),
        }
    }

    /// Returns all subjects, for a full pass.
    #[must_use]
    pub fn subjects(&self) -> BTreeSet<Subject> {
        fn all<S: Kind>(objects: &Objects<S>) -> impl Iterator<Item = Subject> {
            objects
                .iter()
                .map(|object| Subject::Object(S::KIND, object.name().to_owned()))
        }
        let webhooks = self.webhooks.keys().cloned().map(Subject::Webhook);
        let migrated = self.migration_indexes.values().flat_map(MigrationIndex::subjects);
        all(&self.istios)
            .chain(all(&self.revisions))
            .chain(all(&self.tags))
            .chain(all(&self.cnis))
            .chain(all(&self.ztunnels))
            .chain(webhooks)
            .chain(migrated)
            .collect()
    }
}

/// Returns the tags an Istio may request, without duplicates: those it lists, or `default` with the
/// strategy `RevisionBased`. Empty while the Istio is being deleted.
pub(crate) fn possible_tags(istio: &Istio) -> Vec<String> {
    if istio.metadata.is_deleting() {
        return Vec::new();
    }
    let mut tags = listed_tags(istio).map_or_else(
        || match istio.spec.strategy() {
            UpdateStrategyType::RevisionBased => vec![names::DEFAULT_REVISION.to_owned()],
            UpdateStrategyType::InPlace => Vec::new(),
        },
        <[String]>::to_vec,
    );
    let mut seen = BTreeSet::new();
    tags.retain(|name| !name.is_empty() && seen.insert(name.clone()));
    tags
}

/// Returns `updateStrategy.revisionTags`, if it is set.
pub(crate) fn listed_tags(istio: &Istio) -> Option<&[String]> {
    istio.spec.update_strategy.as_ref()?.revision_tags.as_deref()
}

fn target_key(target: &TargetReference) -> (String, String) {
    (target.kind.clone(), target.name.clone())
}

fn kind_key(kind: ObjectKind, name: &str) -> (String, String) {
    (kind.name().to_owned(), name.to_owned())
}
