//! `mainstay manifest generate`: prints the objects of an installation.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use mainstay_cluster::install::read_cluster_facts;
use mainstay_manifest::{ComponentName, ComponentObjects, Object, Rendered, compare_objects};
use mainstay_yaml::{Map, Value, to_json_pretty, to_yaml_v2};

use super::inputs::{ClusterDefaults, InputFlags};
use crate::commands::print;
use crate::error::{CliError, Kind};
use crate::kubeconfig::{ClusterFlags, block_on};

/// Arguments of `manifest generate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay manifest generate
  mainstay manifest generate --profile demo --set meshConfig.accessLogFile=/dev/stdout
  mainstay manifest generate -f mesh.yaml -f production.yaml --revision canary
  mainstay manifest generate -f mesh.yaml -o dir --output-dir out
  mainstay manifest generate -f mesh.yaml --component Pilot,Cni
  mainstay manifest generate -f mesh.yaml --cluster-specific --context prod
  mainstay manifest generate --set 'components.ingressGateways.[name:istio-ingressgateway].enabled=false'
  cat mesh.yaml | mainstay manifest generate -f - | kubectl diff -f -

Paths of --set: `\\.` is a dot in a key, [N] an index, [key:value] an item. Values: numbers, true, false,
{a,b}, JSON, or text.")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: InputFlags,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Yaml)]
    output: Output,
    /// Directory for `-o dir`; one file per component, nested by dependency
    #[arg(long, value_name = "DIR", required_if_eq("output", "dir"))]
    output_dir: Option<PathBuf>,
    /// Only the objects of this component (several: repeat, or separate by commas)
    #[arg(long, value_name = "NAME", value_delimiter = ',', ignore_case = true, value_parser = component_parser())]
    component: Vec<ComponentName>,
    /// Detect the platform and the Kubernetes version of a cluster, as `install` does
    #[arg(long)]
    cluster_specific: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// Documents in order of installation
    Yaml,
    /// One list
    Json,
    /// Files in --output-dir
    Dir,
}

/// Error of `--component`.
#[derive(Debug, thiserror::Error)]
#[error("no such component")]
struct UnknownComponent;

/// Returns a parser for the names of components in the API, in any case.
fn component_parser() -> impl TypedValueParser<Value = ComponentName> {
    let names = ComponentName::ALL.map(ComponentName::name);
    PossibleValuesParser::new(names).try_map(|text| {
        let mut all = ComponentName::ALL.into_iter();
        let found = all.find(|one| one.name().eq_ignore_ascii_case(&text));
        found.ok_or(UnknownComponent)
    })
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let mut rendered = args.inputs.generate(&cluster_defaults(args)?)?;
    select_components(&args.component, &mut rendered)?;
    match (args.output, &args.output_dir) {
        (Output::Dir, Some(directory)) => write_directory(directory, &rendered),
        (Output::Json, _) => print(json(&rendered)?.as_bytes()),
        _ => print(yaml(rendered.sorted_objects())?.as_bytes()),
    }
}

/// Returns what `--cluster-specific` detects.
fn cluster_defaults(args: &Args) -> Result<ClusterDefaults, CliError> {
    if !args.cluster_specific {
        if args.cluster.is_empty() {
            return Ok(ClusterDefaults::default());
        }
        let message = "flags that select a cluster require --cluster-specific";
        return Err(CliError::new(Kind::Usage, message).hint("add --cluster-specific, or remove these flags"));
    }
    block_on(async {
        let facts = read_cluster_facts(&args.cluster.client().await?).await?;
        Ok(ClusterDefaults {
            kube_version: facts.kube_version,
            stored: None,
        })
    })
}

/// Removes other components than the selected ones; selected components that are not enabled are an error.
fn select_components(selected: &[ComponentName], rendered: &mut Rendered) -> Result<(), CliError> {
    let is_enabled = |name: &&ComponentName| rendered.components.iter().any(|one| one.component == **name);
    if let Some(missing) = selected.iter().find(|name| !is_enabled(name)) {
        let message = format!("component {} is not enabled", missing.name());
        return Err(CliError::new(Kind::Usage, message)
            .hint("enable it in the configuration, or select another one with --component"));
    }
    let is_selected = |one: &ComponentObjects| selected.is_empty() || selected.contains(&one.component);
    rendered.components.retain(is_selected);
    Ok(())
}

fn yaml<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Result<String, CliError> {
    let mut text = String::new();
    for object in objects {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(
            to_yaml_v2(&object.0)
                .map_err(|error| unwritable(&error))?
                .trim_end(),
        );
        text.push('\n');
    }
    Ok(text)
}

fn json(rendered: &Rendered) -> Result<String, CliError> {
    let items = rendered
        .sorted_objects()
        .into_iter()
        .map(|object| object.0.clone());
    let list = Value::Map(Map::from([
        ("apiVersion".to_owned(), "v1".into()),
        ("kind".to_owned(), "List".into()),
        ("items".to_owned(), Value::List(items.collect())),
    ]));
    let text = to_json_pretty(&list).map_err(|error| unwritable(&error))?;
    Ok(format!("{}\n", text.trim_end()))
}

fn unwritable(error: &mainstay_yaml::Error) -> CliError {
    CliError::new(Kind::Manifest, crate::error::chain(error))
}

/// Writes `Base/Base.yaml`, `Base/Pilot/Pilot.yaml` and so on.
fn write_directory(top: &Path, rendered: &Rendered) -> Result<(), CliError> {
    let mut report = String::new();
    for component in &rendered.components {
        let path = top.join(component_path(component.component));
        let text = yaml(sorted(component))?;
        let failed = |error: std::io::Error| {
            CliError::new(Kind::Io, format!("cannot write {}: {error}", path.display()))
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        fs::write(&path, text).map_err(failed)?;
        let _ = writeln!(report, "wrote {}", path.display());
    }
    print(report.as_bytes())
}

fn sorted(component: &ComponentObjects) -> Vec<&Object> {
    let mut objects: Vec<&Object> = component.objects.iter().collect();
    objects.sort_by(|a, b| compare_objects(a, b));
    objects
}

fn component_path(component: ComponentName) -> PathBuf {
    let parents = std::iter::successors(Some(component), |one| one.depends_on());
    let mut names: Vec<&str> = parents.map(ComponentName::name).collect();
    names.reverse();
    let mut path: PathBuf = names.iter().collect();
    path.push(format!("{}.yaml", component.name()));
    path
}
