//! Steps of each cluster in a safe order: inventory, applies, scaling, routes and deletions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mainstay_api::{OwnerReference, Reason};

use super::cluster_state::{Cell, ClusterState, Mode};
use super::{Clusters, Stage};
use crate::manifest::{Manifest, ObjectKey, Role};
use crate::names::{inventory_name, label_value};
use crate::plan::{Action, Apply, Delete, InventoryWrite, Scale, Step};
use crate::snapshot::{Observed, Snapshot};

/// Returns the steps of all reachable clusters.
pub(super) fn plan_objects<'a>(snapshot: &'a Snapshot, stage: &'a Stage<'a>) -> Clusters {
    let mut clusters = Clusters::default();
    for state in stage.clusters.values().filter(|state| state.is_reachable) {
        plan_cluster(snapshot, stage, state, &mut clusters);
    }
    clusters
}

fn plan_cluster<'a>(
    snapshot: &'a Snapshot,
    stage: &'a Stage<'a>,
    state: &'a ClusterState<'a>,
    clusters: &mut Clusters,
) {
    let mut builder = Builder {
        snapshot,
        state,
        owner: state
            .name
            .is_empty()
            .then(|| snapshot.deployment.owner_reference()),
        owner_label: label_value(snapshot.deployment.name()),
        kept: BTreeSet::new(),
        duplicates: &stage.duplicates,
        desired: Vec::new(),
        steps: Vec::new(),
    };
    for cell in state.cells.values() {
        builder.keep_revision(stage, cell);
    }
    for cell in state.cells.values() {
        builder.apply_revision(stage, cell);
    }
    builder.scale(|cell, observed| cell.next > observed.replicas, &Reason::ScaledUp);
    let routes = stage.routes.get(&state.name);
    // A Service whose name collides is not applied, so no route may start to refer to it.
    let has_collision = !stage.duplicates.is_empty();
    for manifest in routes.iter().flat_map(|routes| &routes.manifests) {
        builder.kept.insert(&manifest.key);
        if !has_collision {
            builder.apply(manifest, None, Reason::WeightsChanged);
        }
    }
    if has_collision || routes.is_some_and(|routes| routes.lacks_backend) {
        builder.keep_routes();
    }
    builder.scale(
        |cell, observed| cell.next < observed.replicas && cell.next < cell.spec,
        &Reason::ScaledDown,
    );
    let gone = builder.delete_obsolete();
    builder.finish(&gone, clusters);
}

/// Builds the steps of one cluster.
struct Builder<'a> {
    snapshot: &'a Snapshot,
    state: &'a ClusterState<'a>,
    owner: Option<OwnerReference>,
    /// Value of the deployment label on our objects.
    owner_label: String,
    /// Objects that must not be deleted.
    kept: BTreeSet<&'a ObjectKey>,
    /// Objects with names that collide. They are not applied.
    duplicates: &'a BTreeSet<ObjectKey>,
    /// Objects that should exist.
    desired: Vec<Arc<Manifest>>,
    steps: Vec<Step>,
}

impl<'a> Builder<'a> {
    fn is_ours(&self, observed: &Observed) -> bool {
        observed.deployment.as_ref() == Some(&self.owner_label)
    }

    fn push(&mut self, action: Action, reason: Reason) {
        self.steps.push(Step { action, reason });
    }

    /// Keeps the objects of a revision that should exist now or still has workloads.
    fn keep_revision(&mut self, stage: &'a Stage<'_>, cell: &Cell<'_>) {
        let is_kept = is_present(self.state, cell) || !cell.workloads.is_empty();
        let Some(prepared) = stage.prepared.revisions.get(&cell.revision).filter(|_| is_kept) else {
            if !cell.workloads.is_empty() {
                self.keep_observed(cell);
            }
            return;
        };
        let support = prepared.support.iter().map(|manifest| &manifest.key);
        self.kept.extend(support);
        if cell.is_in_target {
            let workloads = prepared.workloads.iter().map(|manifest| &manifest.key);
            self.kept.extend(workloads);
        }
    }

