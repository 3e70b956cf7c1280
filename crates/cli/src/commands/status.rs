//! `mainstay status`: takes a cluster, prints one page about its meshes: what runs, who uses it, what goes when, what is wrong.

pub(crate) mod page;

use std::io::IsTerminal as _;
use std::time::Duration;

use mainstay_cluster::survey::survey;

use crate::catalogue::ChartsFlag;
use crate::commands::print;
use crate::commands::revision::{At, Format, empty_snapshot, structured};
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};
use crate::report::Report;

/// How often `--watch` looks.
const PERIOD: Duration = Duration::from_secs(2);

/// Arguments of `status`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay status
  mainstay status --context prod -o wide
  mainstay status --watch
  mainstay status -o json | jq '.problems'

Exit codes: 0 all is well, 2 something needs attention, 1 the cluster could not be read.")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterFlags,

    /// How to print it; `wide` names everybody who refers to a revision
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    /// Print it again whenever it changes, until Ctrl-C
    #[arg(short, long)]
    watch: bool,

    #[command(flatten)]
    at: At,

    #[command(flatten)]
    charts: ChartsFlag,
}

/// Runs it.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    block_on(async {
        let client = args.cluster.client().await?;
        let mut last = String::new();
        loop {
            let found = survey(&client, empty_snapshot(&args.charts, &args.at)?).await?;
            let report = Report::of(&found);
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
                return verdict(&report);
            }
            tokio::time::sleep(PERIOD).await;
        }
    })
}

/// On a terminal a watched page replaces the one before it.
fn show(page: &str, watched: bool) -> Result<(), CliError> {
    if watched && std::io::stdout().is_terminal() {
        print(b"\x1b[H\x1b[2J")?;
    }
    crate::commands::print_styled(page)
}

fn verdict(report: &Report) -> Result<(), CliError> {
    if report.problems.is_empty() {
        Ok(())
    } else {
        Err(CliError::new(Kind::Attention, ""))
    }
}
