//! Sets of objects that make up installations, and their inventories in the cluster.

use std::collections::BTreeSet;

use kube::Client;
use mainstay_manifest::InstallationPlan;
use mainstay_mesh::plan::ReleaseKey;
use serde_json::{Map, Value};

use super::api;
use super::error::InstallError;
use crate::desired::{INSTALLATION_SELECTOR, Inventory, ObjectId};

/// Keys in the data of an inventory.
const REVISION: &str = "revision";
const VERSION: &str = "version";
const CONFIGURATION: &str = "configuration";
const OWNER: &str = "owner";

/// Maximum size of a configuration that is stored in an inventory, in bytes. A `ConfigMap` is limited to
/// 1 MiB.
const MAX_CONFIGURATION: usize = 512 << 10;

/// Name of a set of objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetName {
    /// Objects that all revisions share, such as custom resource definitions.
    Shared,
    /// The objects of one revision.
    Revision(String),
    /// Revision tags that users created.
    Tags,
}

impl SetName {
    /// Returns the key of the set. The key has no owner, because the inventory owns the objects.
    #[must_use]
    pub fn key(&self, namespace: &str) -> ReleaseKey {
        ReleaseKey {
            owner: String::new(),
            namespace: namespace.to_owned(),
            name: match self {
                Self::Shared => "istio-shared".to_owned(),
                Self::Revision(revision) => format!("istio-revision-{revision}"),
                Self::Tags => "istio-tags".to_owned(),
            },
        }
    }
}

/// A set with an inventory in the cluster.
#[derive(Clone, Debug)]
pub struct InstalledSet {
    /// Name of the set.
    pub name: SetName,
    /// Key of the set.
    pub key: ReleaseKey,
    /// The Istio version; empty for tags.
    pub version: String,
    /// The user's configuration of a revision as YAML; `None` if it was too long to be stored.
    pub configuration: Option<String>,
    /// The `IstioOperator` in the cluster that the set belongs to, as `NAMESPACE/NAME`.
    pub owner: Option<String>,
    pub(super) group_kinds: BTreeSet<String>,
    pub(super) live: Value,
}

impl InstalledSet {
    #[cfg(test)]
    pub(super) fn for_tests(name: SetName) -> Self {
        Self {
            key: name.key("istio-system"),
            name,
            version: String::new(),
            configuration: None,
            owner: None,
            group_kinds: BTreeSet::new(),
            live: Value::Null,
        }
    }

    fn from_inventory(live: Value) -> Option<Self> {
        let namespace = live.pointer("/metadata/namespace")?.as_str()?;
        let data = |key: &str| live.get("data")?.get(key)?.as_str().map(ToOwned::to_owned);
        let name = match data(REVISION) {
            Some(revision) => SetName::Revision(revision),
            None if data(VERSION).is_some() => SetName::Shared,
            None => SetName::Tags,
        };
        let key = name.key(namespace);
        // A copy of an inventory under another name is not an inventory.
        let own = live.pointer("/metadata/name")?.as_str()?;
        if own != crate::desired::inventory_id(&key).name {
            return None;
        }
        Some(Self {
            version: data(VERSION).unwrap_or_default(),
            configuration: data(CONFIGURATION),
            owner: data(OWNER),
            group_kinds: Inventory::listed_kinds(&live),
            name,
            key,
            live,
        })
    }
}

/// Returns the sets of all installations, sorted by name.
pub async fn installed_sets(client: &Client) -> Result<Vec<InstalledSet>, InstallError> {
    let found = api::list(client, "/api/v1/configmaps", INSTALLATION_SELECTOR).await?;
    let mut sets: Vec<InstalledSet> = found
        .into_iter()
        .filter_map(InstalledSet::from_inventory)
        .collect();
    sets.sort_by(|a, b| (&a.name, &a.key).cmp(&(&b.name, &b.key)));
    Ok(sets)
}

/// Returns the inventory of a set for a plan. It lists the kinds of `objects` and those in the live
/// inventory.
pub(super) fn planned_inventory(
    plan: &InstallationPlan,
    name: &SetName,
    live: Option<&InstalledSet>,
    objects: &[Value],
) -> Inventory {
    let mut inventory = Inventory::for_set(&name.key(&plan.namespace), inventory_data(plan, name));
    for id in objects
        .iter()
        .filter_map(|object| ObjectId::from_object(object).ok())
    {
        inventory.add(&id);
    }
    if let Some(live) = live {
        inventory.add_listed(&live.live);
    }
    inventory
}

fn inventory_data(plan: &InstallationPlan, name: &SetName) -> Map<String, Value> {
    let mut data = Map::from_iter([(VERSION.to_owned(), Value::from(plan.version.clone()))]);
    if let Some(owner) = &plan.owner {
        data.insert(OWNER.to_owned(), owner.clone().into());
    }
    if let SetName::Revision(revision) = name {
        data.insert(REVISION.to_owned(), revision.clone().into());
        let text = mainstay_yaml::to_yaml_v3(&plan.configuration).unwrap_or_default();
        if text.len() <= MAX_CONFIGURATION {
            data.insert(CONFIGURATION.to_owned(), text.into());
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_inventory_is_recognized_by_name_and_data() {
        let read = |name: &str, data: Value| {
            let live = json!({"metadata": {"name": name, "namespace": "istio-system"}, "data": data});
            InstalledSet::from_inventory(live).map(|set| set.name)
        };
        assert_eq!(
            read(
                "mainstay-istio-revision-a",
                json!({"revision": "a", "version": "1.29.1"})
            ),
            Some(SetName::Revision("a".into()))
        );
        assert_eq!(
            read("mainstay-istio-shared", json!({"version": "1.29.1"})),
            Some(SetName::Shared)
        );
        assert_eq!(read("mainstay-istio-tags", Value::Null), Some(SetName::Tags));
        assert_eq!(read("copy", json!({"revision": "a"})), None);
    }
}
