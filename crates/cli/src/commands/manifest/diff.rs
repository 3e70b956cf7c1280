//! `mainstay manifest diff`: compares manifests with each other or with the cluster.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mainstay_cluster::install::Installer;
use mainstay_manifest::{
    ChangedObject, DiffOptions, FieldDifference, Object, ObjectDifference, ObjectSelector,
    compare_object_sets, parse_manifest,
};
use mainstay_yaml::{Value, to_json};
use serde_json::json;

use super::inputs::ChartFlags;
use crate::commands::print_styled;
use crate::commands::verify::Output;
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};
use crate::ui::style::{ERROR, FRAME, GOOD};

/// Maximum size of a file in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Arguments of `manifest diff`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay manifest diff old.yaml new.yaml
  mainstay manifest diff out/1.28 out/1.29 --select Deployment::
  mainstay manifest diff mesh.yaml --live --context prod
  mainstay manifest diff a.yaml b.yaml --rename 'Deployment::istiod->Deployment::istiod-canary'

A file that contains an IstioOperator stands for its objects. YAML inside of ConfigMaps is compared as a
structure.

Exit codes: 0 if there is no difference, 1 if there is one, 2 for errors.")]
pub(crate) struct Args {
    /// Manifest, `IstioOperator` file, or directory of either
    left: PathBuf,
    /// Manifest, `IstioOperator` file, or directory to compare with LEFT
    #[arg(required_unless_present = "live")]
    right: Option<PathBuf>,
    /// Compare with the live cluster: what an apply of LEFT would change
    #[arg(long, conflicts_with = "right")]
    live: bool,
    /// Only objects KIND:NAMESPACE:NAME; empty parts match everything (several: repeat)
    #[arg(long, value_name = "SELECTOR")]
    select: Vec<ObjectSelector>,
    /// No objects KIND:NAMESPACE:NAME (several: repeat)
    #[arg(long, value_name = "SELECTOR")]
    ignore: Vec<ObjectSelector>,
    /// Objects on the left that have another name on the right: FROM->TO (several: repeat)
    #[arg(long, value_name = "FROM->TO", value_parser = DiffOptions::parse_rename)]
    rename: Vec<(ObjectSelector, ObjectSelector)>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    charts: ChartFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    compare(args).map_err(|error| error.unless_quiet_exit(2))
}

fn compare(args: &Args) -> Result<(), CliError> {
    let options = DiffOptions {
        select: args.select.clone(),
        ignore: args.ignore.clone(),
        rename: args.rename.clone(),
    };
    let left = read(&args.left, &args.charts)?;
    let found = match &args.right {
        Some(right) => compare_object_sets(&left, &read(right, &args.charts)?, &options),
        None => block_on(compare_live(args, &left, &options))?,
    };
    match args.output {
        Output::Text => print_styled(&text(&found))?,
        output => print_styled(&output.format(&report(&found))?)?,
    }
    if found.is_empty() {
        Ok(())
    } else {
        Err(CliError::new(Kind::WouldChange, ""))
    }
}

/// Compares the live objects with what the server would store.
async fn compare_live(
    args: &Args,
    left: &[Object],
    options: &DiffOptions,
) -> Result<Vec<ObjectDifference>, CliError> {
    let installer = Installer::new(args.cluster.client().await?, Duration::ZERO);
    let (mut live, mut applied) = (Vec::new(), Vec::new());
    for preview in installer.compare_with_live(left).await? {
        live.extend(preview.before.as_ref().and_then(stored));
        applied.extend(stored(&preview.after));
    }
    Ok(compare_object_sets(&live, &applied, options))
}

/// Returns an object without the fields that the server sets.
fn stored(object: &serde_json::Value) -> Option<Object> {
    let mut object = object.clone();
    object.as_object_mut()?.remove("status");
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    for field in [
        "managedFields",
        "resourceVersion",
        "generation",
        "uid",
        "creationTimestamp",
    ] {
        metadata.remove(field);
    }
    let budget = mainstay_yaml::Budget::default();
    mainstay_yaml::parse_json(object.to_string(), mainstay_yaml::Numbers::Exact, &budget)
        .ok()
        .map(Object)
}

