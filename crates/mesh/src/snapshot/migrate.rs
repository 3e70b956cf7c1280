//! Where workloads stand: takes what was just observed, keeps the migration_indexes right, gives the subjects whose plan may differ by it.
//!
//! What a workload refers to is resolved as injection resolves it: its namespace's labels first, then its template's. Who moves it
//! follows from that: the Istio that owns the revision it leads to.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{
    GoDuration, Istio, IstioRevision, IstioRevisionTag, MigrationState, MigrationStrategy, ObjectKind,
    Reason, UpdateStrategyType, WorkloadMigration,
};

use super::{AffectedSubjects, Snapshot};
use crate::error::ErrorClass;
use crate::migration::{MigrationIndex, WorkloadState};
use crate::workload::{Workload, WorkloadKey, WorkloadKind};
use crate::{Subject, active_revision_name};

/// How long a workload may take to become ready unless told otherwise.
pub(crate) const DEFAULT_TIMEOUT: SignedDuration = SignedDuration::from_mins(5);

/// Where an Istio moves which workloads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Route {
    /// Identity of the Istio.
    uid: String,
    /// The revision they go to.
    pub(crate) target: String,
    kinds: BTreeSet<WorkloadKind>,
    timeout: SignedDuration,
}

/// The migration an Istio asks for, if it asks for one.
pub(crate) fn wanted_migration(istio: &Istio) -> Option<&WorkloadMigration> {
    let migration = istio.spec.update_strategy.as_ref()?.workload_migration.as_ref()?;
    (migration.strategy == Some(MigrationStrategy::Batched)).then_some(migration)
}

/// The kinds that move: Deployments unless told otherwise. Kinds nobody knows are reported by the planner.
fn kinds(migration: &WorkloadMigration) -> BTreeSet<WorkloadKind> {
    if migration.kinds.is_empty() {
        return BTreeSet::from([WorkloadKind::Deployment]);
    }
    migration
        .kinds
        .iter()
        .filter_map(|name| WorkloadKind::from_name(name))
        .collect()
}

impl Snapshot {
    /// A workload.
    #[must_use]
    pub fn workload(&self, key: &WorkloadKey) -> Option<&Workload> {
        self.workloads.get(key)
    }

    /// All workloads that are watched.
    pub fn workloads(&self) -> impl Iterator<Item = (&WorkloadKey, &Workload)> {
        self.workloads.iter()
    }

    /// How far the migration of an Istio is; nothing if it moves no workloads.
    #[must_use]
    pub fn migration_index(&self, istio: &str) -> Option<&MigrationIndex> {
        self.migration_indexes.get(istio)
    }

    /// Where an Istio moves workloads to.
    #[must_use]
    pub fn migration_target(&self, istio: &str) -> Option<&str> {
        self.routes.get(istio).map(|route| route.target.as_str())
    }

    /// Whether any Istio moves workloads: only then they need to be watched.
    #[must_use]
    pub fn migrates_workloads(&self) -> bool {
        !self.routes.is_empty()
    }

    /// The Istio whose migration a workload belongs to.
    #[must_use]
    pub fn migrating_istio(&self, key: &WorkloadKey) -> Option<&Istio> {
        self.istios.get(self.mover(key)?)
    }

    /// In whose index a workload stands: there are as many as Istios that move workloads, and it stands in one at most.
    fn mover(&self, key: &WorkloadKey) -> Option<&str> {
        let found = self
            .migration_indexes
            .iter()
            .find(|(_, index)| index.state(key).is_some());
        found.map(|(istio, _)| istio.as_str())
    }

    /// The Istio that relabels a namespace.
    #[must_use]
    pub fn relabeling_istio(&self, namespace: &str) -> Option<&Istio> {
        let name = self
            .migration_indexes
            .iter()
            .find(|(_, index)| index.relabels(namespace));
        self.istios.get(name?.0)
    }

