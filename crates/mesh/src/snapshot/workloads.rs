//! Records workloads and updates the migration indexes. Returns the subjects whose plan may have changed.
//!
//! Decisions are made by [`crate::migration`]. This module stores their results per Istio.

use std::collections::BTreeMap;

use mainstay_api::{Istio, IstioRevision, IstioRevisionTag, MigrationState};

use super::{AffectedSubjects, Snapshot};
use crate::Subject;
use crate::migration::{
    self, MigrationIndex, MigrationSettings, MigrationTarget, WorkloadState, batch_capacity,
    migration_target, open_batch,
};
use crate::workload::{Workload, WorkloadKey};

impl Snapshot {
    /// Returns a workload.
    #[must_use]
    pub fn workload(&self, key: &WorkloadKey) -> Option<&Workload> {
        self.workloads.get(key)
    }

    /// Returns all watched workloads.
    pub fn workloads(&self) -> impl Iterator<Item = (&WorkloadKey, &Workload)> {
        self.workloads.iter()
    }

    /// Returns the index of an Istio's migration, or `None` if the Istio does not migrate workloads.
    #[must_use]
    pub fn migration_index(&self, istio: &str) -> Option<&MigrationIndex> {
        self.migration_indexes.get(istio)
    }

    /// Returns the revision to which an Istio migrates workloads.
    #[must_use]
    pub fn migration_target(&self, istio: &str) -> Option<&str> {
        let target = self.migration_targets.get(istio);
        target.map(|target| target.revision.as_str())
    }

    /// Returns the migration targets by the name of the Istio.
    pub(crate) fn migration_targets(&self) -> &BTreeMap<String, MigrationTarget> {
        &self.migration_targets
    }

    /// Whether any Istio migrates workloads.
    #[must_use]
    pub fn migrates_workloads(&self) -> bool {
        !self.migration_targets.is_empty()
    }

    /// Returns the Istio that migrates a workload.
    #[must_use]
    pub fn migrating_istio(&self, key: &WorkloadKey) -> Option<&Istio> {
        let mut indexes = self.migration_indexes.iter();
        // A workload is in at most one index, and there are few Istios.
        let (istio, _) = indexes.find(|(_, index)| index.state(key).is_some())?;
        self.istios.get(istio)
    }

    /// Returns the last recorded state of a workload.
    pub(crate) fn indexed_state(&self, key: &WorkloadKey) -> Option<&WorkloadState> {
        self.migration_indexes.values().find_map(|index| index.state(key))
    }

    /// Returns the Istio that relabels a namespace.
    #[must_use]
    pub fn relabeling_istio(&self, namespace: &str) -> Option<&Istio> {
        let mut indexes = self.migration_indexes.iter();
        let (istio, _) = indexes.find(|(_, index)| index.relabels(namespace))?;
        self.istios.get(istio)
    }

    /// Returns the revision that a name in a label refers to, and the tag if the name is that of a tag.
    pub(crate) fn resolve(&self, name: &str) -> Option<(&IstioRevision, Option<&IstioRevisionTag>)> {
        if let Some(revision) = self.revisions.get(name) {
            return Some((revision, None));
        }
        let tag = self.tags.get(name)?;
        Some((self.revisions.get(&tag.status.istio_revision)?, Some(tag)))
    }

    pub(super) fn record_workload(
        &mut self,
        key: WorkloadKey,
        workload: Option<Workload>,
    ) -> AffectedSubjects {
        match (self.workloads.get_mut(&key), workload) {
            (None, None) => return AffectedSubjects::new(),
            (Some(old), Some(new)) if *old == new => return AffectedSubjects::new(),
            (Some(old), Some(new)) => *old = new,
            (None, Some(new)) => drop(self.workloads.insert(self.references.shared_key(&key), new)),
            (Some(_), None) => drop(self.workloads.remove(&key)),
        }
        let mut affected = self.reindex_workload(&key);
        // Failures of an older resource version do not apply to this one, so the workload is planned again.
        if self.indexed_state(&key).is_some() {
            affected.insert(Subject::Workload(key));
        }
        affected
    }

    /// Updates the migration target of an Istio after one of our objects changed. Updates all workloads
    /// only if the target differs.
    pub(super) fn update_migration_target(&mut self, istio: &str) -> AffectedSubjects {
        let object = self.istios.get(istio);
        let target = object.and_then(|object| migration_target(self, object));
        if self.migration_targets.get(istio) == target.as_ref() {
            return self.restartable_subjects(istio);
        }
        match target {
            Some(target) => self.migration_targets.insert(istio.to_owned(), target),
            None => self.migration_targets.remove(istio),
        };
        let mut affected = self.reindex_all();
        affected.extend(self.restartable_subjects(istio));
        affected
    }

    /// Rebuilds all indexes.
    pub(super) fn reindex_all(&mut self) -> AffectedSubjects {
        self.migration_indexes.clear();
        for istio in self.migration_targets.keys() {
            self.migration_indexes
                .insert(istio.clone(), MigrationIndex::default());
        }
        if self.migration_targets.is_empty() {
            return AffectedSubjects::new();
        }
        let namespaces: Vec<String> = self.namespaces.keys().cloned().collect();
        for namespace in namespaces {
            self.index_namespace(&namespace);
        }
        let keys: Vec<WorkloadKey> = self.workloads.keys().cloned().collect();
        for key in keys {
            self.index_workload(&key);
        }
        let istios: Vec<String> = self.migration_targets.keys().cloned().collect();
        istios
            .iter()
            .flat_map(|istio| self.restartable_subjects(istio))
            .collect()
    }

