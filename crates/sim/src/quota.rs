//! Usage of `ResourceQuota`s: the amounts that an object uses, and the quotas that count it. The admission
//! plugin and the quota controller share these rules.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::resource::Resource;
use crate::schema::Quantity;
use crate::state::State;
use crate::tree;

mod pods;

pub(crate) use pods::total as pod_total;

/// Name of the table of quotas.
pub(crate) const TABLE: &str = "resourcequotas";
/// Prefix of resource names that count the objects of a kind.
const COUNT: &str = "count/";
/// Kinds that a quota can also count by their plural name, without the prefix.
const PLAIN_COUNTS: [&str; 6] = [
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
];

/// Amounts by resource name, as in `spec.hard`.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// Parses amounts from `spec.hard`, `status.used` and similar maps. Invalid quantities are ignored.
pub(crate) fn parse_amounts(value: Option<&Value>) -> Amounts {
    let entries = value.and_then(Value::as_object).into_iter().flatten();
    entries
        .filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?)?)))
        .collect()
}

/// Adds `more` to `total`.
pub(crate) fn add_amounts(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let have = total.entry(name.clone()).or_insert(Quantity::ZERO);
        *have = have.plus(*amount);
    }
}

/// Returns the amounts that an object of `resource` uses.
pub(crate) fn usage(state: &State, resource: &Resource, value: &Value) -> Amounts {
    let mut used = Amounts::new();
    let one = Quantity::count(1);
    used.insert(count_name(resource), one);
    if resource.is("", "pods") {
        pods::add_usage(state, value, &mut used);
        return used;
    }
    if resource.group.is_empty() && PLAIN_COUNTS.contains(&&*resource.plural) {
        used.insert(resource.plural.to_string(), one);
    }
    match (&*resource.group, &*resource.plural) {
        ("", "services") => add_service(value, &mut used),
        ("", "persistentvolumeclaims") => add_volume_claim(value, &mut used),
        _ => {}
    }
    used
}

fn count_name(resource: &Resource) -> String {
    match &*resource.group {
        "" => format!("{COUNT}{}", resource.plural),
        group => format!("{COUNT}{}.{group}", resource.plural),
    }
}

fn add_service(service: &Value, used: &mut Amounts) {
    let ports = tree::list(service, &["spec", "ports"]);
    let node_ports = match tree::text(service, &["spec", "type"]) {
        "NodePort" => ports.len(),
        "LoadBalancer" => {
            used.insert("services.loadbalancers".into(), Quantity::count(1));
            let allocated = |port: &&Value| tree::int(port, &["nodePort"]).is_some_and(|port| port > 0);
            match tree::get(service, &["spec", "allocateLoadBalancerNodePorts"]) {
                Some(Value::Bool(false)) => ports.iter().filter(allocated).count(),
                _ => ports.len(),
            }
        }
        _ => return,
    };
    used.insert("services.nodeports".into(), Quantity::count(node_ports));
}

fn add_volume_claim(claim: &Value, used: &mut Amounts) {
    let path = ["spec", "resources", "requests", "storage"];
    let Some(storage) = Quantity::parse(tree::text(claim, &path)) else {
        return;
    };
    used.insert("requests.storage".into(), storage);
    let class = tree::text(claim, &["spec", "storageClassName"]);
    if !class.is_empty() {
        let prefix = format!("{class}.storageclass.storage.k8s.io/");
        used.insert(format!("{prefix}requests.storage"), storage);
        used.insert(format!("{prefix}persistentvolumeclaims"), Quantity::count(1));
    }
}

/// Returns whether the quota's scopes select an object.
pub(crate) fn selects(quota: &Value, resource: &Resource, value: &Value) -> bool {
    let scopes = tree::list(quota, &["spec", "scopes"]).iter();
    let named = scopes.filter_map(|scope| Some((scope.as_str()?, None)));
    let selectors = tree::list(quota, &["spec", "scopeSelector", "matchExpressions"]).iter();
    let expressions = selectors.map(|one| (tree::text(one, &["scopeName"]), Some(one)));
    let is_pod = resource.is("", "pods");
    named
        .chain(expressions)
        .all(|(scope, expression)| is_pod && pods::in_scope(value, scope, expression))
}

/// Returns the resource names in `hard` that objects of `resource` can use.
pub(crate) fn matching_names(hard: &Amounts, resource: &Resource) -> Vec<String> {
    let own = count_name(resource);
    let is_own = |name: &str| match (&*resource.group, &*resource.plural) {
        _ if name == own => true,
        ("", "pods") => pods::is_counted(name),
        ("", "services") => matches!(name, "services" | "services.nodeports" | "services.loadbalancers"),
        ("", "persistentvolumeclaims") => {
            matches!(name, "persistentvolumeclaims" | "requests.storage")
                || name.contains(".storageclass.storage.k8s.io/")
        }
        ("", plural) => name == plural && PLAIN_COUNTS.contains(&plural),
        _ => false,
    };
    hard.keys().filter(|name| is_own(name)).cloned().collect()
}

/// Returns the error for a pod that lacks requests or limits that the quota requires, or `None`.
pub(crate) fn missing_resources_message(
    resource: &Resource,
    value: &Value,
    required: &[String],
) -> Option<String> {
    resource
        .is("", "pods")
        .then(|| pods::missing_resources_message(value, required))
        .flatten()
}