    /// What a name in a label leads to.
    pub(crate) fn resolve(&self, name: &str) -> Option<(&IstioRevision, Option<&IstioRevisionTag>)> {
        if let Some(revision) = self.revisions.get(name) {
            return Some((revision, None));
        }
        let tag = self.tags.get(name)?;
        Some((self.revisions.get(&tag.status.istio_revision)?, Some(tag)))
    }

    pub(super) fn workload_seen(&mut self, key: WorkloadKey, workload: Option<Workload>) -> AffectedSubjects {
        match (self.workloads.get_mut(&key), workload) {
            (None, None) => return AffectedSubjects::new(),
            (Some(old), Some(new)) if *old == new => return AffectedSubjects::new(),
            (Some(old), Some(new)) => *old = new,
            (None, Some(new)) => drop(self.workloads.insert(self.references.shared_key(&key), new)),
            (Some(_), None) => drop(self.workloads.remove(&key)),
        }
        let mut woken = self.refresh_workload(&key);
        // A version that was refused is not the one that is there now.
        if self.mover(&key).is_some() {
            woken.insert(Subject::Workload(key));
        }
        woken
    }

    /// Looks again at who moves what, after one of our objects changed. It costs a walk over all workloads only when the answer differs.
    pub(super) fn reroute(&mut self, istio: &str) -> AffectedSubjects {
        let route = self.istios.get(istio).and_then(|istio| self.route(istio));
        if self.routes.get(istio) == route.as_ref() {
            return self.stir(istio);
        }
        match route {
            Some(route) => self.routes.insert(istio.to_owned(), route),
            None => self.routes.remove(istio),
        };
        let mut woken = self.refresh_all();
        woken.extend(self.stir(istio));
        woken
    }

    fn route(&self, istio: &Istio) -> Option<Route> {
        let migration = wanted_migration(istio)?;
        let based = istio.spec.strategy() == UpdateStrategyType::RevisionBased;
        if istio.metadata.is_deleting() || !based {
            return None;
        }
        let timeout = migration
            .batched
            .as_ref()
            .and_then(|batched| batched.readiness_timeout.as_ref());
        Some(Route {
            uid: istio.metadata.uid.clone(),
            target: active_revision_name(self, istio).ok()?,
            kinds: kinds(migration),
            timeout: timeout
                .and_then(|timeout| GoDuration::span(timeout).ok())
                .filter(SignedDuration::is_positive)
                .unwrap_or(DEFAULT_TIMEOUT),
        })
    }

    /// Looks at every workload and namespace anew.
    pub(super) fn refresh_all(&mut self) -> AffectedSubjects {
        self.migration_indexes.clear();
        for istio in self.routes.keys() {
            self.migration_indexes
                .insert(istio.clone(), MigrationIndex::default());
        }
        if self.routes.is_empty() {
            return AffectedSubjects::new();
        }
        let spaces: Vec<String> = self.namespaces.keys().cloned().collect();
        for space in spaces {
            self.place_namespace(&space);
        }
        let keys: Vec<WorkloadKey> = self.workloads.keys().cloned().collect();
        for key in keys {
            self.place(&key);
        }
        let istios: Vec<String> = self.routes.keys().cloned().collect();
        istios.iter().flat_map(|istio| self.stir(istio)).collect()
    }

    /// Looks at a namespace and its workloads anew.
    pub(super) fn refresh_namespace(&mut self, namespace: &str) -> AffectedSubjects {
        if self.routes.is_empty() {
            return AffectedSubjects::new();
        }
        let mut woken = AffectedSubjects::new();
        for istio in self.place_namespace(namespace) {
            woken.extend(self.stir(&istio));
        }
        let first = WorkloadKey::range_start(namespace);
        let here = self.workloads.range(first..).map(|(key, _)| key);
        let keys: Vec<_> = here
            .take_while(|key| key.namespace() == namespace)
            .cloned()
            .collect();
        for key in keys {
            woken.extend(self.refresh_workload(&key));
        }
        woken
    }

