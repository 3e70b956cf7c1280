//! `mainstay cluster check`: connection, version, permissions, routing kinds and clock of clusters.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use mainstay_api::delivery::Cluster;
use mainstay_cluster::connect::{Fence, guard};
use mainstay_cluster::remote::{
    AddressPolicy, Finding, Kubeconfig, MemberReport, Severity, check_member, connect_remote,
};
use serde::Serialize;
use serde_json::Value;

use super::member::{MemberFlags, credential_name};
use crate::commands::print_styled;
use crate::commands::revision::{Format, structured};
use crate::commands::rollout::api::{Delivery, ScopeFlags, call};
use crate::error::{CliError, Kind};
use crate::ui::style::{ERROR, GOOD, HINT, WARNING};
use crate::ui::table;

/// Arguments of `cluster check`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay cluster check                                    # all clusters of the namespace
  mainstay cluster check prod-1 -o json | jq '.[].findings'
  mainstay cluster check --cluster-kubeconfig prod-1.yaml   # before it is added

The checks run from this machine, with the credential of the Cluster: connection and version, every permission of the
member role, the kinds of Istio, Gateway API and Ingress, and the clock.

Exit codes: 0 usable, 2 a cluster cannot be used, 1 the clusters could not be read.")]
pub(super) struct Args {
    /// Clusters to check [default: all of the namespace]
    #[arg(conflicts_with_all = ["cluster_kubeconfig", "cluster_context", "server"])]
    names: Vec<String>,

    #[command(flatten)]
    member: MemberFlags,

    /// Output format; `wide` also shows every permission
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    scope: ScopeFlags,
}

/// A checked cluster.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Checked {
    name: String,
    server: String,
    credential: &'static str,
    #[serde(flatten)]
    report: Option<MemberReport>,
    pub(super) findings: Vec<Finding>,
}

impl Checked {
    /// Whether rollouts can use the cluster.
    pub(super) fn is_usable(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.severity != Severity::Error)
    }

    pub(super) fn first_problem(&self) -> &str {
        self.findings
            .first()
            .map_or("", |finding| finding.message.as_str())
    }
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<(), CliError> {
    let is_file = args.member.cluster_kubeconfig.is_some() || args.member.cluster_context.is_some();
    let checked = if is_file {
        vec![inspect("(kubeconfig)", &args.member.read()?, args.member.policy()).await]
    } else {
        check_stored(args).await?
    };
    print_styled(&match args.output {
        Format::Text | Format::Wide => page(&checked, args.output == Format::Wide),
        other => structured(&checked, other)?,
    })?;
    if checked.iter().all(Checked::is_usable) {
        return Ok(());
    }
    Err(CliError::new(Kind::Attention, ""))
}

async fn check_stored(args: &Args) -> Result<Vec<Checked>, CliError> {
    let delivery = Delivery::connect(&args.scope).await?;
    let mut clusters: Vec<Cluster> = delivery.list(false).await?;
    clusters.sort_by_key(|cluster| cluster.name().to_owned());
    let known: Vec<&str> = clusters.iter().map(Cluster::name).collect();
    if let Some(unknown) = args.names.iter().find(|name| !known.contains(&name.as_str())) {
        let message = format!(
            "cluster {unknown:?} not found in namespace {:?}",
            delivery.namespace
        );
        let hint = if known.is_empty() {
            "select a namespace with -n; `mainstay cluster list -A` lists all clusters".to_owned()
        } else {
            format!("use one of {}", known.join(", "))
        };
        return Err(CliError::new(Kind::Cluster, message).hint(hint));
    }
    clusters.retain(|cluster| args.names.is_empty() || args.names.iter().any(|name| name == cluster.name()));
    let mut checked = Vec::new();
    for cluster in &clusters {
        let name = cluster.name();
        checked.push(
            match read_secret(&delivery, cluster, args.member.policy()).await {
                Ok(kubeconfig) => inspect(name, &kubeconfig, args.member.policy()).await,
                Err(finding) => Checked {
                    name: name.to_owned(),
                    server: String::new(),
                    credential: "",
                    report: None,
                    findings: vec![finding],
                },
            },
        );
    }
    Ok(checked)
}

/// Reads the kubeconfig of a Cluster as the operator does.
async fn read_secret(
    delivery: &Delivery,
    cluster: &Cluster,
    policy: AddressPolicy,
) -> Result<Kubeconfig, Finding> {
    let reference = &cluster.spec.kubeconfig_secret_ref;
    let add_again = format!("run `mainstay cluster add {} --overwrite`", cluster.name());
    let error = |message: String| Finding {
        severity: Severity::Error,
        message: format!("secret {:?}: {message}", reference.name),
        hint: add_again.clone(),
    };
    let path = format!(
        "/api/v1/namespaces/{}/secrets/{}",
        delivery.namespace, reference.name
    );
    let secret = match call(&delivery.client, "GET", &path, None).await {
        Ok(secret) => secret,
        Err(kube::Error::Api(status)) => return Err(error(status.message.clone())),
        Err(other) => return Err(error(crate::error::chain(&other))),
    };
    let key = reference.key.as_deref().unwrap_or("config");
    let data = secret
        .get("data")
        .and_then(|data| data.get(key))
        .and_then(Value::as_str);
    let data = data.ok_or_else(|| error(format!("key {key:?} is not set")))?;
    let text = STANDARD
        .decode(data)
        .map_err(|_| error(format!("key {key:?} is not base64")))?;
    Kubeconfig::parse(&text, policy).map_err(|rejected| error(format!("key {key:?}: {rejected}")))
}

