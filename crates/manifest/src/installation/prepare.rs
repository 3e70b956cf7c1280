//! Completes a plan with data from the cluster: the default tag, and overlapping webhooks.

use mainstay_yaml::{Map, Value};

use crate::diagnostic::Severity;
use crate::object::Object;
use crate::package::{Charts, Profiles};
use crate::source::InputFile;

use super::eligibility::EligibilityFinding;
use super::overlap::{Overlap, find_overlaps};
use super::plan::{DefaultTag, InstallationPlan, LiveTag, decide_default_tag};
use super::tag::{CanonicalWebhook, TagError, TagRequest, tag_objects};

/// Charts and profiles of an installation.
#[derive(Clone, Copy)]
pub struct Package<'a> {
    /// Source of charts.
    pub charts: &'a dyn Charts,
    /// Source of profiles.
    pub profiles: &'a dyn Profiles,
}

/// Decides which revision has the default tag, and adds the tag's objects to the plan.
pub fn add_default_tag(
    plan: &mut InstallationPlan,
    live: Option<&LiveTag>,
    package: Package<'_>,
) -> Result<DefaultTag, TagError> {
    let decision = decide_default_tag(plan, live);
    let objects = match decision {
        DefaultTag::Own => default_tag_objects(plan, package)?,
        _ => Vec::new(),
    };
    plan.set_default_tag(&decision, objects);
    Ok(decision)
}

/// Returns the objects of the default tag for a planned revision.
fn default_tag_objects(plan: &InstallationPlan, package: Package<'_>) -> Result<Vec<Object>, TagError> {
    let Some(injector) = plan.injector() else {
        return Ok(Vec::new());
    };
    let canonical = CanonicalWebhook::from_configuration(&injector.0)?;
    let request = TagRequest {
        tag: "default",
        namespace: &plan.namespace,
        webhook_name: None,
        injects_by_default: plan.injects_by_default,
        is_user_managed: false,
        labels: injector
            .0
            .at(&["metadata", "labels"])
            .and_then(Value::as_map)
            .map(owner_labels)
            .unwrap_or_default(),
        validator: None,
        charts: package.charts,
        profiles: package.profiles,
    };
    tag_objects(&request, &canonical)
}

/// Returns the owner labels of the installation, which are also set on its tag.
fn owner_labels(labels: &Map) -> Map {
    let owner = labels
        .iter()
        .filter(|(label, _)| label.contains("operator.istio.io"));
    owner
        .map(|(label, value)| (label.clone(), value.clone()))
        .collect()
}

/// Returns findings about webhooks of the plan that handle the same pods as other webhooks.
#[must_use]
pub fn check_webhooks(plan: &InstallationPlan, live: Vec<Value>) -> Vec<EligibilityFinding> {
    let planned: Vec<Value> = plan
        .components
        .iter()
        .flat_map(|component| &component.objects)
        .filter(|object| object.kind() == "MutatingWebhookConfiguration")
        .map(|object| object.0.clone())
        .collect();
    let name = |value: &Value| value.at(&["metadata", "name"]).cloned();
    let mut all = live;
    all.retain(|live| !planned.iter().any(|one| name(one) == name(live)));
    let names: Vec<String> = planned
        .iter()
        .filter_map(|one| name(one)?.as_str().map(ToOwned::to_owned))
        .collect();
    all.extend(planned);
    let is_ours = |webhook: &str| names.iter().any(|name| webhook.starts_with(&format!("{name}/")));
    let found = find_overlaps(&all).into_iter();
    let ours = found.filter(|one| is_ours(&one.first) || is_ours(&one.second));
    ours.map(|one| overlap_finding(&one)).collect()
}

fn overlap_finding(overlap: &Overlap) -> EligibilityFinding {
    EligibilityFinding {
        severity: Severity::Error,
        message: format!(
            "webhooks {} and {} handle the same pods ({})",
            overlap.first, overlap.second, overlap.example
        ),
        hint: Some("remove one of them, or move the default tag with `mainstay tag set default`".into()),
    }
}

/// Returns settings for the platform, which is derived from the cluster's version. On GKE, the CNI agent
/// runs in `kube-system`, as detected by istioctl.
#[must_use]
pub fn platform_file(kube_version: &str) -> Option<InputFile> {
    let text = "spec: {components: {cni: {namespace: kube-system}}, \
                values: {global: {platform: gke}, cni: {resourceQuotas: {enabled: false}}}}\n";
    kube_version.contains("-gke").then(|| InputFile {
        name: "detected platform".into(),
        text: text.into(),
    })
}
