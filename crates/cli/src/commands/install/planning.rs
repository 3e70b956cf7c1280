//! The plan of an installation from flags and the facts of a cluster.

use std::fmt::Write as _;
use std::io::Write as _;

use kube::Client;
use mainstay_cluster::install::{ClusterFacts, Installer, SetName, installed_sets, read_cluster_facts};
use mainstay_manifest::{
    CanonicalWebhook, DefaultTag, EligibilityFinding, InputFile, InstallationPlan, Object, Overlap, Severity,
    TagRequest, UpgradeRequest, check_network, check_upgrade, decide_default_tag, find_overlaps, tag_objects,
};
use mainstay_yaml::{Map, Value};

use super::Purpose;
use crate::commands::harmless;
use crate::commands::manifest::inputs::{ClusterDefaults, InputFlags, Package};
use crate::error::{CliError, Kind};
use crate::ui::style::{ERROR, HINT, WARNING};

/// A plan and the reasons against it.
pub(crate) struct Planned {
    /// The plan, with the default tag.
    pub(crate) plan: InstallationPlan,
    /// Reasons against it.
    pub(crate) findings: Vec<EligibilityFinding>,
}

/// Plans an installation or upgrade; reads the cluster, writes nothing.
pub(crate) async fn plan_installation(
    client: &Client,
    installer: &Installer,
    inputs: &InputFlags,
    purpose: Purpose,
) -> Result<Planned, CliError> {
    let facts = read_cluster_facts(client).await?;
    let stored = match purpose {
        Purpose::Upgrade | Purpose::Verify if inputs.is_empty() => {
            stored_configuration(client, inputs.revision()).await?
        }
        _ => None,
    };
    let defaults = ClusterDefaults {
        kube_version: facts.kube_version.clone(),
        stored,
    };
    let live_tag = installer.default_tag().await?;
    let (plan, decision) = inputs.plan(&defaults, |mut plan, package| {
        let decision = decide_default_tag(&plan, live_tag.as_ref());
        let objects = match decision {
            DefaultTag::Own => default_tag_objects(&plan, package)?,
            _ => Vec::new(),
        };
        plan.set_default_tag(&decision, objects);
        Ok((plan, decision))
    })?;
    let mut findings = findings(&plan, &facts, purpose)?;
    findings.extend(overlaps(installer, &plan).await?);
    findings.extend(other_tag(&plan, &decision));
    findings.extend(check_network(&facts.network, &plan));
    Ok(Planned { plan, findings })
}

/// Returns the configuration of the last installation of a revision.
async fn stored_configuration(
    client: &Client,
    revision: Option<&str>,
) -> Result<Option<InputFile>, CliError> {
    let wanted = SetName::Revision(revision.unwrap_or("default").to_owned());
    let sets = installed_sets(client).await?;
    let set = sets.into_iter().find(|set| set.name == wanted);
    Ok(set.and_then(|set| set.configuration).map(|text| InputFile {
        name: "installed configuration".into(),
        text: text.into_bytes(),
    }))
}

/// The default tag of a revision that is about to be installed.
fn default_tag_objects(plan: &InstallationPlan, package: &Package<'_>) -> Result<Vec<Object>, CliError> {
    let Some(injector) = plan.injector() else {
        return Ok(Vec::new());
    };
    let failed = |error: mainstay_manifest::TagError| CliError::new(Kind::Chart, crate::error::chain(&error));
    let canonical = CanonicalWebhook::from_configuration(&injector.0).map_err(failed)?;
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
    tag_objects(&request, &canonical).map_err(failed)
}

/// The labels of the installation that its tag has, too.
fn owner_labels(labels: &Map) -> Map {
    let owner = labels
        .iter()
        .filter(|(label, _)| label.contains("operator.istio.io"));
    owner
        .map(|(label, value)| (label.clone(), value.clone()))
        .collect()
}

fn findings(
    plan: &InstallationPlan,
    facts: &ClusterFacts,
    purpose: Purpose,
) -> Result<Vec<EligibilityFinding>, CliError> {
    let target: mainstay_catalog::Version = plan.version.parse()?;
    let today = jiff::Zoned::now().date();
    let request = UpgradeRequest {
        revision: &plan.revision,
        target: &target,
        installed: &facts.control_planes,
        kube_minor: facts.kube_minor,
        today: (today.year(), today.month()),
    };
    let mut findings = check_upgrade(&request);
    if purpose != Purpose::Upgrade {
        let is_installed = facts
            .control_planes
            .iter()
            .any(|one| one.revision == plan.revision);
        // What an upgrade rejects is only a warning for an explicit installation, as in istioctl.
        findings.retain(|one| is_installed || !one.message.starts_with("no control plane"));
        for one in &mut findings {
            one.severity = Severity::Warning;
        }
    }
    Ok(findings)
}

/// Webhooks of the plan that handle the same pods as others.
async fn overlaps(
    installer: &Installer,
    plan: &InstallationPlan,
) -> Result<Vec<EligibilityFinding>, CliError> {
    let planned: Vec<Value> = plan
        .components
        .iter()
        .flat_map(|component| &component.objects)
        .filter(|object| object.kind() == "MutatingWebhookConfiguration")
        .map(|object| object.0.clone())
        .collect();
    let name = |value: &Value| value.at(&["metadata", "name"]).cloned();
    let mut all = installer.webhooks().await?;
    all.retain(|live| !planned.iter().any(|one| name(one) == name(live)));
    let names: Vec<String> = planned
        .iter()
        .filter_map(|one| name(one)?.as_str().map(ToOwned::to_owned))
        .collect();
    all.extend(planned);
    let is_ours = |webhook: &str| names.iter().any(|name| webhook.starts_with(&format!("{name}/")));
    let found = find_overlaps(&all).into_iter();
    let ours = found.filter(|one| is_ours(&one.first) || is_ours(&one.second));
    Ok(ours.map(|one| overlap_finding(&one)).collect())
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

fn other_tag(plan: &InstallationPlan, decision: &DefaultTag) -> Option<EligibilityFinding> {
    let DefaultTag::Other(revision) = decision else {
        return None;
    };
    (*revision != plan.revision && plan.revision == "default").then(|| EligibilityFinding {
        severity: Severity::Warning,
        message: format!("the default tag stays with revision {revision:?}"),
        hint: Some("move it with `mainstay tag set default --revision default --overwrite`".into()),
    })
}

/// Prints findings to stderr.
pub(crate) fn print_findings(findings: &[EligibilityFinding]) {
    for one in findings {
        let style = if one.severity == Severity::Error {
            ERROR
        } else {
            WARNING
        };
        let mut text = format!("{style}{}{style:#}: {}\n", one.severity, one.message);
        if let Some(hint) = &one.hint {
            let _ = writeln!(text, "{HINT}hint{HINT:#}: {hint}");
        }
        // A closed stderr is ignored.
        let _ = anstream::stderr().write_all(harmless(&text).as_bytes());
    }
}
