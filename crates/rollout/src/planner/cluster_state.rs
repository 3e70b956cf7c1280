//! Observed state of each cluster, and of each revision in it.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_api::delivery::{RevisionPlacement, RolloutStatus, RouteShare, RouteWeights};

use super::PreparedRevisions;
use super::target::from_status;
use crate::diff::Placements;
use crate::manifest::{ObjectKey, Role};
use crate::names::label_value;
use crate::snapshot::{ClusterView, Observed, Snapshot};

/// State of one revision in one cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell<'a> {
    pub(crate) revision: String,
    /// Replicas at the start of the rollout.
    pub(crate) source: u32,
    /// Replicas at the end of the rollout.
    pub(crate) target: u32,
    /// Whether the revision is part of the target, so that it exists at the end of the rollout.
    pub(crate) is_in_target: bool,
    /// Whether the replicas of the revision are managed.
    pub(crate) is_managed: bool,
    /// Observed workloads.
    pub(crate) workloads: Vec<(&'a ObjectKey, &'a Observed)>,
    /// Largest `spec.replicas` of the workloads.
    pub(crate) spec: u32,
    /// Smallest `spec.replicas` of the workloads; 0 if a workload is missing.
    pub(crate) low: u32,
    /// Smallest number of available pods of the workloads; 0 if a workload is missing.
    pub(crate) available: u32,
    /// Largest observed weight in routes.
    pub(crate) weight: u32,
    /// Weight at the start of the rollout.
    pub(crate) source_weight: u32,
    /// Weight at the end of the rollout.
    pub(crate) target_weight: u32,
    /// Whether a Service selects the pods of the revision.
    pub(crate) has_service: bool,
    /// Desired replicas at the current step.
    pub(crate) desired: u32,
    /// Replicas after this plan.
    pub(crate) next: u32,
}

impl Cell<'_> {
    pub(crate) fn increment(&self) -> u32 {
        self.target.saturating_sub(self.source)
    }

    pub(crate) fn is_shrinking(&self) -> bool {
        self.target < self.source
    }
}

/// Limit up to which the rollout of a group of clusters may proceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The group has not started.
    #[default]
    Hold,
    /// The group may proceed to the goals of the current step.
    Step,
    /// The group may proceed to the end of the rollout.
    Final,
}

/// State of one cluster.
#[derive(Clone, Debug)]
pub(crate) struct ClusterState<'a> {
    pub(crate) name: String,
    pub(crate) view: &'a ClusterView,
    pub(crate) is_reachable: bool,
    pub(crate) group: usize,
    pub(crate) mode: Mode,
    pub(crate) cells: BTreeMap<String, Cell<'a>>,
    /// Number of requested replicas that the surge budget did not allow.
    pub(crate) denied_growth: u32,
}

impl ClusterState<'_> {
    pub(crate) fn start_total(&self) -> u32 {
        self.cells.values().map(|cell| cell.source).sum()
    }

    pub(crate) fn target_total(&self) -> u32 {
        self.cells.values().map(|cell| cell.target).sum()
    }

    pub(crate) fn spec_total(&self) -> u32 {
        self.cells.values().map(|cell| cell.spec).sum()
    }

    pub(crate) fn next_total(&self) -> u32 {
        self.cells.values().map(|cell| cell.next).sum()
    }

    pub(crate) fn available_total(&self) -> u32 {
        self.cells.values().map(|cell| cell.available).sum()
    }

    /// Returns the available replicas of a revision.
    pub(crate) fn available(&self, revision: &str) -> u32 {
        self.cells.get(revision).map_or(0, |cell| cell.available)
    }

    /// Returns the weight of a share at the end of the rollout: 0 if the revision has no replicas in this
    /// cluster then, and `replicas` if the share has no weight.
    pub(crate) fn end_weight(&self, share: &RouteShare, replicas: impl Fn(&Cell<'_>) -> u32) -> u32 {
        let cell = self.cells.get(&label_value(&share.revision_name));
        cell.filter(|cell| cell.is_in_target && cell.target > 0)
            .map_or(0, |cell| share.weight.unwrap_or_else(|| replicas(cell)))
    }

    /// Returns the share of the growth that is available, in percent.
    pub(crate) fn progress(&self) -> u32 {
        let growing = self.cells.values().filter(|cell| cell.increment() > 0);
        let progress = growing.map(|cell| {
            let gained = cell.available.saturating_sub(cell.source).min(cell.increment());
            gained.saturating_mul(100) / cell.increment()
        });
        progress.min().unwrap_or(100)
    }
}

