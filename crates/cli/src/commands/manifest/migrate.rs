//! `mainstay manifest migrate`: converts `IstioOperator` files and charts of Helm to another form.

mod helm_input;

use std::fmt::Write as _;
use std::sync::Arc;

use mainstay_adopt::{Migration, helm_to_operator, helm_to_resources, to_resources};
use mainstay_cluster::deploy::document;
use mainstay_manifest::generate;
use serde_json::Value;

use super::inputs::InputFlags;
use super::report;
use crate::commands::print;
use crate::commands::revision::{Format, structured};
use crate::error::{CliError, Kind};
use helm_input::HelmFlags;

/// Arguments of `manifest migrate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay manifest migrate -f mesh.yaml > istio.yaml
  mainstay manifest migrate -f mesh.yaml --set profile=ambient -o json | jq .differences
  mainstay manifest migrate --helm-values istiod=values.yaml --helm-values cni=cni.yaml > operator.yaml
  kubectl get secrets -A -l owner=helm -o yaml | mainstay manifest migrate --helm-release - --to sail
  mainstay manifest migrate --from-cluster --to istio-operator

IstioOperator files become Istio, IstioCNI and ZTunnel resources and values for the gateway chart; charts of Helm become
an IstioOperator, or these resources with `--to sail`. The output contains only what differs from the profile, and the
comments of the files. Comments at the top list the fields that could not be carried over, and the fields of all objects
that are rendered differently afterwards.

Exit codes: 0 both render the same objects, 1 they differ.")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: InputFlags,
    #[command(flatten)]
    helm: HelmFlags,
    /// Form of the output (default: `sail` for `IstioOperator` files, `istio-operator` for charts of Helm)
    #[arg(long, value_enum, value_name = "FORM")]
    to: Option<Target>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Yaml, value_name = "FORMAT")]
    output: Format,
}

/// Forms of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// Resources of this operator and of the Sail Operator
    Sail,
    /// An `install.istio.io/v1alpha1 IstioOperator`
    IstioOperator,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let migration = match (args.helm.is_empty(), args.to) {
        (true, Some(Target::IstioOperator)) => {
            let message = "--to istio-operator needs charts of Helm";
            return Err(CliError::new(Kind::Usage, message)
                .hint("add --helm-values, --helm-release or --from-cluster"));
        }
        (true, _) => from_operator(args)?,
        (false, to) => from_helm(args, to)?,
    };
    let text = match args.output {
        Format::Json => structured(&migration, Format::Json)?,
        _ => page(&migration)?,
    };
    print(text.as_bytes())?;
    if migration.is_equal() {
        return Ok(());
    }
    Err(CliError::new(Kind::WouldChange, ""))
}

fn from_operator(args: &Args) -> Result<Migration, CliError> {
    let (rendered, files) = args.inputs.with_request(|request| {
        let texts = request
            .files
            .iter()
            .map(|file| String::from_utf8_lossy(&file.text).into_owned());
        let texts: Vec<String> = texts.collect();
        generate(request).map(|rendered| (rendered, texts))
    })?;
    report::print(&rendered.warnings);
    let (catalog, version) = args.inputs.catalog()?;
    Ok(to_resources(&rendered, &Arc::new(catalog), &version, &files)?)
}

fn from_helm(args: &Args, to: Option<Target>) -> Result<Migration, CliError> {
    if !args.inputs.is_empty() {
        let message = "IstioOperator files and charts of Helm cannot be converted together";
        return Err(CliError::new(Kind::Usage, message));
    }
    let (catalog, version) = args.inputs.catalog()?;
    let sources = args.helm.sources(&catalog, &version)?;
    let catalog = Arc::new(catalog);
    Ok(match to {
        Some(Target::Sail) => helm_to_resources(&sources, &catalog)?,
        _ => helm_to_operator(&sources, &catalog)?,
    })
}

fn page(migration: &Migration) -> Result<String, CliError> {
    let mut out = String::new();
    for one in &migration.not_carried {
        let _ = writeln!(out, "# not carried: {}: {}", one.path, one.reason);
    }
    let _ = writeln!(out, "# rendered equally: {} objects", migration.equal_objects);
    for one in &migration.differences {
        let shown = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_string);
        let (before, after) = (shown(one.live.as_ref()), shown(one.desired.as_ref()));
        let note = match (one.harmless, one.reason) {
            (Some(reason), _) => format!(" (no effect: {reason})"),
            (None, Some(reason)) => format!(" ({reason})"),
            (None, None) => String::new(),
        };
        let _ = writeln!(
            out,
            "# differs: {} {}: {before} before, {after} after{note}",
            one.object, one.field
        );
    }
    for (index, resource) in migration.resources.iter().enumerate() {
        let text = yaml(resource)?;
        let text = match migration.comments.get(index) {
            Some(comments) => comments.write(&text),
            None => text,
        };
        out.extend(["---\n", &text]);
    }
    for gateway in &migration.gateways {
        let _ = writeln!(
            out,
            "---\n# values for: helm install {} gateway --namespace {}",
            gateway.release, gateway.namespace
        );
        out.push_str(&yaml(&Value::Object(gateway.values.clone()))?);
    }
    Ok(out)
}

fn yaml(value: &Value) -> Result<String, CliError> {
    document(value).map_err(|error| CliError::new(Kind::Io, format!("cannot print: {error}")))
}