    /// Keeps the observed objects, except workloads, of a revision that no longer exists.
    fn keep_observed(&mut self, cell: &Cell<'_>) {
        let objects = self.state.view.objects.iter();
        let own = objects.filter(|(key, observed)| {
            observed.revision.as_ref() == Some(&cell.revision) && Role::for_kind(&key.kind) != Role::Workload
        });
        self.kept.extend(own.map(|(key, _)| key));
    }

    fn keep_routes(&mut self) {
        let objects = self.state.view.objects.keys();
        let routes = objects.filter(|key| Role::for_kind(&key.kind) == Role::Route);
        self.kept.extend(routes);
    }

    /// Applies the missing or outdated objects of a revision that should exist now.
    fn apply_revision(&mut self, stage: &Stage<'_>, cell: &Cell<'_>) {
        let prepared = stage.prepared.revisions.get(&cell.revision);
        let Some(prepared) = prepared.filter(|_| is_present(self.state, cell)) else {
            return;
        };
        for manifest in &prepared.support {
            self.apply(manifest, None, Reason::ObjectOutdated);
        }
        for manifest in &prepared.workloads {
            let replicas = if cell.is_managed {
                cell.next
            } else {
                prepared.rendered_replicas
            };
            self.apply(manifest, Some(replicas), Reason::ObjectOutdated);
        }
    }

    /// Applies an object unless the observed one is equal. Objects of other owners are never changed, and
    /// objects whose names collide are not applied.
    fn apply(&mut self, manifest: &Arc<Manifest>, replicas: Option<u32>, outdated: Reason) {
        if self.duplicates.contains(&manifest.key) {
            return;
        }
        self.desired.push(Arc::clone(manifest));
        let observed = self.state.view.objects.get(&manifest.key);
        let (precondition, replicas, reason) = match observed {
            None => (None, replicas, Reason::ObjectMissing),
            Some(observed) if observed.is_deleting || !self.is_ours(observed) => return,
            Some(observed) if observed.hash.as_ref() != Some(&manifest.hash) => {
                (Some(observed.version.clone()), None, outdated)
            }
            Some(observed) if observed.is_drifted => {
                (Some(observed.version.clone()), None, Reason::ObjectDrifted)
            }
            Some(_) => return,
        };
        let apply = Apply {
            manifest: Arc::clone(manifest),
            replicas: replicas.filter(|_| manifest.role == Role::Workload),
            owner: self.owner.clone(),
            precondition,
        };
        self.push(Action::Apply(apply), reason);
    }

    fn scale(&mut self, is_due: impl Fn(&Cell<'_>, &Observed) -> bool, reason: &Reason) {
        let state = self.state;
        for cell in state.cells.values() {
            let is_removed = !cell.is_in_target;
            for (key, observed) in &cell.workloads {
                if (cell.is_managed || is_removed) && !observed.is_deleting && is_due(cell, observed) {
                    let scale = Scale {
                        key: (*key).clone(),
                        replicas: cell.next,
                        precondition: observed.version.clone(),
                    };
                    self.push(Action::Scale(scale), reason.clone());
                }
            }
        }
    }

    /// Deletes objects of the inventory that are no longer kept: first workloads without pods, then objects
    /// that were used by them and that no route refers to. Returns the objects that no longer exist.
    fn delete_obsolete(&mut self) -> BTreeSet<&'a ObjectKey> {
        let view = self.state.view;
        let referenced: BTreeSet<&str> = view
            .objects
            .values()
            .flat_map(|observed| observed.weights.keys())
            .map(String::as_str)
            .collect();
        let mut gone = BTreeSet::new();
        for key in &view.inventory.objects {
            if self.kept.contains(key) {
                continue;
            }
            let observed = view.objects.get(key);
            let Some(observed) = observed.filter(|observed| self.is_ours(observed)) else {
                gone.insert(key);
                continue;
            };
            let is_free = match Role::for_kind(&key.kind) {
                Role::Workload => observed.replicas == 0 && observed.pods == 0,
                Role::Route => true,
                Role::Support => key.kind != "Service" || !referenced.contains(key.name.as_str()),
            };
            if is_free && !observed.is_deleting {
                let delete = Delete {
                    key: key.clone(),
                    precondition: observed.version.clone(),
                };
                self.push(Action::Delete(delete), Reason::ObjectObsolete);
            }
        }
        gone
    }