/// Whether an observed object belongs to the deployment.
pub(crate) fn is_ours(snapshot: &Snapshot, observed: &Observed) -> bool {
    observed.deployment.as_deref() == Some(label_value(snapshot.deployment.name()).as_str())
}

/// Returns the states of all clusters for a rollout that ends at `end`.
pub(crate) fn build_states<'a>(
    snapshot: &'a Snapshot,
    rollout: &RolloutStatus,
    end: &mainstay_api::delivery::Allocation,
    prepared: &PreparedRevisions,
) -> BTreeMap<String, ClusterState<'a>> {
    let mut clusters: BTreeMap<String, ClusterState<'a>> = BTreeMap::new();
    for (name, view) in &snapshot.clusters {
        let cells = observe_cells(snapshot, view, prepared);
        clusters.insert(
            name.clone(),
            ClusterState {
                name: name.clone(),
                view,
                is_reachable: view.is_reachable(snapshot.now),
                group: 0,
                mode: Mode::Hold,
                cells,
                denied_growth: 0,
            },
        );
    }
    set_replicas(
        &mut clusters,
        &from_status(&rollout.source.placement),
        prepared,
        false,
    );
    set_replicas(&mut clusters, &from_status(&end.placement), prepared, true);
    set_weights(&mut clusters, rollout, end);
    for state in clusters.values_mut() {
        for cell in state.cells.values_mut() {
            cell.next = cell.spec;
        }
    }
    clusters
}

fn observe_cells<'a>(
    snapshot: &'a Snapshot,
    view: &'a ClusterView,
    prepared: &PreparedRevisions,
) -> BTreeMap<String, Cell<'a>> {
    let own = label_value(snapshot.deployment.name());
    let mut cells: BTreeMap<String, Cell<'a>> = BTreeMap::new();
    let mut services: BTreeMap<&str, &str> = BTreeMap::new();
    let mut weights: BTreeMap<&str, u32> = BTreeMap::new();
    for (key, observed) in &view.objects {
        if observed.deployment.as_deref() != Some(own.as_str()) {
            continue;
        }
        match (Role::for_kind(&key.kind), &observed.revision) {
            (Role::Workload, Some(revision)) => {
                cell_mut(&mut cells, revision).workloads.push((key, observed));
            }
            (Role::Support, Some(revision)) if key.kind == "Service" => {
                services.insert(&key.name, revision);
            }
            (Role::Route, _) => {
                for (service, weight) in &observed.weights {
                    let known = weights.entry(service).or_insert(0);
                    *known = (*weight).max(*known);
                }
            }
            _ => {}
        }
    }
    for (service, revision) in services {
        if let Some(cell) = cells.get_mut(revision) {
            cell.has_service = true;
            cell.weight = cell.weight.max(weights.get(service).copied().unwrap_or_default());
        }
    }
    for cell in cells.values_mut() {
        summarize_workloads(cell, prepared);
    }
    cells
}

fn cell_mut<'a, 'b>(cells: &'b mut BTreeMap<String, Cell<'a>>, revision: &str) -> &'b mut Cell<'a> {
    cells.entry(revision.to_owned()).or_insert_with(|| Cell {
        revision: revision.to_owned(),
        is_managed: true,
        ..Cell::default()
    })
}

fn summarize_workloads(cell: &mut Cell<'_>, prepared: &PreparedRevisions) {
    let expected = prepared
        .revisions
        .get(&cell.revision)
        .map_or(cell.workloads.len(), |revision| revision.workloads.len());
    let is_complete = cell.workloads.len() >= expected;
    let live = || {
        cell.workloads
            .iter()
            .filter(|(_, observed)| !observed.is_deleting)
    };
    let spec = live().map(|(_, observed)| observed.replicas).max();
    let low = live().map(|(_, observed)| observed.replicas).min();
    let available = live()
        .map(|(_, observed)| observed.available.min(observed.replicas))
        .min();
    let is_complete = is_complete && live().count() == cell.workloads.len();
    cell.spec = spec.unwrap_or_default();
    if is_complete {
        cell.low = low.unwrap_or_default();
        cell.available = available.unwrap_or_default();
    }
}

