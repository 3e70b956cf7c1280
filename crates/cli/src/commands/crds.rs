//! `mainstay crds`: prints or installs the custom resource definitions of Mainstay and Istio.

mod install;

use mainstay_api::crd::{delivery_definitions, istio_operator_definition};
use mainstay_cluster::definitions::{DefinitionsError, istio_text, own_definitions};
use mainstay_cluster::deploy::document;
use serde_json::Value;

use crate::catalog::{ChartsFlag, version_or_default};
use crate::commands::print;
use crate::error::{CliError, Kind};

/// Arguments of `crds`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  mainstay crds | kubectl apply --server-side -f -
  mainstay crds --only mainstay > crds.yaml
  mainstay crds --only istio --version 1.28.2
  mainstay crds install --context prod
  mainstay crds install --only delivery
  mainstay crds install --only mainstay,istio,istio-operator"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    choice: Choice,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Install the definitions and wait until they are served
    #[command(after_help = "Examples:
  mainstay crds install
  mainstay crds install --only istio --version 1.28.2 --context prod")]
    Install(install::Args),
}

/// Flags that select definitions.
#[derive(clap::Args)]
struct Choice {
    /// Only these definitions (several: separate them by commas) [default: those of Mainstay and Istio]
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Side>,

    /// Version of Istio's definitions [default: the newest pinned version]
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    #[command(flatten)]
    charts: ChartsFlag,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Side {
    /// `Istio`, `IstioRevision`, `IstioRevisionTag`, `IstioCNI`, `ZTunnel`
    Mainstay,
    /// Definitions of Istio's base chart
    Istio,
    /// Definitions of application rollouts: `ApplicationDeployment`, `Cluster` and others
    Delivery,
    /// Definition of `IstioOperator`, for the in-cluster controller
    IstioOperator,
}

impl Choice {
    fn includes(&self, side: Side) -> bool {
        let is_default = matches!(side, Side::Mainstay | Side::Istio);
        self.only.contains(&side) || (self.only.is_empty() && is_default)
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Some(Command::Install(it)) => install::run(it),
        None => print_all(&args.choice),
    }
}

fn print_all(choice: &Choice) -> Result<(), CliError> {
    let catalog = choice.charts.open()?;
    let mut out = String::new();
    if choice.includes(Side::Delivery) {
        out.push_str(&text(&delivery_definitions())?);
    }
    if choice.includes(Side::IstioOperator) {
        out.push_str(&text(&[istio_operator_definition()])?);
    }
    if choice.includes(Side::Mainstay) {
        out.push_str(&text(&own_definitions(&catalog)?)?);
    }
    if choice.includes(Side::Istio) {
        let text = istio_text(
            &catalog,
            &version_or_default(&catalog, choice.version.as_deref())?,
        )?;
        out.push_str(if text.starts_with("---") { "" } else { "---\n" });
        out.push_str(&text);
    }
    print(out.as_bytes())
}

/// Returns definitions as YAML.
fn text(definitions: &[Value]) -> Result<String, CliError> {
    let failed =
        |error: mainstay_yaml::Error| CliError::new(Kind::Io, format!("cannot format a definition: {error}"));
    let mut out = String::new();
    for definition in definitions {
        out.extend(["---\n", &document(definition).map_err(failed)?]);
    }
    Ok(out)
}

impl From<DefinitionsError> for CliError {
    fn from(error: DefinitionsError) -> Self {
        match error {
            DefinitionsError::Catalog(error) => error.into(),
            other => Self::new(Kind::Chart, other.to_string()),
        }
    }
}
