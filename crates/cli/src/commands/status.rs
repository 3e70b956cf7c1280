//! `mainstay status`: prints the status of the meshes in a cluster.

pub(crate) mod page;

use std::io::IsTerminal as _;
use std::time::Duration;

use mainstay_cluster::survey::survey;

use crate::catalog::ChartsFlag;
use crate::commands::print;
use crate::commands::revision::{At, Format, empty_snapshot, structured};
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, NamespaceFlags, block_on};
use crate::report::Report;

/// Polling interval of `--watch`.
const PERIOD: Duration = Duration::from_secs(2);

/// Arguments of `status`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay status
  mainstay status --context prod -o wide
  mainstay status -n istio-system
  mainstay status --watch
  mainstay status -o json | jq '.problems'

Exit codes: 0 no problems found, 2 problems found, 1 the cluster could not be read.")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterFlags,

    #[command(flatten)]
    namespaces: NamespaceFlags,

    /// Output format; `wide` lists all referrers of a revision
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    /// Print the status again whenever it changes
    #[arg(short, long)]
    watch: bool,

    #[command(flatten)]
    at: At,

    #[command(flatten)]
    charts: ChartsFlag,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    block_on(async {
        let client = args.cluster.client().await?;
        let mut last = String::new();
        loop {
            let found = survey(&client, empty_snapshot(&args.charts, &args.at)?).await?;
            let report = Report::from_survey(&found).restricted_to(&args.namespaces);
            let page = match args.output {
                Format::Text | Format::Wide => {
                    page::page(&report, &found.snapshot, args.output == Format::Wide)
                }
                other => structured(&report, other)?,
            };
            if page != last {
                show(&page, args.watch)?;
                last = page;
            }
            if !args.watch {
                return outcome(&report);
            }
            tokio::time::sleep(PERIOD).await;
        }
    })
}

/// Prints a page; on a terminal a watched page replaces the previous one.
fn show(page: &str, watched: bool) -> Result<(), CliError> {
    if watched && std::io::stdout().is_terminal() {
        print(b"\x1b[H\x1b[2J")?;
    }
    crate::commands::print_styled(page)
}

fn outcome(report: &Report) -> Result<(), CliError> {
    if report.problems.is_empty() {
        Ok(())
    } else {
        Err(CliError::new(Kind::Attention, ""))
    }
}
