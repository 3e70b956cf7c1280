//! Findings about overlapping injectors: workloads that webhooks of two revisions would inject.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_sim::context::Destination;
use mainstay_sim::selector::LabelSelector;
use serde_json::Value;

use super::{Class, finding};
use crate::cluster_model::{Labels, selects};
use crate::compose::Rehearsal;
use crate::input::text;
use crate::report::{Finding, FindingKind};
use mainstay_harness::injector_revision;

struct Hook {
    /// Names of the configuration and the webhook.
    name: String,
    revision: String,
    namespaces: LabelSelector,
    objects: LabelSelector,
}

/// Adds one finding per namespace and set of webhooks.
pub(super) fn add_findings(rehearsal: &Rehearsal<'_>, found: &mut Vec<Finding>) {
    let hooks: Vec<Hook> = rehearsal
        .input
        .of_kind("MutatingWebhookConfiguration")
        .flat_map(|configuration| hooks(&configuration))
        .collect();
    let mut overlaps: BTreeMap<(String, Vec<String>), BTreeSet<String>> = BTreeMap::new();
    let empty = Labels::new();
    for namespace in rehearsal.model.namespaces_with_workloads() {
        let labels = rehearsal.model.namespaces.get(namespace).unwrap_or(&empty);
        let candidates: Vec<&Hook> = hooks
            .iter()
            .filter(|hook| selects(&hook.namespaces, labels))
            .collect();
        if candidates.len() < 2 {
            continue;
        }
        for (key, workload) in rehearsal.model.workloads_in(namespace) {
            let matching = candidates
                .iter()
                .filter(|hook| selects(&hook.objects, &workload.labels));
            let matching: Vec<&&Hook> = matching.collect();
            let revisions: BTreeSet<&str> = matching.iter().map(|hook| hook.revision.as_str()).collect();
            if revisions.len() > 1 {
                let names = matching
                    .iter()
                    .map(|hook| format!("{} ({})", hook.name, hook.revision))
                    .collect();
                let workloads = overlaps.entry((namespace.to_owned(), names)).or_default();
                workloads.insert(key.name().to_owned());
            }
        }
    }
    for ((namespace, names), workloads) in overlaps {
        let some: Vec<&str> = workloads.iter().take(5).map(String::as_str).collect();
        found.push(finding(
            Class::error(FindingKind::WebhookOverlap),
            format!("Namespace {namespace}"),
            format!(
                "several revisions inject {}: {}",
                some.join(", "),
                names.join(", ")
            ),
            "use either istio.io/rev or istio-injection, not both, and remove unused webhooks",
        ));
    }
}

fn hooks(configuration: &Value) -> Vec<Hook> {
    let name = text(configuration, "/metadata/name");
    let all = configuration.get("webhooks").and_then(Value::as_array);
    let hook = |hook: &Value| {
        let to = Destination::parse(hook.get("clientConfig").unwrap_or(&Value::Null));
        let everything = Value::Object(serde_json::Map::new());
        let selector = |key: &str| LabelSelector::from_object(Some(hook.get(key).unwrap_or(&everything)));
        Some(Hook {
            name: format!("{name}/{}", text(hook, "/name")),
            revision: injector_revision(configuration, &to)?,
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        })
    };
    all.into_iter().flatten().filter_map(hook).collect()
}