    /// Looks at one workload anew. Where it stands concerns itself, and whoever there is room for if it leaves any.
    pub(super) fn refresh_workload(&mut self, key: &WorkloadKey) -> AffectedSubjects {
        let moved = self.place(key);
        if moved.is_empty() {
            return AffectedSubjects::new();
        }
        let own = Subject::Workload(key.clone());
        moved
            .iter()
            .flat_map(|istio| self.make_room(istio))
            .chain([own])
            .collect()
    }

    /// The key of a workload as it is kept already: ten thousand that move share their texts with those that are watched.
    pub(super) fn shared_key(&self, key: &WorkloadKey) -> WorkloadKey {
        let known = self.workloads.get_key_value(key);
        known.map_or(key, |(known, _)| known).clone()
    }

    /// Puts a workload into the index it belongs to, and into that of the Istio which restarted it while it is coming up, wherever it stands now; gives
    /// the Istios whose index changed.
    fn place(&mut self, key: &WorkloadKey) -> Vec<String> {
        let key = &self.shared_key(key);
        let workload = self.workloads.get(key);
        let found = workload.and_then(|workload| self.standing(key, workload));
        let busy = workload.and_then(|workload| self.busy(workload));
        let migration_indexes = self.migration_indexes.iter_mut();
        let changed = migration_indexes.filter_map(|(istio, index)| {
            let standing = found.as_ref().filter(|(mover, _)| mover == istio);
            let until = busy.as_ref().filter(|(mover, _)| mover == istio);
            let changes = [
                index.set(key, standing.map(|(_, standing)| standing.clone())),
                index.set_busy(key, until.map(|(_, until)| *until)),
            ];
            changes.contains(&true).then(|| istio.clone())
        });
        changed.collect()
    }

    /// Which Istio restarted a workload that is still coming up, and until when it has time.
    fn busy(&self, workload: &Workload) -> Option<(String, Timestamp)> {
        let mark = workload
            .record
            .as_ref()
            .filter(|_| !workload.rollout.was_complete)?;
        let (istio, route) = self.route_to(self.revisions.get(&mark.revision)?)?;
        Some((istio.to_owned(), workload.deadline(mark, route.timeout)))
    }

    /// Notes in every index whether a namespace is to be relabelled; gives the Istios whose index changed.
    fn place_namespace(&mut self, namespace: &str) -> Vec<String> {
        let mover = self.namespace_mover(namespace);
        let migration_indexes = self.migration_indexes.iter_mut();
        let changed = migration_indexes.filter_map(|(istio, index)| {
            let relabel = mover.as_ref() == Some(istio);
            index.set_namespace(namespace, relabel).then(|| istio.clone())
        });
        changed.collect()
    }

    /// The Istio that has to relabel a namespace: the one that owns the old revision its labels name.
    fn namespace_mover(&self, namespace: &str) -> Option<String> {
        let fact = self.namespaces.get(namespace)?;
        let (revision, tag) = self.resolve(self.references.selected_by_namespace(namespace)?)?;
        let (istio, route) = self.route_to(revision)?;
        let old = tag.is_none() && revision.name() != route.target;
        (old && !fact.terminating && !fact.skip_migration).then(|| istio.to_owned())
    }

    /// The Istio that owns a revision, and where it moves workloads.
    fn route_to(&self, revision: &IstioRevision) -> Option<(&str, &Route)> {
        let owner = revision.metadata.controller()?;
        let (istio, route) = self.routes.get_key_value(&owner.name)?;
        let ours = owner.kind == ObjectKind::Istio.name() && owner.uid == route.uid;
        ours.then_some((istio.as_str(), route))
    }

