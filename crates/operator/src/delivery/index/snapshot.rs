//! Builds the snapshots from which deployments are planned.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use mainstay_api::delivery::{Cluster, DeploymentAction, ResourceInventory};
use mainstay_rollout::manifest::ObjectKey;
use mainstay_rollout::snapshot::{ClusterView, Inventory, Snapshot};
use mainstay_rollout::{inventory_name, label_value};

use super::{Index, Link};
use crate::delivery::names::{ClusterKey, Name, ObjectType};
use crate::delivery::observed::metadata_version;

/// Start time of the outage of a cluster that was never reached or has no Cluster object.
const NEVER_REACHED: Timestamp = Timestamp::UNIX_EPOCH;

impl Index {
    /// Returns the snapshot of a deployment, or `None` while an object or cluster that it depends on has
    /// not been read yet. Unreachable clusters do not delay the snapshot.
    pub(crate) fn snapshot(&mut self, name: &Name, now: Timestamp) -> Option<Snapshot> {
        self.watch_inventoried_types(name);
        if !self.is_host_listed() || !self.are_clusters_observed(name) {
            return None;
        }
        self.prune_measurements(name, now);
        let deployment = self.deployments.get(name)?;
        let revisions = self.revisions.in_namespace(&name.namespace);
        let templates = self.templates.in_namespace(&name.namespace);
        Some(Snapshot {
            now,
            deployment: (**deployment).clone(),
            revisions: revisions
                .map(|(name, revision)| (name.name.clone(), revision.clone()))
                .collect(),
            clusters: self.cluster_views(name),
            templates: templates
                .map(|(name, template)| (name.name.clone(), (**template).clone()))
                .collect(),
            actions: self.actions_for(name),
            measurements: self.measurements.get(name).cloned().unwrap_or_default(),
        })
    }

    /// Adds the kinds of all objects in inventories to the watched kinds, so that no object counts as
    /// deleted before its kind was listed.
    fn watch_inventoried_types(&mut self, name: &Name) {
        let inventories: Vec<_> = self.inventories_for(name).cloned().collect();
        for inventory in inventories {
            let key = ClusterKey::for_name(&name.namespace, &inventory.spec.cluster_name);
            if !self.is_registered(&key) {
                continue;
            }
            for group in &inventory.spec.objects {
                self.cluster_mut(&key)
                    .watch_type(ObjectType::new(&group.api_version, &group.kind));
            }
        }
    }

    fn inventories_for<'a>(
        &'a self,
        name: &'a Name,
    ) -> impl Iterator<Item = &'a std::sync::Arc<ResourceInventory>> {
        let inventories = self.inventories.in_namespace(&name.namespace);
        inventories
            .map(|(_, inventory)| inventory)
            .filter(|inventory| inventory.spec.deployment_name == name.name)
    }

    fn is_registered(&self, key: &ClusterKey) -> bool {
        match key {
            ClusterKey::Host => true,
            ClusterKey::Remote(name) => self.clusters.get(name).is_some(),
        }
    }

    /// Whether every cluster was called at least once, and all kinds of every reachable cluster were listed.
    fn are_clusters_observed(&self, name: &Name) -> bool {
        let remote = self.clusters.in_namespace(&name.namespace);
        let remote = remote.map(|(name, _)| ClusterKey::Remote(name.clone()));
        std::iter::once(ClusterKey::Host).chain(remote).all(|key| {
            let state = self.cluster(&key);
            state.is_some_and(|state| match state.link() {
                Link::Unknown => false,
                Link::Up { .. } => state.is_synced(),
                Link::Down(_) => true,
            })
        })
    }

    fn cluster_views(&self, name: &Name) -> BTreeMap<String, ClusterView> {
        let mut views = BTreeMap::new();
        views.insert(String::new(), self.cluster_view(name, "", None));
        for (cluster, object) in self.clusters.in_namespace(&name.namespace) {
            views.insert(
                cluster.name.clone(),
                self.cluster_view(name, &cluster.name, Some(object)),
            );
        }
        for inventory in self.inventories_for(name) {
            let cluster = &inventory.spec.cluster_name;
            views.entry(cluster.clone()).or_insert_with(|| ClusterView {
                is_deleted: true,
                unreachable_since: Some(NEVER_REACHED),
                inventory: self.inventory(name, cluster),
                ..ClusterView::default()
            });
        }
        views
    }

    fn cluster_view(
        &self,
        name: &Name,
        cluster: &str,
        object: Option<&std::sync::Arc<Cluster>>,
    ) -> ClusterView {
        let key = ClusterKey::for_name(&name.namespace, cluster);
        let state = self.cluster(&key);
        let mut view = ClusterView {
            labels: object
                .map(|object| object.metadata.labels.clone())
                .unwrap_or_default(),
            is_schedulable: object
                .is_none_or(|object| object.spec.is_schedulable() && !object.metadata.is_deleting()),
            inventory: self.inventory(name, cluster),
            last_error: self.last_error(name, cluster),
            ..ClusterView::default()
        };
        let Some(state) = state else {
            view.unreachable_since = Some(NEVER_REACHED);
            view.is_unobserved = true;
            return view;
        };
        view.is_unobserved = state.last_contact().is_none();
        match state.link() {
            Link::Up { providers, .. } => view.providers.clone_from(providers),
            Link::Unknown => view.unreachable_since = Some(NEVER_REACHED),
            Link::Down(outage) => {
                view.unreachable_since = Some(outage.since);
                view.breaker_open_until = Some(outage.retry_at);
            }
        }
        view.objects = state.objects_for(&name.namespace, &label_value(&name.name));
        view
    }

    fn last_error(&self, name: &Name, cluster: &str) -> Option<String> {
        let failures = self.failures.get(&(name.clone(), cluster.to_owned()))?;
        Some(failures.message.clone())
    }

    fn inventory(&self, name: &Name, cluster: &str) -> Inventory {
        let key = Name::new(&name.namespace, &inventory_name(&name.name, cluster));
        let Some(stored) = self.inventories.get(&key) else {
            return Inventory::default();
        };
        Inventory {
            version: Some(metadata_version(&stored.metadata)),
            objects: inventoried_objects(stored),
        }
    }

    fn actions_for(&self, name: &Name) -> Vec<DeploymentAction> {
        let actions = self.actions.in_namespace(&name.namespace);
        let own = actions.filter(|(_, action)| action.spec.deployment_name == name.name);
        let mut own: Vec<DeploymentAction> = own.map(|(_, action)| (**action).clone()).collect();
        own.sort_by(|a, b| {
            let key =
                |action: &DeploymentAction| (action.metadata.creation_timestamp, action.metadata.uid.clone());
            key(a).cmp(&key(b))
        });
        own
    }
}

fn inventoried_objects(inventory: &ResourceInventory) -> BTreeSet<ObjectKey> {
    let groups = inventory.spec.objects.iter();
    let keys = groups.flat_map(|group| {
        group.names.iter().map(|name| ObjectKey {
            name: name.clone(),
            kind: group.kind.clone(),
            namespace: group.namespace.clone(),
            api_version: group.api_version.clone(),
        })
    });
    keys.collect()
}
