//! Plans an installation from flags and the state of a cluster.

use std::fmt::Write as _;
use std::io::Write as _;

use kube::Client;
use mainstay_catalog::Version;
use mainstay_cluster::install::{ClusterFacts, Installer, SetName, installed_sets, read_cluster_facts};
use mainstay_manifest::{
    DefaultTag, EligibilityFinding, InputFile, InstallationPlan, Month, Severity, UpgradeRequest,
    add_default_tag, check_network, check_upgrade, check_webhooks,
};

use super::Purpose;
use crate::commands::escape_control_characters;
use crate::commands::manifest::inputs::{ClusterDefaults, InputFlags};
use crate::error::{CliError, Kind};
use crate::ui::style::{ERROR, HINT, WARNING};

/// A plan with the findings about it.
pub(crate) struct Planned {
    /// The plan, with the default tag.
    pub(crate) plan: InstallationPlan,
    /// Problems of the plan on this cluster. An error prevents the installation unless it is forced.
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
        let failed =
            |error: mainstay_manifest::TagError| CliError::new(Kind::Chart, crate::error::chain(&error));
        let decision = add_default_tag(&mut plan, live_tag.as_ref(), *package).map_err(failed)?;
        Ok((plan, decision))
    })?;
    let newest = newest_release(inputs)?;
    let mut findings = findings(&plan, &facts, newest.as_ref(), purpose)?;
    findings.extend(check_webhooks(&plan, installer.webhooks().await?));
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

/// Returns the newest release in the catalog.
fn newest_release(inputs: &InputFlags) -> Result<Option<Version>, CliError> {
    let (catalog, _) = inputs.catalog()?;
    let versions = catalog.installable().into_iter().map(|one| one.version);
    Ok(versions.filter(Version::is_release).max())
}

fn findings(
    plan: &InstallationPlan,
    facts: &ClusterFacts,
    newest_available: Option<&Version>,
    purpose: Purpose,
) -> Result<Vec<EligibilityFinding>, CliError> {
    let target: Version = plan.version.parse()?;
    let today = jiff::Zoned::now().date();
    let request = UpgradeRequest {
        revision: &plan.revision,
        target: &target,
        installed: &facts.control_planes,
        must_be_installed: purpose == Purpose::Upgrade,
        kube_minor: facts.kube_minor,
        month: Month {
            year: today.year(),
            month: today.month(),
        },
        newest_available,
    };
    let mut findings = check_upgrade(&request);
    if purpose != Purpose::Upgrade {
        // An error of an upgrade is only a warning for other commands, as in istioctl.
        for one in &mut findings {
            one.severity = Severity::Warning;
        }
    }
    Ok(findings)
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
        let _ = anstream::stderr().write_all(escape_control_characters(&text).as_bytes());
    }
}
