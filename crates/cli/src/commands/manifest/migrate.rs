//! `mainstay manifest migrate`: converts `IstioOperator` files to custom resources.

use std::fmt::Write as _;
use std::sync::Arc;

use mainstay_adopt::{Migration, to_resources};
use mainstay_cluster::deploy::document;
use serde_json::Value;

use super::inputs::InputFlags;
use crate::commands::print;
use crate::commands::revision::{Format, structured};
use crate::error::{CliError, Kind};

/// Arguments of `manifest migrate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay manifest migrate -f mesh.yaml > istio.yaml
  mainstay manifest migrate -f mesh.yaml --set profile=ambient -o json | jq .differences

Prints Istio, IstioCNI and ZTunnel resources and values for the gateway chart. Comments list fields that could not
be carried over, and the fields of all objects that are rendered differently afterwards.

Exit codes: 0 both render the same objects, 1 they differ.")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: InputFlags,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Yaml, value_name = "FORMAT")]
    output: Format,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let rendered = args.inputs.generate()?;
    let (catalog, version) = args.inputs.catalog()?;
    let migration = to_resources(&rendered, &Arc::new(catalog), &version)?;
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

fn page(migration: &Migration) -> Result<String, CliError> {
    let mut out = String::new();
    for one in &migration.not_carried {
        let _ = writeln!(out, "# not carried: {}: {}", one.path, one.reason);
    }
    let _ = writeln!(out, "# rendered equally: {} objects", migration.equal_objects);
    for one in &migration.differences {
        let shown = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_string);
        let (before, after) = (shown(one.live.as_ref()), shown(one.desired.as_ref()));
        let _ = writeln!(
            out,
            "# differs: {} {}: {before} before, {after} after",
            one.object, one.field
        );
    }
    for resource in &migration.resources {
        out.extend(["---\n", &yaml(resource)?]);
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