fn set_replicas(
    clusters: &mut BTreeMap<String, ClusterState<'_>>,
    placements: &Placements,
    prepared: &PreparedRevisions,
    is_end: bool,
) {
    for (assignment, replicas) in placements {
        let Some(state) = clusters.get_mut(&assignment.cluster) else {
            continue;
        };
        let label = label_value(&assignment.revision);
        let cell = cell_mut(&mut state.cells, &label);
        let unmanaged = || {
            let rendered = prepared.revisions.get(&label);
            let rendered = rendered.map_or(1, |revision| revision.rendered_replicas);
            if cell.workloads.is_empty() {
                rendered
            } else {
                cell.spec
            }
        };
        let number = replicas.unwrap_or_else(unmanaged);
        if is_end {
            cell.target = number;
            cell.is_in_target = true;
            cell.is_managed = replicas.is_some();
        } else {
            cell.source = number;
        }
    }
}

fn set_weights(
    clusters: &mut BTreeMap<String, ClusterState<'_>>,
    rollout: &RolloutStatus,
    end: &mainstay_api::delivery::Allocation,
) {
    for state in clusters.values_mut() {
        let source = super::routes::find_traffic(&rollout.source_traffic, &state.name);
        for share in source
            .iter()
            .flat_map(|traffic| &traffic.routes)
            .flat_map(|route| &route.shares)
        {
            if let Some(cell) = state.cells.get_mut(&label_value(&share.revision_name)) {
                cell.source_weight = cell.source_weight.max(share.weight.unwrap_or_default());
            }
        }
        for route in &end.routes {
            set_target_weights(state, route);
        }
    }
}

/// Sets the weights that a rule has in a cluster at the end of the rollout, in percent and rounded up.
fn set_target_weights(state: &mut ClusterState<'_>, route: &RouteWeights) {
    let weights: Vec<(String, u64)> = route
        .shares
        .iter()
        .map(|share| {
            let label = label_value(&share.revision_name);
            let weight = state.end_weight(share, |cell| cell.target);
            (label, u64::from(weight))
        })
        .collect();
    let total: u64 = weights.iter().map(|(_, weight)| weight).sum();
    for (label, weight) in weights {
        let percent = (weight * 100).div_ceil(total.max(1));
        if let Some(cell) = state.cells.get_mut(&label) {
            cell.target_weight = cell.target_weight.max(u32::try_from(percent).unwrap_or(100));
        }
    }
}

/// Returns the observed replicas of all revisions, which are the source of a rollout. Clusters that the
/// controllers could not read since their start have the replicas in the status of the deployment.
pub(crate) fn observed_placement(
    snapshot: &Snapshot,
    prepared: &PreparedRevisions,
    previous: Option<&RolloutStatus>,
) -> Vec<RevisionPlacement> {
    let names = revision_names(snapshot, previous);
    let mut placements = Placements::new();
    let reported = from_status(&snapshot.deployment.status.placement);
    for (cluster, view) in &snapshot.clusters {
        if view.is_unobserved {
            let own = reported
                .iter()
                .filter(|(assignment, _)| assignment.cluster == *cluster);
            placements.extend(own.map(|(assignment, replicas)| (assignment.clone(), *replicas)));
            continue;
        }
        for (revision, cell) in observe_cells(snapshot, view, prepared) {
            let name = names.get(&revision).unwrap_or(&revision).clone();
            let assignment = crate::diff::Assignment {
                revision: name,
                cluster: cluster.clone(),
            };
            placements.insert(assignment, Some(cell.spec));
        }
    }
    super::target::to_status(&placements)
}

/// Returns the full names of revisions by label value, because long names are shortened in labels.
fn revision_names(snapshot: &Snapshot, previous: Option<&RolloutStatus>) -> BTreeMap<String, String> {
    let known: BTreeSet<&str> = snapshot
        .revisions
        .keys()
        .map(String::as_str)
        .chain(
            previous
                .iter()
                .flat_map(|rollout| [&rollout.stable, &rollout.target, &rollout.source])
                .flat_map(|allocation| &allocation.placement)
                .map(|placement| placement.revision_name.as_str()),
        )
        .collect();
    known
        .into_iter()
        .map(|name| (label_value(name), name.to_owned()))
        .collect()
}
