//! The nodes and how full they are: takes nodes and pods, gives the emptiest node that suits a pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::object::Object;
use crate::selector::LabelSelector;
use crate::tree;

#[derive(Debug, Default)]
pub(super) struct Nodes {
    by_name: BTreeMap<Box<str>, Node>,
    by_load: BTreeSet<(i64, Box<str>)>,
    /// Pods bound a moment ago that nobody has reported yet.
    expected: Vec<Box<str>>,
    /// A node came, changed or went.
    news: bool,
}

#[derive(Debug)]
struct Node {
    value: Value,
    load: i64,
}

/// The address of the node of a number.
pub(super) fn address(number: usize) -> String {
    format!("10.0.{}.{}", number / 250 + 100, number % 250 + 2)
}

impl Nodes {
    pub(super) fn put(&mut self, object: &Arc<Object>, gone: bool) {
        let name = object.meta().name.clone();
        let old = self.by_name.remove(&name);
        let load = old.map_or(0, |old| old.load);
        self.by_load.remove(&(load, name.clone()));
        self.news = true;
        if !gone {
            self.by_load.insert((load, name.clone()));
            let value = object.packed();
            self.by_name.insert(name, Node { value, load });
        }
    }

    pub(super) fn count(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn ip(&self, name: &str) -> String {
        let addresses = self
            .by_name
            .get(name)
            .map_or(&[][..], |node| tree::list(&node.value, &["status", "addresses"]));
        let internal = addresses
            .iter()
            .find(|one| tree::text(one, &["type"]) == "InternalIP");
        internal.map_or(String::new(), |one| tree::text(one, &["address"]).to_owned())
    }

    /// One pod more or less on a node.
    pub(super) fn occupy(&mut self, name: &str, by: i64) {
        if let Some(node) = self.by_name.get_mut(name) {
            self.by_load.remove(&(node.load, Box::from(name)));
            node.load += by;
            self.by_load.insert((node.load, name.into()));
        }
    }

    /// A pod was bound here just now.
    pub(super) fn expect(&mut self, name: &str) {
        self.occupy(name, 1);
        self.expected.push(name.into());
    }

    /// From here on pods report themselves.
    pub(super) fn clear_expected(&mut self) {
        for name in std::mem::take(&mut self.expected) {
            self.occupy(&name, -1);
        }
    }

    /// Whether nodes changed since the last time.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// The emptiest node that suits.
    pub(super) fn choose(&self, pod: &Value) -> Option<String> {
        if let Some(name) = pinned(pod) {
            return self.by_name.contains_key(name).then(|| name.to_owned());
        }
        let suits = |name: &str| self.by_name.get(name).is_some_and(|node| suits(&node.value, pod));
        let found = self.by_load.iter().find(|(_, name)| suits(name));
        found.map(|(_, name)| name.to_string())
    }
}

/// The one node a daemon's pod is meant for.
fn pinned(pod: &Value) -> Option<&str> {
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

/// Labels as asked for, and every taint tolerated.
pub(in crate::controllers) fn suits(node: &Value, pod: &Value) -> bool {
    let wanted = LabelSelector::from_map(tree::get(pod, &["spec", "nodeSelector"]));
    wanted.matches_map(tree::get(node, &["metadata", "labels"]))
        && !tree::flag(node, &["spec", "unschedulable"])
        && tolerates(node, pod)
}

/// Whether no taint keeps the pod away.
pub(in crate::controllers) fn tolerates(node: &Value, pod: &Value) -> bool {
    let tolerations = tree::list(pod, &["spec", "tolerations"]);
    tree::list(node, &["spec", "taints"])
        .iter()
        .filter(|taint| tree::text(taint, &["effect"]) != "PreferNoSchedule")
        .all(|taint| tolerations.iter().any(|toleration| covers(toleration, taint)))
}

fn covers(toleration: &Value, taint: &Value) -> bool {
    let text = |value, key| tree::text(value, &[key]);
    let effect = text(toleration, "effect");
    let key = text(toleration, "key");
    (effect.is_empty() || effect == text(taint, "effect"))
        && (key.is_empty() || key == text(taint, "key"))
        && (text(toleration, "operator") == "Exists" || text(toleration, "value") == text(taint, "value"))
}
