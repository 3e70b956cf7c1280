//! `values.schema.json`: takes a chart and its values, gives every complaint in the words and layout of Helm, whose
//! validator is `santhosh-tekuri/jsonschema`. Drafts 4 to 2020-12. Nothing outside the schema is ever read.

mod check;
mod compile;
mod document;
mod draft;
mod format;
mod meta;
mod node;
mod number;
mod outcome;
mod url;

use std::fmt::Write;

use mainstay_template::Map;
use mainstay_yaml::{Budget, Error, Map as PlainMap, Numbers, Problem, Value, parse_json};

use crate::chart::Chart;
use crate::error::ChartError;
use crate::go;
use crate::tree::own_map;
use crate::warning::Warning;
use check::check;
use compile::compile;
use outcome::Failure;

/// Where Helm pretends the schema is.
const LOCATION: &str = "file:///values.schema.json";
/// How deep a schema may be nested.
const MAX_DEPTH: usize = 200;

/// Checks the values of `chart` and of every subchart against their schemas.
pub(crate) fn validate_values(
    chart: &Chart,
    values: &Map,
    warnings: &mut Vec<Warning>,
) -> Result<(), ChartError> {
    if !has_schema(chart) {
        return Ok(());
    }
    let mut complaints = String::new();
    validate_chart(chart, own_map(values), &mut complaints, warnings);
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(ChartError::Schema(complaints))
    }
}

fn has_schema(chart: &Chart) -> bool {
    chart.schema.is_some() || chart.dependencies.iter().any(has_schema)
}

fn validate_chart(chart: &Chart, values: PlainMap, complaints: &mut String, warnings: &mut Vec<Warning>) {
    let values = Value::Map(values);
    if let Some(schema) = &chart.schema
        && let Err(text) = validate(schema, &values, warnings)
    {
        complaints.push_str(chart.name());
        complaints.push_str(":\n");
        complaints.push_str(&text);
    }
    let Value::Map(mut values) = values else { return };
    for sub in &chart.dependencies {
        match values.remove(sub.name()) {
            None | Some(Value::Null) => {}
            Some(Value::Map(values)) => validate_chart(sub, values, complaints, warnings),
            Some(other) => {
                let found = go::type_name(&other);
                let name = sub.name();
                // Writing to a string cannot fail.
                let _ = write!(
                    complaints,
                    "{name}:\ninvalid type for values: expected object (map), got {found}\n"
                );
            }
        }
    }
}

/// Checks one tree against one schema. The error is Helm's text, which ends in a line break if the values are at fault
/// and does not if the schema is.
fn validate(schema: &[u8], values: &Value, warnings: &mut Vec<Warning>) -> Result<(), String> {
    let schema = parse(schema)?;
    let compiled = compile(schema, warnings)?;
    match check(&compiled, compiled.root, values) {
        Ok(()) => Ok(()),
        Err(check::Refusal::Invalid(failure)) => Err(lines(&failure) + "\n"),
        Err(check::Refusal::Exhausted) => Err("schema takes too many steps to check".into()),
    }
}

/// What went wrong, one line per complaint.
fn lines(failure: &Failure) -> String {
    failure.report(1).trim_start_matches('\n').to_owned()
}

fn parse(text: &[u8]) -> Result<Value, String> {
    let budget = Budget {
        depth: MAX_DEPTH,
        ..Budget::default()
    };
    parse_json(text, Numbers::Exact, &budget).map_err(|error| decoder_words(text, &error))
}

/// Helm reads schemas with a streaming decoder, which words three mistakes in its own way.
fn decoder_words(text: &[u8], error: &Error) -> String {
    match &error.problem {
        Problem::Json { .. } if text.trim_ascii().is_empty() => "EOF".into(),
        Problem::Json { problem } if problem == "unexpected end of JSON input" => "unexpected EOF".into(),
        Problem::Json { problem } if problem.ends_with("after top-level value") => {
            "invalid character after top-level value".into()
        }
        _ => error.to_string(),
    }
}