    /// Updates the entries of a namespace and its workloads.
    pub(super) fn reindex_namespace(&mut self, namespace: &str) -> AffectedSubjects {
        let mut affected = AffectedSubjects::new();
        if self.migration_targets.is_empty() {
            return affected;
        }
        for istio in self.index_namespace(namespace) {
            affected.extend(self.restartable_subjects(&istio));
        }
        let first = WorkloadKey::range_start(namespace);
        let keys = self.workloads.range(first..).map(|(key, _)| key);
        let keys: Vec<_> = keys
            .take_while(|key| key.namespace() == namespace)
            .cloned()
            .collect();
        for key in keys {
            affected.extend(self.reindex_workload(&key));
        }
        affected
    }

    /// Updates the entries of one workload. A change affects the workload itself and the next workload that
    /// may use the released capacity.
    pub(super) fn reindex_workload(&mut self, key: &WorkloadKey) -> AffectedSubjects {
        let changed = self.index_workload(key);
        if changed.is_empty() {
            return AffectedSubjects::new();
        }
        let workload = Subject::Workload(key.clone());
        changed
            .iter()
            .flat_map(|istio| self.next_restartable_subject(istio))
            .chain([workload])
            .collect()
    }

    /// Returns the stored copy of a key, so that indexes and recorded workloads share its strings.
    pub(super) fn shared_key(&self, key: &WorkloadKey) -> WorkloadKey {
        let known = self.workloads.get_key_value(key);
        known.map_or(key, |(known, _)| known).clone()
    }

    /// Records the state of a workload in the index of the Istio that migrates it, and its restart in the
    /// index of the Istio that restarted it. Returns the Istios with a changed index.
    fn index_workload(&mut self, key: &WorkloadKey) -> Vec<String> {
        let key = &self.shared_key(key);
        let workload = self.workloads.get(key);
        let assigned = workload.and_then(|workload| migration::workload_state(self, key, workload));
        let restart = workload.and_then(|workload| migration::restart_deadline(self, workload));
        let indexes = self.migration_indexes.iter_mut();
        let changed = indexes.filter_map(|(istio, index)| {
            let assigned = assigned.as_ref().filter(|assigned| assigned.istio == *istio);
            let restart = restart.as_ref().filter(|restart| restart.istio == *istio);
            let changes = [
                index.set(key, assigned.map(|assigned| assigned.state.clone())),
                index.set_restarting(key, restart.map(|restart| restart.deadline)),
            ];
            changes.contains(&true).then(|| istio.clone())
        });
        changed.collect()
    }

    /// Records in every index whether a namespace must be relabeled. Returns the Istios with a changed
    /// index.
    fn index_namespace(&mut self, namespace: &str) -> Vec<String> {
        let owner = migration::relabeling_istio(self, namespace);
        let indexes = self.migration_indexes.iter_mut();
        let changed = indexes.filter_map(|(istio, index)| {
            let relabel = owner.as_ref() == Some(istio);
            index.set_namespace(namespace, relabel).then(|| istio.clone())
        });
        changed.collect()
    }

    /// Returns an Istio and the workloads that may join its open batch. Their plans may change with the
    /// settings or the status of the migration.
    pub(super) fn restartable_subjects(&self, istio: &str) -> AffectedSubjects {
        let (Some(index), Some(object)) = (self.migration_indexes.get(istio), self.istios.get(istio)) else {
            return AffectedSubjects::new();
        };
        let next = index
            .candidates(self.now)
            .take(self.unfilled_places(index, object));
        let next = next.map(|(_, key)| Subject::Workload(key.clone()));
        next.chain([Subject::istio(istio)]).collect()
    }

    /// Returns an Istio and the last workload that may join its open batch. If the state of one workload
    /// changes, only the last one is new; the workloads before it are already enqueued.
    fn next_restartable_subject(&self, istio: &str) -> AffectedSubjects {
        let (Some(index), Some(object)) = (self.migration_indexes.get(istio), self.istios.get(istio)) else {
            return AffectedSubjects::new();
        };
        let last = self.unfilled_places(index, object).checked_sub(1);
        let last = last.and_then(|last| index.candidates(self.now).nth(last));
        let last = last.map(|(_, key)| Subject::Workload(key.clone()));
        last.into_iter().chain([Subject::istio(istio)]).collect()
    }

    /// Returns the number of workloads that may join the open batch once all restarts outside the batch are
    /// complete.
    fn unfilled_places(&self, index: &MigrationIndex, istio: &Istio) -> usize {
        let written = istio.status.workload_migration.as_ref().filter(|written| {
            written.state == MigrationState::InProgress
                && self.migration_target(istio.name()) == Some(written.target_revision.as_str())
        });
        let batch = written
            .and_then(|written| written.batched.as_ref())
            .and_then(open_batch);
        let settings = MigrationSettings::from_istio(istio);
        let capacity = batch.zip(settings);
        capacity.map_or(0, |(batch, settings)| {
            batch_capacity(index, &settings, batch, self.now).unfilled
        })
    }

    /// Returns the namespaces an Istio relabels.
    pub(super) fn relabeled_namespaces(&self, istio: &str) -> AffectedSubjects {
        let index = self.migration_indexes.get(istio);
        let names = index.into_iter().flat_map(MigrationIndex::namespaces);
        names.map(|name| Subject::Namespace(name.to_owned())).collect()
    }
}