/// Checks the cluster of a kubeconfig.
pub(super) async fn inspect(name: &str, kubeconfig: &Kubeconfig, policy: AddressPolicy) -> Checked {
    let mut checked = Checked {
        name: name.to_owned(),
        server: kubeconfig.server.clone(),
        credential: credential_name(&kubeconfig.credential),
        report: None,
        findings: Vec::new(),
    };
    let failure = |message: String, hint: &str| Finding {
        severity: Severity::Error,
        message,
        hint: hint.to_owned(),
    };
    let client = match connect_remote(kubeconfig, policy) {
        Ok(client) => guard(client, Fence::open(), std::sync::Arc::new(|_, _| {})),
        Err(error) => {
            let hint = "check server, CA and credential of the kubeconfig";
            checked.findings.push(failure(error.to_string(), hint));
            return checked;
        }
    };
    match check_member(&client, Timestamp::now).await {
        Ok(report) => {
            checked.findings = report.findings();
            checked.report = Some(report);
        }
        Err(error) if error.code == 401 => {
            let hint = "add the cluster again with a valid credential: `mainstay cluster add --overwrite`";
            checked
                .findings
                .push(failure("the credential is rejected".to_owned(), hint));
        }
        Err(error) => {
            let hint = "check that the server can be reached from here and from the operator";
            checked.findings.push(failure(error.message, hint));
        }
    }
    checked
}

fn page(checked: &[Checked], is_wide: bool) -> String {
    if checked.is_empty() {
        return "No clusters found\n".to_owned();
    }
    let mut text = String::new();
    for (index, cluster) in checked.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let (style, word) = if cluster.is_usable() {
            (GOOD, "usable")
        } else {
            (ERROR, "not usable")
        };
        let _ = writeln!(text, "Cluster {}  {style}{word}{style:#}", cluster.name);
        text.push_str(&table::lines("  ", &facts(cluster)));
        if let Some(report) = cluster.report.as_ref().filter(|_| is_wide) {
            text.push('\n');
            text.push_str(&table::lines("  ", &permissions(report)));
        }
        text.push_str(&findings_text(&cluster.findings));
    }
    text
}

fn facts(cluster: &Checked) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    if !cluster.server.is_empty() {
        row("server", cluster.server.clone());
        row("credential", cluster.credential.to_owned());
    }
    if let Some(report) = &cluster.report {
        row(
            "version",
            format!("{}, {} ms per call", report.version, report.round_trip_millis),
        );
        row(
            "clock",
            match report.clock_skew_millis {
                None => "unknown".to_owned(),
                Some(0) => "in sync".to_owned(),
                Some(skew) => format!("{skew:+} ms"),
            },
        );
        let allowed = report.permissions.iter().filter(|one| one.is_allowed).count();
        row(
            "permissions",
            format!("{allowed} of {}", report.permissions.len()),
        );
        for kinds in &report.routing {
            let provider = serde_json::to_value(kinds.provider).unwrap_or_default();
            let provider = provider.as_str().unwrap_or_default().to_owned();
            let state = if kinds.is_complete() {
                format!("{} served", kinds.served.join(", "))
            } else {
                format!("{} not served", kinds.missing.join(", "))
            };
            row(&provider, state);
        }
    }
    rows
}

fn permissions(report: &MemberReport) -> Vec<Vec<String>> {
    let mut rows = vec![["RESOURCE", "VERB", "ALLOWED"].map(str::to_owned).to_vec()];
    rows.extend(report.permissions.iter().map(|one| {
        let resource = match one.group.as_str() {
            "" => one.resource.clone(),
            group => format!("{}.{group}", one.resource),
        };
        let allowed = if one.is_allowed { "yes" } else { "no" };
        vec![resource, one.verb.clone(), allowed.to_owned()]
    }));
    rows
}

/// Returns one line per problem and one per different hint.
pub(super) fn findings_text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for (index, finding) in findings.iter().enumerate() {
        let _ = match finding.severity {
            Severity::Error => writeln!(text, "  {ERROR}error:{ERROR:#} {}", finding.message),
            Severity::Warning => writeln!(text, "  {WARNING}warning:{WARNING:#} {}", finding.message),
        };
        let is_last = findings
            .get(index + 1)
            .is_none_or(|next| next.hint != finding.hint);
        if is_last {
            let _ = writeln!(text, "  {HINT}hint:{HINT:#} {}", finding.hint);
        }
    }
    text
}
