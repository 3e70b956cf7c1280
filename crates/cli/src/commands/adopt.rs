//! `mainstay adopt`: takes over a mesh that Helm, istioctl or another tool installed, or hands it to Helm.

mod page;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mainstay_adopt::{AdoptError, Adoption, HelmTransfer, OPERATOR_NAMESPACE, Session, is_undefined};
use mainstay_cluster::deploy::document;

use crate::catalog::ChartsFlag;
use crate::commands::print_styled;
use crate::commands::revision::{Format, structured};
use crate::error::{CliError, Kind, chain};
use crate::kubeconfig::{ClusterFlags, block_on};

/// Arguments of `adopt`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay adopt
  mainstay adopt -o yaml > mesh.yaml
  mainstay adopt --apply
  mainstay adopt --to helm --apply --write-charts charts
  mainstay adopt --undo

Only ownership is written: labels, annotations, owner references, the custom resources, and a label of Helm's
Secrets. No pod template changes, so nothing restarts.

Exit codes: 0 nothing differs, 1 something differs or failed, 2 wrong usage.")]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterFlags,

    /// Write the changes; without it they are only shown
    #[arg(long, visible_alias = "yes", conflicts_with = "dry_run")]
    apply: bool,

    /// Only show what would be written (the default)
    #[arg(long)]
    dry_run: bool,

    /// Write the changes although the operator will change fields of the mesh afterwards
    #[arg(long)]
    allow_differences: bool,

    /// Tool that will manage the mesh
    #[arg(long, value_enum, value_name = "TOOL", default_value_t = Target::Operator)]
    to: Target,

    /// Undo the adoption: restore all previous owners and delete the created resources
    #[arg(long, conflicts_with_all = ["apply", "dry_run"])]
    undo: bool,

    /// Write the charts of `--to helm` to this directory, one per release, for `helm upgrade`
    #[arg(long, value_name = "DIR")]
    write_charts: Option<PathBuf>,

    /// Namespace of the record that `--undo` reads
    #[arg(short, long, value_name = "NAMESPACE", default_value = "istio-system")]
    namespace: String,

    /// Namespace of the operator that will manage the mesh
    #[arg(long, value_name = "NAMESPACE", default_value = OPERATOR_NAMESPACE)]
    operator_namespace: String,

    /// Output format; `yaml` prints the resources
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    charts: ChartsFlag,
}

/// Tools that can manage a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// This operator or the Sail Operator
    Operator,
    /// Helm 3 or 4
    Helm,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    block_on(async {
        let catalog = Arc::new(args.charts.open()?);
        let client = args.cluster.client().await?;
        let session = Session::new(client, catalog, &args.operator_namespace).await?;
        if args.undo {
            return undo(&session, &args.namespace).await;
        }
        if args.to == Target::Helm {
            return to_helm(&session, args).await;
        }
        let adoption = session.plan(args.allow_differences).await?;
        show(&adoption, args)?;
        if args.apply {
            return apply(&session, &adoption).await;
        }
        outcome(&adoption)
    })
}

fn show(adoption: &Adoption, args: &Args) -> Result<(), CliError> {
    let text = match args.output {
        Format::Text | Format::Wide => page::page(adoption, args.apply),
        Format::Yaml => documents(adoption)?,
        Format::Json => structured(&page::Summary::new(adoption), Format::Json)?,
    };
    print_styled(&text)
}

/// Returns the derived resources as a YAML stream.
fn documents(adoption: &Adoption) -> Result<String, CliError> {
    let mut out = String::new();
    let documents = adoption
        .plans
        .iter()
        .flat_map(|plan| plan.derivation.derived.documents());
    for resource in documents {
        let text = document(&resource);
        let text = text.map_err(|error| CliError::new(Kind::Io, format!("cannot print: {error}")))?;
        out.extend(["---\n", &text]);
    }
    Ok(out)
}