    /// Adds new objects to the inventory before they are applied, and removes deleted objects afterwards.
    fn finish(mut self, gone: &BTreeSet<&ObjectKey>, clusters: &mut Clusters) {
        let view = self.state.view;
        let known = &view.inventory.objects;
        let applied = self.steps.iter().filter_map(|step| match &step.action {
            Action::Apply(apply) => Some(&apply.manifest.key),
            _ => None,
        });
        let new: Vec<&ObjectKey> = applied.filter(|key| !known.contains(key)).collect();
        let name = inventory_name(self.snapshot.deployment.name(), &self.state.name);
        let cluster = self.state.name.clone();
        let write = |objects| {
            Action::WriteInventory(InventoryWrite {
                name,
                cluster,
                precondition: view.inventory.version.clone(),
                objects,
            })
        };
        if !new.is_empty() {
            let objects = known.iter().chain(new).cloned().collect();
            clusters.prepare.push(Step {
                action: write(objects),
                reason: Reason::InventoryExtended,
            });
        } else if !gone.is_empty() {
            let left = known.iter().filter(|key| !gone.contains(key));
            clusters.finish.push(Step {
                action: write(left.cloned().collect()),
                reason: Reason::InventoryReduced,
            });
        }
        if known.is_empty() && !self.state.name.is_empty() && !self.steps.is_empty() {
            let namespace = self.snapshot.deployment.namespace().to_owned();
            let step = Step {
                action: Action::EnsureNamespace(namespace),
                reason: Reason::ObjectMissing,
            };
            self.steps.insert(0, step);
        }
        clusters.desired.insert(self.state.name.clone(), self.desired);
        if !self.steps.is_empty() {
            clusters.steps.insert(self.state.name.clone(), self.steps);
        }
    }
}

/// Whether a revision should exist in a cluster at this time: its group has started, and its first replica
/// is due.
fn is_present(state: &ClusterState<'_>, cell: &Cell<'_>) -> bool {
    let has_started =
        state.mode == Mode::Final || cell.next > 0 || cell.source > 0 || !cell.workloads.is_empty();
    cell.is_in_target
        && has_started
        && (state.mode != Mode::Hold || !cell.workloads.is_empty() || cell.source > 0)
}

/// Returns the names of needed objects that belong to another owner, by cluster.
pub(super) fn find_conflicts(snapshot: &Snapshot, stage: &Stage<'_>) -> BTreeMap<String, Vec<String>> {
    let mut conflicts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let own = label_value(snapshot.deployment.name());
    let is_foreign = |observed: &Observed| observed.deployment.as_ref() != Some(&own);
    for state in stage.clusters.values() {
        if !state.view.objects.values().any(is_foreign) {
            continue;
        }
        let foreign = |key: &ObjectKey| state.view.objects.get(key).is_some_and(is_foreign);
        let needed = state
            .cells
            .values()
            .filter(|cell| cell.is_in_target)
            .filter_map(|cell| stage.prepared.revisions.get(&cell.revision))
            .flat_map(|revision| revision.support.iter().chain(&revision.workloads));
        let routes = stage.routes.get(&state.name);
        let routes = routes.iter().flat_map(|routes| &routes.manifests);
        for manifest in needed.chain(routes).filter(|manifest| foreign(&manifest.key)) {
            let list = conflicts.entry(state.name.clone()).or_default();
            list.push(manifest.key.to_string());
        }
    }
    conflicts
}
