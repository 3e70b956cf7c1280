//! `mainstay cluster list`: prints clusters with health, version and labels.

use mainstay_api::ConditionType;
use mainstay_api::delivery::Cluster;

use crate::commands::print_styled;
use crate::commands::revision::{Format, structured};
use crate::commands::rollout::api::{Delivery, ScopeFlags};
use crate::commands::rollout::page::status_word;
use crate::error::CliError;
use crate::ui::table;

/// Arguments of `cluster list`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay cluster list
  mainstay cluster list -l usage=production
  mainstay cluster list -A -o json | jq -r '.[].metadata.name'

Exit codes: 0 listed, 1 the cluster could not be read.")]
pub(crate) struct Args {
    /// List clusters of all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,

    /// Only clusters with this label; can be repeated
    #[arg(short = 'l', long = "label", value_name = "KEY=VALUE", value_parser = crate::flag_value::label)]
    labels: Vec<(String, String)>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    scope: ScopeFlags,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<(), CliError> {
    let delivery = Delivery::connect(&args.scope).await?;
    let mut clusters: Vec<Cluster> = delivery.list(args.all_namespaces).await?;
    clusters.retain(|cluster| {
        let has = |(key, value): &(String, String)| cluster.metadata.labels.get(key) == Some(value);
        args.labels.iter().all(has)
    });
    let key = |cluster: &Cluster| (cluster.namespace().to_owned(), cluster.name().to_owned());
    clusters.sort_by_key(key);
    print_styled(&match args.output {
        Format::Text | Format::Wide => page(&clusters, args.all_namespaces),
        other => structured(&clusters, other)?,
    })
}

fn page(clusters: &[Cluster], all_namespaces: bool) -> String {
    if clusters.is_empty() {
        return "No clusters found\n".to_owned();
    }
    let mut head = vec!["NAME", "READY", "REASON", "VERSION", "SCHEDULABLE", "LABELS"];
    if all_namespaces {
        head.insert(0, "NAMESPACE");
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for cluster in clusters {
        let mut row = row(cluster);
        if all_namespaces {
            row.insert(0, cluster.namespace().to_owned());
        }
        rows.push(row);
    }
    table::lines("", &rows)
}

fn row(cluster: &Cluster) -> Vec<String> {
    let ready = cluster.status.conditions.find(&ConditionType::Ready);
    let text = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let labels = cluster.metadata.labels.iter();
    let labels: Vec<String> = labels.map(|(key, value)| format!("{key}={value}")).collect();
    let is_schedulable = !cluster.spec.unschedulable && cluster.spec.taints.is_empty();
    vec![
        cluster.name().to_owned(),
        ready
            .map_or("Unknown", |ready| status_word(ready.status))
            .to_owned(),
        text(ready.map(|ready| ready.reason.to_string()).unwrap_or_default()),
        text(cluster.status.version.clone()),
        if is_schedulable { "yes" } else { "no" }.to_owned(),
        text(labels.join(",")),
    ]
}
