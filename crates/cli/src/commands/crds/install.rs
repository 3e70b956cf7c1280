//! `mainstay crds install`: installs the definitions and prints the result of each.

use mainstay_api::crd::{delivery_definitions, istio_operator_definition};
use mainstay_cluster::definitions::{InstallError, Outcome, install, istio_definitions, own_definitions};
use serde_json::Value;

use super::{Choice, Side};
use crate::catalog::version_or_default;
use crate::commands::print;
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};

/// Arguments of `crds install`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let definitions = selected_definitions(&args.choice)?;
    block_on(async {
        let client = args.cluster.client().await?;
        let (mut written, mut print_error) = (0, None);
        let done = install(&client, &definitions, |name, outcome| {
            written += usize::from(outcome != Outcome::Unchanged);
            let line = format!("{name} {}\n", word(outcome));
            print_error = print_error.take().or(print(line.as_bytes()).err());
        });
        done.await?;
        let total = definitions.len();
        print(format!("{total} definitions served, {written} written\n").as_bytes())?;
        print_error.map_or(Ok(()), Err)
    })
}

fn selected_definitions(choice: &Choice) -> Result<Vec<Value>, CliError> {
    let catalog = choice.charts.open()?;
    let mut definitions = Vec::new();
    if choice.includes(Side::Delivery) {
        definitions.extend(delivery_definitions());
    }
    if choice.includes(Side::IstioOperator) {
        definitions.push(istio_operator_definition());
    }
    if choice.includes(Side::Mainstay) {
        definitions.extend(own_definitions(&catalog)?);
    }
    if choice.includes(Side::Istio) {
        let version = version_or_default(&catalog, choice.version.as_deref())?;
        definitions.extend(istio_definitions(&catalog, &version)?);
    }
    Ok(definitions)
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Created => "created",
        Outcome::Updated => "updated",
        Outcome::Adopted => "adopted",
        Outcome::Unchanged => "unchanged",
    }
}

impl From<InstallError> for CliError {
    fn from(error: InstallError) -> Self {
        let result = Self::new(Kind::Cluster, error.to_string());
        match error {
            InstallError::Rejected { error, .. } if error.code == 403 => {
                result.hint("ask for permission to create, get and patch customresourcedefinitions")
            }
            _ => result,
        }
    }
}
