//! `mainstay precheck`: checks whether Istio can be installed or upgraded on a cluster.

use std::time::Duration;

use mainstay_cluster::install::Installer;
use mainstay_manifest::{EligibilityFinding, Severity};
use serde_json::json;

use super::install::{Purpose, plan_installation, print_findings};
use super::manifest::inputs::InputFlags;
use super::verify::Output;
use crate::commands::{print, print_styled};
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};

/// Arguments of `precheck`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay precheck
  mainstay precheck -f mesh.yaml --istio-version 1.29.1
  mainstay precheck --output-threshold error -o json

Checked are: versions, permissions for every object of the configuration, definitions of the Gateway API,
overlapping webhooks.

Exit codes: 0 if there are no findings, 1 otherwise, 2 for wrong usage.")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: InputFlags,

    #[command(flatten)]
    cluster: ClusterFlags,

    /// Lowest severity to report
    #[arg(long, value_enum, default_value_t = Threshold::Warning, value_name = "SEVERITY")]
    output_threshold: Threshold,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Threshold {
    /// Everything
    Warning,
    /// Only what prevents an installation
    Error,
}

/// Gateway API kinds, the version that Istio needs, and the one that it will need.
const GATEWAY_KINDS: &[(&str, Option<&str>, Option<&str>)] = &[
    ("Gateway", Some("v1beta1"), Some("v1")),
    ("GatewayClass", Some("v1beta1"), Some("v1")),
    ("HTTPRoute", Some("v1beta1"), Some("v1")),
    ("GRPCRoute", None, Some("v1")),
    ("ReferenceGrant", Some("v1beta1"), None),
];

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let mut findings = block_on(check(args))?;
    findings.retain(|one| args.output_threshold == Threshold::Warning || one.severity == Severity::Error);
    match args.output {
        Output::Text => print_findings(&findings),
        output => print_styled(&output.format(&report(&findings))?)?,
    }
    if !findings.is_empty() {
        return Err(CliError::new(Kind::WouldChange, ""));
    }
    if args.output == Output::Text {
        print(b"No problems found: Istio can be installed or upgraded\n")?;
    }
    Ok(())
}

async fn check(args: &Args) -> Result<Vec<EligibilityFinding>, CliError> {
    let client = args.cluster.client().await?;
    let installer = Installer::new(client.clone(), Duration::ZERO);
    let planned = plan_installation(&client, &installer, &args.inputs, Purpose::Precheck).await?;
    let mut findings = planned.findings;
    for (request, reason) in installer.denied_permissions(&planned.plan).await? {
        let message = format!("missing permission to {request}: {reason}");
        findings.push(finding(Severity::Error, message, "ask for a role that allows it"));
    }
    for (kind, served) in installer.gateway_definitions().await? {
        findings.extend(gateway_finding(&kind, &served));
    }
    Ok(findings)
}

fn gateway_finding(kind: &str, served: &[String]) -> Option<EligibilityFinding> {
    let (_, needed, recommended) = GATEWAY_KINDS.iter().find(|row| row.0 == kind)?;
    let lacks =
        |version: Option<&str>| version.is_some_and(|version| !served.iter().any(|one| one == version));
    let list = served.join(", ");
    let hint = "update the definitions of the Gateway API";
    if lacks(*needed) {
        let message = format!(
            "definition {kind} of the Gateway API serves {list}, not {}",
            needed.unwrap_or_default()
        );
        return Some(finding(Severity::Error, message, hint));
    }
    let message = format!(
        "definition {kind} of the Gateway API serves {list}, not {}",
        recommended.unwrap_or_default()
    );
    lacks(*recommended).then(|| finding(Severity::Warning, message, hint))
}

fn finding(severity: Severity, message: String, hint: &str) -> EligibilityFinding {
    EligibilityFinding {
        severity,
        message,
        hint: Some(hint.to_owned()),
    }
}

fn report(findings: &[EligibilityFinding]) -> serde_json::Value {
    let row = |one: &EligibilityFinding| json!({"severity": one.severity.to_string(), "message": one.message, "hint": one.hint});
    findings.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_gateway_api() {
        let check = |kind: &str, served: &[&str], expected: Option<Severity>| {
            let served: Vec<String> = served.iter().map(|one| (*one).to_owned()).collect();
            let found = gateway_finding(kind, &served).map(|one| one.severity);
            assert_eq!(found, expected, "{kind} {served:?}");
        };
        check("Gateway", &["v1alpha2"], Some(Severity::Error));
        check("Gateway", &["v1beta1"], Some(Severity::Warning));
        check("Gateway", &["v1beta1", "v1"], None);
        check("GRPCRoute", &["v1alpha2"], Some(Severity::Warning));
        check("TCPRoute", &["v1alpha2"], None);
    }
}
