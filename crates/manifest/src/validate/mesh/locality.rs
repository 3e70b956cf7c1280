//! Checks the setting of locality load balancing.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_yaml::Value;

use super::field;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::path::Path;

/// Labels of the locality of an endpoint.
const LOCALITY_LABELS: [&str; 3] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.istio.io/subzone",
];

pub(super) fn locality_setting(setting: &Value, path: &Path, found: &mut Diagnostics) {
    let lists = ["distribute", "failover", "failoverPriority"].map(|name| list(setting, name, path));
    let [distribute, failover, priority] = &lists;
    if !distribute.is_empty() && !failover.is_empty() {
        let message = "distribute and failover exclude each other";
        found.push(Diagnostic::error(path.clone(), message));
        return;
    }
    let is_locality = |label: &Value| label.as_str().is_some_and(|text| LOCALITY_LABELS.contains(&text));
    for (path, label) in priority.iter().filter(|(_, label)| is_locality(label)) {
        if !failover.is_empty() {
            let message = "a locality label cannot be combined with failover";
            let result = Diagnostic::error(path.clone(), message);
            found.push(result.value(label.as_str().unwrap_or_default()));
        }
    }
    check_distribution(distribute, found);
    for (path, rule) in failover {
        check_failover(rule, path, found);
    }
}

/// Returns the items of a list with their paths.
fn list<'a>(value: &'a Value, name: &str, path: &Path) -> Vec<(Path, &'a Value)> {
    let Some((path, list)) = field(value, name, path) else {
        return Vec::new();
    };
    let items = list.as_list().unwrap_or_default().iter().enumerate();
    items.map(|(index, item)| (path.index(index), item)).collect()
}

fn check_distribution(rules: &[(Path, &Value)], found: &mut Diagnostics) {
    let mut sources = Localities::default();
    for (path, rule) in rules {
        let from = rule.get("from").and_then(Value::as_str).unwrap_or_default();
        sources.add(from, &path.key("from"), found);
        let mut targets = Localities::default();
        let mut total = 0_i64;
        let to = rule.get("to").and_then(Value::as_map);
        for (locality, weight) in to.into_iter().flatten() {
            let path = path.key("to").key(locality);
            targets.add(locality, &path, found);
            let weight = weight.as_i64().unwrap_or_default();
            if !(1..=100).contains(&weight) {
                let result = Diagnostic::error(path, "is not a weight: expected 1 to 100");
                found.push(result.value(&weight.to_string()));
            }
            total = total.saturating_add(weight);
        }
        if total != 100 {
            let message = format!("the sum of the weights is {total}, not 100");
            found.push(Diagnostic::error(path.key("to"), message));
        }
    }
}

fn check_failover(rule: &Value, path: &Path, found: &mut Diagnostics) {
    let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("from") == text("to") {
        let message = "from and to are the same region";
        found.push(Diagnostic::error(path.clone(), message).value(text("from")));
    }
    for name in ["from", "to"] {
        if text(name).contains(['/', '*']) {
            let result = Diagnostic::error(path.key(name), "is not a region").value(text(name));
            found.push(result.hint("write the name of a region without a zone and without *"));
        }
    }
}

/// Localities by region, zone and subzone; `*` contains all others.
#[derive(Default)]
struct Localities(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Localities {
    /// Adds a locality. Reports an invalid one, and one that an earlier locality contains.
    fn add(&mut self, locality: &str, path: &Path, found: &mut Diagnostics) {
        let stars = locality.matches('*').count();
        let parts: Vec<&str> = locality.splitn(3, '/').collect();
        let message = if stars > 1 || (stars == 1 && !locality.ends_with('*')) {
            "* is only possible at the end"
        } else if parts.iter().any(|part| part.is_empty()) {
            "is not a locality: a part is empty"
        } else if !self.insert(&parts) {
            "an earlier locality contains this one"
        } else {
            return;
        };
        let result = Diagnostic::error(path.clone(), message).value(locality);
        found.push(result.hint("write it like region/zone/subzone or region/*"));
    }

    /// Inserts a locality; returns false if it overlaps with an earlier one.
    fn insert(&mut self, parts: &[&str]) -> bool {
        if self.0.contains_key("*") {
            return false;
        }
        let all = || BTreeSet::from(["*".to_owned()]);
        match parts {
            [region] => {
                let zones = BTreeMap::from([("*".to_owned(), all())]);
                self.0.insert((*region).to_owned(), zones).is_none()
            }
            [region, zone] => {
                let zones = self.0.entry((*region).to_owned()).or_default();
                !zones.contains_key("*") && zones.insert((*zone).to_owned(), all()).is_none()
            }
            [region, zone, subzone, ..] => {
                let zones = self.0.entry((*region).to_owned()).or_default();
                if zones.contains_key("*") {
                    return false;
                }
                let subzones = zones.entry((*zone).to_owned()).or_default();
                !subzones.contains("*") && subzones.insert((*subzone).to_owned())
            }
            [] => true,
        }
    }
}
