//! `mainstay manifest generate`: prints the objects of an installation.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use mainstay_manifest::{ComponentName, ComponentObjects, Object, Rendered, compare_objects};
use mainstay_yaml::{Map, Value, to_json_pretty, to_yaml_v2};

use super::inputs::InputFlags;
use crate::commands::print;
use crate::error::{CliError, Kind};

/// Arguments of `manifest generate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay manifest generate
  mainstay manifest generate --profile demo --set meshConfig.accessLogFile=/dev/stdout
  mainstay manifest generate -f mesh.yaml -f production.yaml --revision canary
  mainstay manifest generate -f mesh.yaml -o dir --output-dir out
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

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let rendered = args.inputs.generate()?;
    match (args.output, &args.output_dir) {
        (Output::Dir, Some(directory)) => write_directory(directory, &rendered),
        (Output::Json, _) => print(json(&rendered)?.as_bytes()),
        _ => print(yaml(rendered.sorted_objects())?.as_bytes()),
    }
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