    /// Where a workload stands, and in whose migration.
    fn standing(&self, key: &WorkloadKey, workload: &Workload) -> Option<(String, WorkloadState)> {
        if workload.deleting {
            return None;
        }
        let chosen = self.references.selected_by_namespace(key.namespace());
        let asked = if workload.is_opted_out() {
            None
        } else {
            chosen.or(workload.requested_revision())
        };
        let Some(asked) = asked else {
            return self.without_reference(key);
        };
        let (revision, tag) = self.resolve(asked)?;
        let (istio, route) = self.route_to(revision)?;
        let standing = self.standing_on(key, workload, route, (revision, tag, chosen.is_some()))?;
        Some((istio.to_owned(), standing))
    }

    /// Nothing asks for a proxy, and yet one of an old revision may run.
    fn without_reference(&self, key: &WorkloadKey) -> Option<(String, WorkloadState)> {
        let mut crew = self.references.pods_by_revision(key)?.keys();
        crew.find_map(|revision| {
            let (istio, route) = self.route_to(self.revisions.get(revision)?)?;
            let old = **revision != *route.target;
            old.then(|| (istio.to_owned(), WorkloadState::Skipped(Reason::NoReference)))
        })
    }

    fn standing_on(
        &self,
        key: &WorkloadKey,
        workload: &Workload,
        route: &Route,
        (revision, tag, by_namespace): (&IstioRevision, Option<&IstioRevisionTag>, bool),
    ) -> Option<WorkloadState> {
        let empty = crate::references::PodsByRevision::new();
        let crew = self.references.pods_by_revision(key).unwrap_or(&empty);
        let elsewhere = crew.keys().any(|name| **name != *route.target);
        let sent = workload
            .record
            .as_ref()
            .filter(|mark| mark.revision == route.target);
        let arrived = revision.name() == route.target;
        if let Some(mark) = sent
            && arrived
            && !elsewhere
        {
            let here = crew.get(route.target.as_str()).copied().unwrap_or_default();
            let desired = usize::try_from(workload.rollout.desired).unwrap_or_default();
            let was = self.standing_before(key) == Some(&WorkloadState::Finished { batch: mark.batch });
            // Pods that are replaced later are nobody's failure.
            let all_here = here >= desired || (was && here > 0);
            return Some(if workload.rollout.was_complete && all_here {
                WorkloadState::Finished { batch: mark.batch }
            } else {
                started(workload, route)?
            });
        }
        let leaves = !crew.is_empty();
        match (arrived, tag) {
            (true, _) if !elsewhere => return None,
            (false, Some(tag)) => {
                let standing = tagged(tag, revision, leaves)?;
                // Who will be left alone anyway says so before the tag moves: a plan is asked for before.
                return Some(match self.skipped(key, workload, route) {
                    Some(reason) if standing == WorkloadState::Waiting => WorkloadState::Skipped(reason),
                    _ => standing,
                });
            }
            // Without pods there is nothing to restart: new ones follow the namespace once it is relabelled.
            (false, None) if by_namespace && !leaves => return None,
            _ => {}
        }
        if let Some(reason) = self.skipped(key, workload, route) {
            return Some(WorkloadState::Skipped(reason));
        }
        let space = Subject::Namespace(key.namespace().to_owned());
        if self.is_rejected(&Subject::Workload(key.clone()))
            || (!arrived && by_namespace && self.is_rejected(&space))
        {
            return Some(WorkloadState::Rejected);
        }
        if !arrived && by_namespace {
            return Some(WorkloadState::Waiting);
        }
        if sent.is_some() {
            return started(workload, route);
        }
        Some(WorkloadState::Pending {
            priority: workload.priority,
        })
    }

    fn standing_before(&self, key: &WorkloadKey) -> Option<&WorkloadState> {
        self.migration_indexes.values().find_map(|index| index.state(key))
    }

