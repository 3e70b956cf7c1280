//! Generates objects that documents name but do not contain.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_api::delivery::{
    ApplicationDeployment, ApplicationRevision, ClusterSelector, RenderedComponent, RevisionSpec,
};
use serde_json::json;

/// Component of a revision that no route names.
const MAIN: &str = "main";

/// Returns the revisions that a deployment names and that are not in `known`. Each component that a route
/// names becomes one Deployment.
pub(super) fn missing_revisions(
    deployment: &ApplicationDeployment,
    known: &[ApplicationRevision],
) -> Vec<ApplicationRevision> {
    let spec = &deployment.spec;
    let names = spec
        .app_revisions
        .iter()
        .map(|revision| revision.revision_name.as_str());
    let is_missing = |name: &&str| !known.iter().any(|revision| revision.name() == *name);
    names
        .filter(is_missing)
        .map(|name| revision(deployment, name))
        .collect()
}

fn revision(deployment: &ApplicationDeployment, name: &str) -> ApplicationRevision {
    let rules = deployment.spec.traffic.iter().flat_map(|traffic| &traffic.http);
    let targets = rules.flat_map(|rule| &rule.weighted_targets);
    let own = targets.filter(|target| target.revision_name == name);
    let mut components: BTreeSet<&str> = own.map(|target| target.component_name.as_str()).collect();
    if components.is_empty() {
        components.insert(MAIN);
    }
    let application = name
        .rsplit_once("-v")
        .map_or(name, |(application, _)| application);
    let spec = RevisionSpec {
        application_name: application.to_owned(),
        revision: 1,
        hash: name.to_owned(),
        components: components.into_iter().map(|one| component(one, name)).collect(),
    };
    ApplicationRevision::new(deployment.namespace(), name, spec)
}

/// Returns a component with one Deployment.
pub(super) fn component(name: &str, image: &str) -> RenderedComponent {
    let container = json!({"name": name, "image": image});
    RenderedComponent {
        name: name.to_owned(),
        manifests: vec![json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"template": {"spec": {"containers": [container]}}},
        })],
    }
}

/// Returns the clusters that a deployment names and that are not in `known`, with the labels that its
/// selectors require.
pub(super) fn missing_clusters<T>(
    deployment: &ApplicationDeployment,
    known: &BTreeMap<String, T>,
) -> BTreeMap<String, BTreeMap<String, String>> {
    let spec = &deployment.spec;
    let placements = spec.app_revisions.iter().flat_map(|revision| &revision.placement);
    let selectors = placements.filter_map(|placement| placement.cluster_selector.as_ref());
    let waves = spec.strategy.iter().flat_map(|strategy| &strategy.waves);
    let selectors = selectors.chain(waves.filter_map(|wave| wave.cluster_selector.as_ref()));
    let mut missing: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for ClusterSelector { name, labels, .. } in selectors {
        if let Some(name) = name.as_ref().filter(|name| !known.contains_key(*name)) {
            missing.entry(name.clone()).or_default().extend(labels.clone());
        }
    }
    missing
}
