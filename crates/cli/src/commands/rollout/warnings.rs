//! Warnings about documents that are valid: weights that do not add up, and names that do not exist yet.

use std::collections::BTreeSet;

use mainstay_api::delivery::{
    ApplicationDeploymentSpec, ApplicationRevision, Cluster, ClusterSpec, HttpRule, RevisionSpec,
};

use super::api::Delivery;
use super::documents::Located;

/// Sum of weights without a warning.
const FULL: u32 = 100;

/// Warns about rules whose weights do not add up to 100.
pub(super) fn check_weights(objects: &mut [Located]) {
    for located in objects.iter_mut() {
        if let Some(spec) = deployment(located) {
            located.warnings.extend(weight_warnings(&spec));
        }
    }
}

/// Returns a warning for each rule whose weights do not add up to 100. A single target gets all requests,
/// whatever its weight.
pub(super) fn weight_warnings(spec: &ApplicationDeploymentSpec) -> Vec<String> {
    let rules = spec.traffic.iter().flat_map(|traffic| &traffic.http);
    let warning = |(number, rule): (usize, &HttpRule)| {
        let targets = rule.weighted_targets.iter();
        let weights: Vec<u32> = targets.filter_map(|target| target.weight).collect();
        let sum: u32 = weights.iter().sum();
        (weights.len() > 1 && sum != FULL).then(|| {
            format!("the weights of spec.traffic.http[{number}] add up to {sum}; they are used in proportion")
        })
    };
    rules.enumerate().filter_map(warning).collect()
}

/// Warns about revisions and clusters that neither the documents nor the cluster contain. They may be
/// created later, so this is not an error. Lists that cannot be read are skipped.
pub(super) async fn check_references(delivery: &Delivery, objects: &mut [Located]) {
    let revisions = delivery.list::<RevisionSpec>(false).await.ok();
    let revisions = revisions.map(|list| {
        list.iter()
            .map(|one: &ApplicationRevision| one.name().to_owned())
            .collect()
    });
    let clusters = delivery.list::<ClusterSpec>(false).await.ok();
    let clusters = clusters.map(|list| list.iter().map(|one: &Cluster| one.name().to_owned()).collect());
    let known = Known {
        revisions,
        clusters,
        documents: objects.iter().map(Located::reference).collect(),
    };
    for located in objects.iter_mut() {
        if let Some(spec) = deployment(located) {
            located.warnings.extend(known.missing(&spec));
        }
    }
}

fn deployment(located: &Located) -> Option<ApplicationDeploymentSpec> {
    let is_deployment = located.kind() == "ApplicationDeployment";
    let spec = located.object.get("spec").filter(|_| is_deployment)?;
    serde_json::from_value(spec.clone()).ok()
}

/// Names of existing objects; `None` for a kind that could not be read.
struct Known {
    revisions: Option<BTreeSet<String>>,
    clusters: Option<BTreeSet<String>>,
    documents: BTreeSet<String>,
}

impl Known {
    fn missing(&self, spec: &ApplicationDeploymentSpec) -> Vec<String> {
        let mut found = Vec::new();
        for revision in &spec.app_revisions {
            let name = &revision.revision_name;
            if self.revisions.as_ref().is_some_and(|known| !known.contains(name)) && !self.will_exist(name) {
                found.push(format!(
                    "revision {name:?} does not exist yet: its rollout waits for it"
                ));
            }
            let selectors = revision
                .placement
                .iter()
                .filter_map(|entry| entry.cluster_selector.as_ref());
            for name in selectors.filter_map(|selector| selector.name.as_ref()) {
                let is_known = self.clusters.as_ref().is_none_or(|known| known.contains(name));
                if !is_known && !self.documents.contains(&format!("cluster/{name}")) {
                    found.push(format!(
                        "cluster {name:?} does not exist yet: add it with `mainstay cluster add`"
                    ));
                }
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// Whether the documents contain the revision, or an Application that may record it.
    fn will_exist(&self, revision: &str) -> bool {
        let application = revision
            .rsplit_once("-v")
            .map(|(name, _)| format!("application/{name}"));
        self.documents
            .contains(&format!("applicationrevision/{revision}"))
            || application.is_some_and(|application| self.documents.contains(&application))
    }
}