    fn skipped(&self, key: &WorkloadKey, workload: &Workload, route: &Route) -> Option<Reason> {
        let space = self.namespaces.get(key.namespace());
        if workload.skip || space.is_some_and(|space| space.skip_migration) {
            return Some(Reason::SkippedByAnnotation);
        }
        if !route.kinds.contains(&key.kind()) {
            return Some(Reason::KindNotSelected);
        }
        if workload.paused {
            return Some(Reason::WorkloadPaused);
        }
        workload.on_delete.then_some(Reason::UpdatesOnDelete)
    }

    /// Whether the last attempt was refused in a way that will not right itself.
    pub(crate) fn is_rejected(&self, subject: &Subject) -> bool {
        let class = self.failures.get(subject).map(|failure| failure.class);
        matches!(class, Some(ErrorClass::Other | ErrorClass::Validation))
    }

    /// Whose plan may differ when the terms of a migration or the status it is judged by changed: everybody there is room for.
    pub(super) fn stir(&self, istio: &str) -> AffectedSubjects {
        let (Some(index), Some(object)) = (self.migration_indexes.get(istio), self.istios.get(istio)) else {
            return AffectedSubjects::new();
        };
        let next = index.candidates(self.now).take(self.room(index, object));
        let next = next.map(|(_, key)| Subject::Workload(key.clone()));
        next.chain([Subject::istio(istio)]).collect()
    }

    /// Whose plan may differ when one workload came to stand elsewhere: the others there is room for know it already, but one more may fit.
    fn make_room(&self, istio: &str) -> AffectedSubjects {
        let (Some(index), Some(object)) = (self.migration_indexes.get(istio), self.istios.get(istio)) else {
            return AffectedSubjects::new();
        };
        let last = self.room(index, object).checked_sub(1);
        let last = last.and_then(|last| index.candidates(self.now).nth(last));
        let last = last.map(|(_, key)| Subject::Workload(key.clone()));
        last.into_iter().chain([Subject::istio(istio)]).collect()
    }

    /// How many more may join the batch that is open, as far as its members go.
    fn room(&self, index: &MigrationIndex, istio: &Istio) -> usize {
        let written = istio.status.workload_migration.as_ref().filter(|written| {
            written.state == MigrationState::InProgress
                && self.migration_target(istio.name()) == Some(written.target_revision.as_str())
        });
        let open = written
            .and_then(|written| written.batched)
            .filter(|batched| batched.current_batch > 0 && batched.next_batch_time.is_none());
        let batched = wanted_migration(istio).and_then(|migration| migration.batched.as_ref());
        let size = batched.and_then(|batched| batched.batch_size).unwrap_or(1).max(1);
        open.map_or(0, |open| {
            let size = usize::try_from(size).unwrap_or(1);
            size.saturating_sub(index.members(open.current_batch).count())
        })
    }

    /// The namespaces an Istio relabels.
    pub(super) fn stir_namespaces(&self, istio: &str) -> AffectedSubjects {
        let index = self.migration_indexes.get(istio);
        let names = index.into_iter().flat_map(MigrationIndex::namespaces);
        names.map(|name| Subject::Namespace(name.to_owned())).collect()
    }
}

fn started(workload: &Workload, route: &Route) -> Option<WorkloadState> {
    let mark = workload.record.as_ref()?;
    Some(WorkloadState::Started {
        deadline: workload.deadline(mark, route.timeout),
        batch: mark.batch,
    })
}

/// A workload on a tag is never relabelled: it waits for a tag that follows the Istio, and one on a fixed tag stays.
fn tagged(tag: &IstioRevisionTag, revision: &IstioRevision, leaves: bool) -> Option<WorkloadState> {
    let owner = revision.metadata.controller().map(|owner| owner.name.as_str());
    let target = &tag.spec.target_ref;
    let follows = target.kind == ObjectKind::Istio.name() && Some(target.name.as_str()) == owner;
    let standing = if follows {
        WorkloadState::Waiting
    } else {
        WorkloadState::Skipped(Reason::PinnedByTag)
    };
    leaves.then_some(standing)
}
