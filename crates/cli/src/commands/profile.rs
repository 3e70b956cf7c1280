//! `mainstay profile`: lists, prints and compares configuration profiles.

use std::fmt::Write as _;

use clap::Subcommand;
use mainstay_manifest::{Path, configuration, select};
use mainstay_yaml::{Value, to_json, to_json_pretty, to_yaml_v2};
use similar::TextDiff;

use super::manifest::inputs::InputFlags;
use super::print;
use crate::error::{CliError, Kind};

/// Arguments of `profile`.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "Examples:
  mainstay profile list
  mainstay profile dump demo
  mainstay profile diff default demo")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List profiles
    List(Box<ListArgs>),
    /// Print a profile, merged with files and settings
    Dump(Box<DumpArgs>),
    /// Compare two profiles
    Diff(Box<DiffArgs>),
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay profile list
  mainstay profile list --istio-version 1.28.2")]
struct ListArgs {
    #[command(flatten)]
    inputs: InputFlags,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay profile dump demo
  mainstay profile dump --config-path components.pilot
  mainstay profile dump -f mesh.yaml -o flags")]
struct DumpArgs {
    /// Profile (default: that of the files, or `default`)
    #[arg(value_name = "PROFILE")]
    name: Option<String>,
    /// Print only the part of spec at this path
    #[arg(short = 'p', long, value_name = "PATH")]
    config_path: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
    #[command(flatten)]
    inputs: InputFlags,
}

#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay profile diff default demo

Exit codes: 0 if the profiles are equal, 1 if they differ.")]
struct DiffArgs {
    /// First profile
    first: String,
    /// Second profile
    second: String,
    #[command(flatten)]
    inputs: InputFlags,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Yaml,
    Json,
    /// One --set expression per line
    Flags,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::List(args) => list(args),
        Command::Dump(args) => dump(args),
        Command::Diff(args) => diff(args),
    }
}

fn list(args: &ListArgs) -> Result<(), CliError> {
    let names = args
        .inputs
        .with_request(|request| Ok(request.profiles.profile_names()))?;
    let names = names.map_err(|error| CliError::new(Kind::Chart, crate::error::chain(&error)))?;
    print(format!("{}\n", names.join("\n")).as_bytes())
}

/// Returns the merged configuration of a profile.
fn merged(inputs: &InputFlags, profile: Option<&str>) -> Result<Value, CliError> {
    let found = inputs.with_request(|request| {
        let mut request = request.clone();
        let named = profile.map(|name| format!("profile={name}"));
        request.sets.extend(named);
        configuration(&request)
    });
    Ok(Value::Map(found?))
}

fn dump(args: &DumpArgs) -> Result<(), CliError> {
    let mut value = merged(&args.inputs, args.name.as_deref())?;
    if let Some(text) = &args.config_path {
        let path =
            Path::parse(text).map_err(|error| CliError::new(Kind::Usage, format!("{text}: {error}")))?;
        let spec = value.get("spec").unwrap_or(&Value::Null);
        let missing = || CliError::new(Kind::Config, format!("{text} is not set in this profile"));
        value = select(spec, &path).ok_or_else(missing)?.clone();
    }
    let text = match args.output {
        Format::Yaml => to_yaml_v2(&value).map_err(|error| unwritable(&error))?,
        Format::Json => format!(
            "{}\n",
            to_json_pretty(&value).map_err(|error| unwritable(&error))?
        ),
        Format::Flags => {
            let root = if args.config_path.is_some() {
                &value
            } else {
                value.get("spec").unwrap_or(&value)
            };
            let mut lines = String::new();
            flags(root, &Path::default(), &mut lines)?;
            lines
        }
    };
    print(text.as_bytes())
}

/// Writes one line per leaf.
fn flags(value: &Value, path: &Path, out: &mut String) -> Result<(), CliError> {
    match value {
        Value::Map(map) if !map.is_empty() => map
            .iter()
            .try_for_each(|(key, value)| flags(value, &path.key(key), out)),
        Value::List(items) if !items.is_empty() => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, value)| flags(value, &path.index(index), out))
        }
        leaf => {
            let text = match leaf {
                Value::String(text) => text.clone(),
                other => to_json(other).map_err(|error| unwritable(&error))?,
            };
            let _ = writeln!(out, "{path}={text}");
            Ok(())
        }
    }
}

fn diff(args: &DiffArgs) -> Result<(), CliError> {
    let text = |name: &str| {
        let mut value = merged(&args.inputs, Some(name))?;
        if let Some(spec) = value
            .as_map_mut()
            .and_then(|map| map.get_mut("spec")?.as_map_mut())
        {
            spec.remove("profile");
        }
        to_yaml_v2(&value).map_err(|error| unwritable(&error))
    };
    let (first, second) = (text(&args.first)?, text(&args.second)?);
    if first == second {
        return print(b"The profiles are equal\n");
    }
    let diff = TextDiff::from_lines(&first, &second);
    let mut unified = diff.unified_diff();
    let unified = unified.header(&args.first, &args.second);
    print(unified.to_string().as_bytes())?;
    Err(CliError::new(Kind::WouldChange, ""))
}

fn unwritable(error: &mainstay_yaml::Error) -> CliError {
    CliError::new(Kind::Manifest, error.to_string())
}