/// Reads all objects of a file, or of all YAML files below a directory.
fn read(path: &Path, charts: &ChartFlags) -> Result<Vec<Object>, CliError> {
    let failed =
        |error: std::io::Error| CliError::new(Kind::Io, format!("cannot read {}: {error}", path.display()));
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_dir() {
        return read_file(path, metadata.len(), charts);
    }
    let mut entries: Vec<PathBuf> = fs::read_dir(path)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(failed)?;
    entries.sort();
    let is_yaml =
        |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|it| it == "yaml" || it == "yml");
    let mut objects = Vec::new();
    for entry in entries.iter().filter(|path| is_yaml(path)) {
        objects.extend(read(entry, charts)?);
    }
    Ok(objects)
}

/// Reads at most [`MAX_BYTES`] bytes; more are an error.
fn read_limited(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("larger than {MAX_BYTES} bytes")));
    }
    Ok(bytes)
}

fn read_file(path: &Path, size: u64, charts: &ChartFlags) -> Result<Vec<Object>, CliError> {
    let failed = |text: String| CliError::new(Kind::Io, format!("cannot read {}: {text}", path.display()));
    if size > MAX_BYTES {
        return Err(failed(format!("larger than {MAX_BYTES} bytes")));
    }
    // A device has no size.
    let bytes = read_limited(path).map_err(|error| failed(error.to_string()))?;
    let objects = parse_manifest(&bytes).map_err(|error| failed(error.to_string()))?;
    if objects.iter().any(|object| object.kind() == "IstioOperator") {
        return charts.generate_file(&path.to_string_lossy(), bytes);
    }
    Ok(objects)
}

fn text(found: &[ObjectDifference]) -> String {
    let mut out = String::new();
    for one in found {
        let _ = match &one.change {
            ChangedObject::Removed => writeln!(out, "{ERROR}- {}{ERROR:#}", one.id),
            ChangedObject::Added => writeln!(out, "{GOOD}+ {}{GOOD:#}", one.id),
            ChangedObject::Fields(fields) => {
                let _ = writeln!(out, "{FRAME}~ {}{FRAME:#}", one.id);
                fields
                    .iter()
                    .try_for_each(|field| writeln!(out, "    {}", line(field)))
            }
        };
    }
    let _ = match found.len() {
        0 => writeln!(out, "No differences found"),
        1 => writeln!(out, "1 object differs"),
        count => writeln!(out, "{count} objects differ"),
    };
    out
}

/// `path: old -> new`, with `ADDED` and `REMOVED` for a value on one side.
fn line(field: &FieldDifference) -> String {
    let show = |value: &Value| to_json(value).unwrap_or_default();
    match (&field.left, &field.right) {
        (Some(left), Some(right)) => format!("{}: {} -> {}", field.path, show(left), show(right)),
        (None, Some(right)) => format!("{}: {} (ADDED)", field.path, show(right)),
        (Some(left), None) => format!("{}: {} (REMOVED)", field.path, show(left)),
        (None, None) => field.path.clone(),
    }
}

fn report(found: &[ObjectDifference]) -> serde_json::Value {
    let value = |value: &Option<Value>| -> serde_json::Value {
        let text = value.as_ref().and_then(|value| to_json(value).ok());
        text.and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    };
    let row = |one: &ObjectDifference| match &one.change {
        ChangedObject::Removed => json!({"object": one.id, "change": "Removed"}),
        ChangedObject::Added => json!({"object": one.id, "change": "Added"}),
        ChangedObject::Fields(fields) => {
            let fields = fields.iter().map(
                |field| json!({"path": field.path, "left": value(&field.left), "right": value(&field.right)}),
            );
            json!({"object": one.id, "change": "Changed", "fields": fields.collect::<Vec<_>>()})
        }
    };
    found.iter().map(row).collect()
}
