//! Injectors that overlap: takes webhook configurations, finds workloads that two of them would inject.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_sim::context::Destination;
use mainstay_sim::selector::LabelSelector;
use serde_json::Value;

use super::finding;
use crate::compose::Play;
use crate::input::text;
use crate::report::{Finding, FindingKind, Severity};
use crate::scene::{Labels, means};
use mainstay_harness::istiod_revision;

struct Hook {
    /// Configuration and webhook.
    name: String,
    revision: String,
    namespaces: LabelSelector,
    objects: LabelSelector,
}

/// One finding per namespace and set of webhooks.
pub(super) fn find(play: &Play<'_>, found: &mut Vec<Finding>) {
    let hooks: Vec<Hook> = play
        .input
        .of_kind("MutatingWebhookConfiguration")
        .flat_map(hooks)
        .collect();
    let mut overlaps: BTreeMap<(String, Vec<String>), BTreeSet<String>> = BTreeMap::new();
    let empty = Labels::new();
    for namespace in play.scene.inhabited() {
        let labels = play.scene.namespaces.get(namespace).unwrap_or(&empty);
        let near: Vec<&Hook> = hooks
            .iter()
            .filter(|hook| means(&hook.namespaces, labels))
            .collect();
        if near.len() < 2 {
            continue;
        }
        for (key, workload) in play.scene.workloads_in(namespace) {
            let asked = near.iter().filter(|hook| means(&hook.objects, &workload.labels));
            let asked: Vec<&&Hook> = asked.collect();
            let revisions: BTreeSet<&str> = asked.iter().map(|hook| hook.revision.as_str()).collect();
            if revisions.len() > 1 {
                let names = asked
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
            (Severity::Error, FindingKind::WebhookOverlap),
            format!("Namespace {namespace}"),
            format!("several revisions inject {}: {}", some.join(", "), names.join(", ")),
            "let one label choose: istio.io/rev or istio-injection, not both; remove the webhook that nobody needs",
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
            revision: istiod_revision(&to)?,
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        })
    };
    all.into_iter().flatten().filter_map(hook).collect()
}
