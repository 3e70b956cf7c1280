//! `mainstay charts list`: lists the versions of the catalog.

use mainstay_catalog::{Catalog, Installable, VersionState};
use mainstay_yaml::{Map, Value};

use crate::catalog::ChartsFlag;
use crate::commands::print;
use crate::error::{CliError, Kind};
use crate::ui::table;

/// Arguments of `charts list`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  mainstay charts list
  mainstay charts list --all -o json")]
pub(crate) struct Args {
    /// Also list versions that must be pulled or are end of life
    #[arg(long)]
    all: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table, value_name = "FORMAT")]
    output: Output,

    #[command(flatten)]
    charts: ChartsFlag,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Output {
    /// Table
    #[value(alias = "text")]
    Table,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), CliError> {
    let catalog = args.charts.open()?;
    let rows = rows(&catalog, args.all);
    if rows.is_empty() {
        // The error explains what to do; an empty table would not.
        catalog.default_version()?;
    }
    match args.output {
        Output::Table => print(text(&rows).as_bytes()),
        Output::Json => print_json(&json(&rows)),
        Output::Yaml => print_yaml(&json(&rows)),
    }
}

/// A version.
struct Row {
    version: String,
    state: &'static str,
    origin: &'static str,
    aliases: Vec<String>,
    /// Aliases that resolve to the version once it is pulled.
    after_pull: Vec<String>,
    default: bool,
}

impl From<Installable> for Row {
    fn from(one: Installable) -> Self {
        Self {
            version: one.version.to_string(),
            state: "installable",
            origin: one.origin.name(),
            aliases: one.aliases,
            after_pull: Vec::new(),
            default: one.default,
        }
    }
}

fn rows(catalog: &Catalog, all: bool) -> Vec<Row> {
    let here = catalog.installable();
    let others = catalog.names().iter().filter_map(|name| {
        let (state, change) = match &name.state {
            VersionState::Pinned(version) | VersionState::Known(version)
                if here.iter().all(|one| one.version != *version) =>
            {
                ("not pulled", catalog.alias_change(version))
            }
            VersionState::EndOfLife => ("end of life", None),
            _ => return None,
        };
        let version = name.name.trim_start_matches('v').to_owned();
        Some(Row {
            version,
            state,
            origin: "",
            aliases: Vec::new(),
            after_pull: change.into_iter().map(|change| change.alias).collect(),
            default: false,
        })
    });
    let others: Vec<Row> = if all { others.collect() } else { Vec::new() };
    here.into_iter().map(Row::from).chain(others).collect()
}

fn text(rows: &[Row]) -> String {
    let cells = |row: &Row| {
        let default = if row.default { " (default)" } else { "" };
        vec![
            format!("{}{default}", row.version),
            row.state.to_owned(),
            row.origin.to_owned(),
            aliases(row),
        ]
    };
    let head = ["VERSION", "STATE", "ORIGIN", "ALIASES"]
        .map(ToOwned::to_owned)
        .to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    table::lines("", &rows)
}

fn aliases(row: &Row) -> String {
    let after = row.after_pull.iter().map(|alias| format!("{alias} after a pull"));
    row.aliases
        .iter()
        .cloned()
        .chain(after)
        .collect::<Vec<_>>()
        .join(", ")
}

fn print_yaml(value: &Value) -> Result<(), CliError> {
    let text = mainstay_yaml::to_yaml_v2(value);
    let text = text.map_err(|error| CliError::new(Kind::Io, format!("cannot print: {error}")))?;
    print(text.as_bytes())
}

fn print_json(value: &Value) -> Result<(), CliError> {
    let text =
        mainstay_yaml::to_json_pretty(value).map_err(|error| CliError::new(Kind::Io, error.to_string()))?;
    print(format!("{text}\n").as_bytes())
}

fn json(rows: &[Row]) -> Value {
    let text = |text: &str| Value::String(text.to_owned());
    let list = |texts: &[String]| Value::List(texts.iter().map(|one| text(one)).collect());
    let item = |row: &Row| {
        Value::Map(Map::from([
            ("version".to_owned(), text(&row.version)),
            ("state".to_owned(), text(row.state)),
            ("origin".to_owned(), text(row.origin)),
            ("aliases".to_owned(), list(&row.aliases)),
            ("aliasesAfterPull".to_owned(), list(&row.after_pull)),
            ("default".to_owned(), Value::Bool(row.default)),
        ]))
    };
    Value::List(rows.iter().map(item).collect())
}
