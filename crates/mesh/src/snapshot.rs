//! What was observed: takes events one at a time, gives everything a plan needs to know without a search.
//!
//! *Invariant:* nothing here is a decision, and nothing here is progress: a snapshot built anew from the cluster leads to the
//! same plans, except that releases are looked at again.

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

/// What was observed, and when it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The moment plans are made for.
    pub now: Timestamp,
    /// What holds for the whole cluster.
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
    deployments: BTreeMap<(String, String), Deployment>,
    daemonsets: BTreeMap<(String, String), DaemonSet>,
    webhooks: BTreeMap<String, Webhook>,
    probes: BTreeMap<String, ProbeResult>,
    releases: BTreeMap<ReleaseKey, ReleaseFact>,
    failures: BTreeMap<Subject, Failure>,
    sources: BTreeMap<Source, SourceState>,
    /// Which Istios want a tag, by its name.
    claims: Multimap<String, String>,
    /// Which objects point to a target, by its kind and name.
    targeted_by: Multimap<(String, String), Subject>,
    /// Which objects install into a namespace.
    installers: Multimap<String, Subject>,
    workloads: BTreeMap<WorkloadKey, Workload>,
    /// Where each Istio that moves workloads moves them.
    migration_targets: BTreeMap<String, MigrationTarget>,
    migration_indexes: BTreeMap<String, MigrationIndex>,
}

impl Snapshot {
    /// An empty one, in which every source is still to be listed.
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
            probes: BTreeMap::new(),
            releases: BTreeMap::new(),
            failures: BTreeMap::new(),
            sources: BTreeMap::new(),
            claims: Multimap::default(),
            targeted_by: Multimap::default(),
            installers: Multimap::default(),
            workloads: BTreeMap::new(),
            migration_targets: BTreeMap::new(),
            migration_indexes: BTreeMap::new(),
        }
    }

    /// All Istios.
    #[must_use]
    pub fn istios(&self) -> &Objects<IstioSpec> {
        &self.istios
    }

    /// All revisions.
    #[must_use]
    pub fn revisions(&self) -> &Objects<RevisionSpec> {
        &self.revisions
    }

    /// All tags.
    #[must_use]
    pub fn tags(&self) -> &Objects<TagSpec> {
        &self.tags
    }

    /// The network plug-in.
    #[must_use]
    pub fn cnis(&self) -> &Objects<CniSpec> {
        &self.cnis
    }

    /// The node proxy.
    #[must_use]
    pub fn ztunnels(&self) -> &Objects<ZTunnelSpec> {
        &self.ztunnels
    }

    /// Who refers to what.
    #[must_use]
    pub fn references(&self) -> &References {
        &self.references
    }

    /// A namespace.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.get(name)
    }

    /// An istiod Deployment.
    #[must_use]
    pub fn deployment(&self, namespace: &str, name: &str) -> Option<&Deployment> {
        self.deployments.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// A `DaemonSet` of plug-in or node proxy.
    #[must_use]
    pub fn daemonset(&self, namespace: &str, name: &str) -> Option<&DaemonSet> {
        self.daemonsets.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// A webhook configuration.
    #[must_use]
    pub fn webhook(&self, name: &str) -> Option<&Webhook> {
        self.webhooks.get(name)
    }

    /// What the control plane behind a webhook configuration last answered.
    #[must_use]
    pub fn probe(&self, webhook: &str) -> Option<&ProbeResult> {
        self.probes.get(webhook)
    }

    /// What is known of a release.
    #[must_use]
    pub fn release(&self, key: &ReleaseKey) -> Option<&ReleaseFact> {
        self.releases.get(key)
    }

    /// What is known of the releases of an owner.
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

    /// The failure that holds `action` back for now, if it is this very action that failed.
    #[must_use]
    pub fn failure(&self, subject: &Subject, action: &Action) -> Option<&Failure> {
        let failure = self.failures.get(subject)?;
        (failure.action == *action && failure.retry_at > self.now).then_some(failure)
    }

    /// The last attempt on a subject that failed, if no later one got through.
    #[must_use]
    pub fn last_failure(&self, subject: &Subject) -> Option<&Failure> {
        self.failures.get(subject)
    }

    /// The Istios that want a tag of this name.
    pub fn claimants<'a>(&'a self, tag: &str) -> impl Iterator<Item = &'a Istio> {
        self.claims.of(tag).filter_map(|name| self.istios.get(name))
    }

    /// Whether every source was listed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        Source::ALL
            .iter()
            .all(|source| *self.source(*source) != SourceState::Pending)
    }

    /// Whether a source can be believed.
    #[must_use]
    pub fn source(&self, source: Source) -> &SourceState {
        self.sources.get(&source).unwrap_or(&SourceState::Pending)
    }

    /// Why a source cannot be read.
    pub fn readable(&self, source: Source) -> Result<(), &str> {
        match self.source(source) {
            SourceState::Ready => Ok(()),
            SourceState::Pending => Err("not listed yet"),
            SourceState::Failing(error) => Err(error),
        }
    }

    /// Every subject there is: for a full pass.
    #[must_use]
    pub fn subjects(&self) -> BTreeSet<Subject> {
        fn all<S: Kind>(objects: &Objects<S>) -> impl Iterator<Item = Subject> {
            objects
                .iter()
                .map(|object| Subject::Object(S::KIND, object.name().to_owned()))
        }
        let webhooks = self.webhooks.keys().cloned().map(Subject::Webhook);
        let moved = self.migration_indexes.values().flat_map(MigrationIndex::subjects);
        all(&self.istios)
            .chain(all(&self.revisions))
            .chain(all(&self.tags))
            .chain(all(&self.cnis))
            .chain(all(&self.ztunnels))
            .chain(webhooks)
            .chain(moved)
            .collect()
    }
}

/// The tags an Istio wants, each once: those it lists, or the default one under `RevisionBased`. One that goes away wants none.
#[must_use]
pub fn requested_tags(istio: &Istio) -> Vec<String> {
    if istio.metadata.is_deleting() {
        return Vec::new();
    }
    let listed = istio
        .spec
        .update_strategy
        .as_ref()
        .and_then(|strategy| strategy.revision_tags.clone());
    let mut wanted = listed.unwrap_or_else(|| match istio.spec.strategy() {
        UpdateStrategyType::RevisionBased => vec![names::DEFAULT_REVISION.to_owned()],
        UpdateStrategyType::InPlace => Vec::new(),
    });
    let mut seen = BTreeSet::new();
    wanted.retain(|name| !name.is_empty() && seen.insert(name.clone()));
    wanted
}

fn target_key(target: &TargetReference) -> (String, String) {
    (target.kind.clone(), target.name.clone())
}

fn kind_key(kind: ObjectKind, name: &str) -> (String, String) {
    (kind.name().to_owned(), name.to_owned())
}