async fn apply(session: &Session, adoption: &Adoption) -> Result<(), CliError> {
    if adoption.plans.is_empty() {
        return check_rejected(adoption);
    }
    let applied = session.apply(adoption).await?;
    let namespace = adoption.namespace().unwrap_or_default();
    print_styled(&format!(
        "\nCreated {} resources and changed the ownership of {} objects; Helm no longer finds {} releases.\n\
         Run `mainstay operator run` or install the operator to manage the mesh.\n\
         Run `mainstay adopt --undo --namespace {namespace}` to undo the adoption.\n",
        applied.resources, applied.objects, applied.hidden
    ))?;
    check_rejected(adoption)
}

/// Returns an error if a component was not adopted because the operator would change it.
fn check_rejected(adoption: &Adoption) -> Result<(), CliError> {
    let Some(first) = adoption.rejected.first() else {
        return Ok(());
    };
    let message = format!(
        "the operator would change the {}; it was not adopted",
        first.component.describe()
    );
    Err(CliError::new(Kind::Cluster, message)
        .hint("set the listed values, or add `--allow-differences` to let the operator change the fields"))
}

async fn to_helm(session: &Session, args: &Args) -> Result<(), CliError> {
    let plan = session.plan_helm().await?;
    let text = match args.output {
        Format::Text | Format::Wide => page::hand_over(&plan, args.apply),
        other => structured(&page::HandOverSummary::new(&plan), other)?,
    };
    print_styled(&text)?;
    if plan.releases.is_empty() {
        return Ok(());
    }
    if let Some(directory) = &args.write_charts {
        write_charts(directory, &plan)?;
    }
    if !args.apply {
        return would_change(plan.is_equal());
    }
    if !plan.is_equal() && !args.allow_differences {
        let message = "`helm upgrade` would change fields of the mesh; nothing was written";
        return Err(CliError::new(Kind::Cluster, message)
            .hint("add `--allow-differences` to let Helm change the fields"));
    }
    let applied = session.apply_helm(&plan).await?;
    let namespace = plan.namespace().unwrap_or_default();
    print_styled(&format!(
        "\nCreated {} Helm releases and changed the ownership of {} objects; deleted {} resources.\n\
         Run `mainstay adopt --undo --namespace {namespace}` to undo this, or `mainstay adopt --apply` to give the \
         mesh to the operator.\n",
        applied.hidden, applied.objects, applied.resources
    ))
}

/// Writes the chart of each release; existing files are overwritten.
fn write_charts(directory: &Path, plan: &HelmTransfer) -> Result<(), CliError> {
    for release in &plan.releases {
        let top = directory.join(&release.release.name);
        for (name, data) in &release.chart {
            let path = top.join(name);
            let failed = |error: std::io::Error| {
                CliError::new(Kind::Io, format!("cannot write {}: {error}", path.display()))
            };
            std::fs::create_dir_all(path.parent().unwrap_or(&top)).map_err(failed)?;
            std::fs::write(&path, data).map_err(failed)?;
        }
    }
    Ok(())
}

fn would_change(is_equal: bool) -> Result<(), CliError> {
    if is_equal {
        return Ok(());
    }
    Err(CliError::new(Kind::WouldChange, ""))
}

async fn undo(session: &Session, namespace: &str) -> Result<(), CliError> {
    let undone = session.undo(namespace).await?;
    print_styled(&format!(
        "Restored the ownership of {} objects and {} Helm releases; deleted {} resources.\n",
        undone.objects, undone.hidden, undone.resources
    ))
}

/// Returns an error if the operator would change the mesh, so that scripts can check a dry run.
fn outcome(adoption: &Adoption) -> Result<(), CliError> {
    let mut plans = adoption.plans.iter().chain(&adoption.rejected);
    would_change(plans.all(mainstay_adopt::ComponentPlan::is_equal))
}

impl From<AdoptError> for CliError {
    fn from(error: AdoptError) -> Self {
        let result = Self::new(Kind::Cluster, chain(&error));
        match &error {
            _ if is_undefined(&error) => result.hint("run `mainstay crds install`"),
            AdoptError::NoCharts { version, .. } => {
                result.hint(format!("run `mainstay charts pull {version}`"))
            }
            AdoptError::NoRecord(_) => {
                result.hint("name the namespace of the control plane with --namespace")
            }
            _ => result,
        }
    }
}
