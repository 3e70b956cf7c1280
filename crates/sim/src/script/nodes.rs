//! Tracks nodes and their load, and selects the least loaded node that fits a pod.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::clock::Instant;
use crate::selector::LabelSelector;
use crate::tree;

/// Nodes with their load.
#[derive(Debug, Default)]
pub struct Nodes {
    by_name: BTreeMap<Box<str>, Node>,
    by_load: BTreeSet<(i64, Box<str>)>,
    /// Names of the nodes of recently bound pods that have not been observed as events yet.
    expected: Vec<Box<str>>,
    /// Whether a node was added, changed or removed since the last [`Nodes::take_changed`].
    changed: bool,
}

#[derive(Debug)]
struct Node {
    value: Value,
    load: i64,
}

/// Kubelet version of the nodes, equal to the version of the API server.
const KUBELET_VERSION: &str = "v1.36.4";

/// Returns a ready Node object with the name `node-NUMBER`.
#[must_use]
pub fn node_object(number: usize, now: Instant) -> Value {
    let (name, now) = (format!("node-{number}"), now.rfc3339());
    json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        }},
        "status": {
            "capacity": {"cpu": "64", "memory": "256Gi", "pods": "1000"},
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "1000"},
            "addresses": [{"type": "InternalIP", "address": node_address(number)}, {"type": "Hostname", "address": name}],
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }],
            "nodeInfo": {
                "machineID": "", "systemUUID": "", "bootID": "", "architecture": "amd64", "operatingSystem": "linux",
                "kernelVersion": "", "osImage": "", "containerRuntimeVersion": "", "kubeProxyVersion": "",
                "kubeletVersion": KUBELET_VERSION,
            },
        },
    })
}

/// Returns the address of a node by its number.
fn node_address(number: usize) -> String {
    format!("10.0.{}.{}", number / 250 + 100, number % 250 + 2)
}

impl Nodes {
    /// Adds or updates a node. Removes it if `value` is `None`.
    pub fn put(&mut self, name: &str, value: Option<Value>) {
        let name: Box<str> = name.into();
        let old = self.by_name.remove(&name);
        let load = old.map_or(0, |old| old.load);
        self.by_load.remove(&(load, name.clone()));
        self.changed = true;
        if let Some(value) = value {
            self.by_load.insert((load, name.clone()));
            self.by_name.insert(name, Node { value, load });
        }
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.by_name.len()
    }

    /// Returns the internal IP of a node, or an empty string if it has none.
    #[must_use]
    pub fn ip(&self, name: &str) -> String {
        let addresses = self
            .by_name
            .get(name)
            .map_or(&[][..], |node| tree::list(&node.value, &["status", "addresses"]));
        let internal = addresses
            .iter()
            .find(|one| tree::text(one, &["type"]) == "InternalIP");
        internal.map_or(String::new(), |one| tree::text(one, &["address"]).to_owned())
    }

    /// Adds `by` to the number of pods on a node.
    pub fn adjust_load(&mut self, name: &str, by: i64) {
        if let Some(node) = self.by_name.get_mut(name) {
            self.by_load.remove(&(node.load, Box::from(name)));
            node.load += by;
            self.by_load.insert((node.load, name.into()));
        }
    }

    /// Counts a pod that was just bound to a node, until it is observed.
    pub fn expect_pod(&mut self, name: &str) {
        self.adjust_load(name, 1);
        self.expected.push(name.into());
    }

    /// Stops counting the expected pods, because they are now counted as observed pods.
    pub fn clear_expected(&mut self) {
        for name in std::mem::take(&mut self.expected) {
            self.adjust_load(&name, -1);
        }
    }

    /// Returns whether nodes changed since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns the name of the least loaded node that fits the pod, or `None` if no node fits.
    #[must_use]
    pub fn choose(&self, pod: &Value) -> Option<String> {
        if let Some(name) = required_node(pod) {
            return self.by_name.contains_key(name).then(|| name.to_owned());
        }
        let fits = |name: &str| self.by_name.get(name).is_some_and(|node| fits(&node.value, pod));
        let found = self.by_load.iter().find(|(_, name)| fits(name));
        found.map(|(_, name)| name.to_string())
    }
}

/// Returns the node that the affinity of a `DaemonSet` pod requires.
fn required_node(pod: &Value) -> Option<&str> {
    let path = [
        "spec",
        "affinity",
        "nodeAffinity",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "nodeSelectorTerms",
    ];
    let fields = tree::list(pod, &path).first()?;
    let field = tree::list(fields, &["matchFields"]).first()?;
    tree::list(field, &["values"]).first()?.as_str()
}

/// Returns whether a pod can be scheduled to a node: the labels match, the node is schedulable and all its
/// taints are tolerated.
fn fits(node: &Value, pod: &Value) -> bool {
    let node_selector = LabelSelector::from_map(tree::get(pod, &["spec", "nodeSelector"]));
    node_selector.matches_map(tree::get(node, &["metadata", "labels"]))
        && !tree::flag(node, &["spec", "unschedulable"])
        && tolerates(node, pod)
}

/// Returns whether the pod tolerates all taints of the node, except taints with the effect
/// `PreferNoSchedule`.
#[must_use]
pub fn tolerates(node: &Value, pod: &Value) -> bool {
    let tolerations = tree::list(pod, &["spec", "tolerations"]);
    tree::list(node, &["spec", "taints"])
        .iter()
        .filter(|taint| tree::text(taint, &["effect"]) != "PreferNoSchedule")
        .all(|taint| {
            tolerations
                .iter()
                .any(|toleration| tolerates_taint(toleration, taint))
        })
}

/// Returns whether a toleration tolerates a taint.
pub(crate) fn tolerates_taint(toleration: &Value, taint: &Value) -> bool {
    let text = |value, key| tree::text(value, &[key]);
    let effect = text(toleration, "effect");
    let key = text(toleration, "key");
    (effect.is_empty() || effect == text(taint, "effect"))
        && (key.is_empty() || key == text(taint, "key"))
        && (text(toleration, "operator") == "Exists" || text(toleration, "value") == text(taint, "value"))
}
