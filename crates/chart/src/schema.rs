//! Validation of values against `values.schema.json`, with the messages and layout of Helm, whose validator
//! is `santhosh-tekuri/jsonschema`. Supports drafts 4 to 2020-12. Does not read documents outside of the
//! schema.

mod check;
mod compile;
mod document;
mod draft;
mod error;
mod format;
mod meta;
mod node;
mod number;
mod outcome;
mod url;

use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;

use mainstay_template::Map;
use mainstay_yaml::{Budget, Error, Map as PlainMap, Numbers, Problem, Value, parse_json};

use crate::chart::Chart;
use crate::error::ChartError;
use crate::go;
use crate::tree::to_plain_map;
use crate::warning::Warning;
use check::check;
use compile::{Metaschemas, compile};
use error::SchemaError;
use node::Compiled;
use outcome::Failure;

/// URL that Helm assigns to the schema.
const LOCATION: &str = "file:///values.schema.json";
/// Maximum nesting of a schema.
const MAX_DEPTH: usize = 200;

/// Validates the values of `chart` and of every subchart against their schemas.
pub(crate) fn validate_values(
    chart: &Chart,
    values: &Map,
    warnings: &mut Vec<Warning>,
) -> Result<(), ChartError> {
    if !has_schema(chart) {
        return Ok(());
    }
    let mut validation = Validation {
        violations: String::new(),
        warnings,
        metaschemas: Metaschemas::default(),
        compiled: Vec::new(),
    };
    validation.validate_chart(chart, to_plain_map(values));
    if validation.violations.is_empty() {
        Ok(())
    } else {
        Err(ChartError::Schema(validation.violations))
    }
}

fn has_schema(chart: &Chart) -> bool {
    chart.schema.is_some() || chart.dependencies.iter().any(has_schema)
}

/// Validation of a chart with its subcharts.
struct Validation<'w> {
    violations: String,
    warnings: &'w mut Vec<Warning>,
    metaschemas: Metaschemas,
    /// Compiled schemas without warnings, with their texts. The instances of a subchart under several
    /// aliases share one schema.
    compiled: Vec<(Arc<[u8]>, Rc<Compiled>)>,
}

impl Validation<'_> {
    fn validate_chart(&mut self, chart: &Chart, values: PlainMap) {
        let values = Value::Map(values);
        if let Some(schema) = &chart.schema
            && let Err(error) = self.validate(schema, &values)
        {
            self.violations.push_str(chart.name());
            self.violations.push_str(":\n");
            self.violations.push_str(&error.to_string());
        }
        let Value::Map(mut values) = values else { return };
        for sub in &chart.dependencies {
            match values.remove(sub.name()) {
                None | Some(Value::Null) => {}
                Some(Value::Map(values)) => self.validate_chart(sub, values),
                Some(other) => {
                    let found = go::type_name(&other);
                    let name = sub.name();
                    // Writing to a string cannot fail.
                    let _ = write!(
                        self.violations,
                        "{name}:\ninvalid type for values: expected object (map), got {found}\n"
                    );
                }
            }
        }
    }

    /// Validates one tree of values against one schema.
    fn validate(&mut self, schema: &Arc<[u8]>, values: &Value) -> Result<(), ValidateError> {
        let compiled = self.compile_cached(schema)?;
        match check(&compiled, compiled.root, values) {
            Ok(()) => Ok(()),
            Err(check::CheckError::Invalid(failure)) => Err(ValidateError::Values(failure)),
            Err(check::CheckError::TooManySteps) => Err(SchemaError::TooManySteps.into()),
        }
    }

    fn compile_cached(&mut self, schema: &Arc<[u8]>) -> Result<Rc<Compiled>, SchemaError> {
        if let Some((_, known)) = self.compiled.iter().find(|(text, _)| text == schema) {
            return Ok(Rc::clone(known));
        }
        let before = self.warnings.len();
        let compiled = Rc::new(compile(parse(schema)?, &mut self.metaschemas, self.warnings)?);
        if self.warnings.len() == before {
            self.compiled.push((Arc::clone(schema), Rc::clone(&compiled)));
        }
        Ok(compiled)
    }
}

/// Reason why values are rejected. Helm's text ends with a line break for invalid values, but not for an
/// invalid schema.
#[derive(Debug, thiserror::Error)]
enum ValidateError {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("{}\n", format_lines(.0))]
    Values(Failure),
}

/// Formats a failure with one violation per line.
fn format_lines(failure: &Failure) -> String {
    failure.report(1).trim_start_matches('\n').to_owned()
}

fn parse(text: &[u8]) -> Result<Value, SchemaError> {
    let budget = Budget {
        depth: MAX_DEPTH,
        ..crate::budget::budget()
    };
    parse_json(text, Numbers::Exact, &budget)
        .map_err(|error| SchemaError::Json(decoder_message(text, &error)))
}

/// Returns the message of Go's streaming decoder, which differs from that of the regular decoder for three
/// errors.
fn decoder_message(text: &[u8], error: &Error) -> String {
    match &error.problem {
        Problem::Json { .. } if text.trim_ascii().is_empty() => "EOF".into(),
        Problem::Json { problem } if problem == "unexpected end of JSON input" => "unexpected EOF".into(),
        Problem::Json { problem } if problem.ends_with("after top-level value") => {
            "invalid character after top-level value".into()
        }
        _ => error.to_string(),
    }
}
