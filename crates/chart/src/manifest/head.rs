//! Decoding of the head of a manifest: the fields that determine its position. Type errors have the
//! messages of Go's JSON decoder, because users see them.

use std::collections::BTreeMap;

use mainstay_yaml::{Map, Numbers, Options, Position, Value};

use crate::budget::budget;
use crate::dialect::Dialect;
use crate::error::{ChartError, SourceLocation};

/// Head of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
}

/// Error of decoding the head of a document.
#[derive(Debug)]
pub(super) struct HeadError {
    text: String,
    at: Option<Position>,
}

impl HeadError {
    /// Adds the template's path, and converts the position in the document to a position in the template's
    /// whole output.
    pub(super) fn in_file(self, path: &str, whole: &[u8], document: &[u8]) -> ChartError {
        let before = (document.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
        let lines = memchr::memchr_iter(b'\n', whole.get(..before).unwrap_or_default()).count();
        let location = self.at.filter(|at| at.line > 0).map(|at| {
            let source = whole.split(|byte| *byte == b'\n').nth(at.line + lines - 1);
            Box::new(SourceLocation {
                file: format!("{path} (rendered)"),
                line: (at.line + lines) as u32,
                column: Some(at.column as u32),
                source: source.map(|source| String::from_utf8_lossy(source).into_owned()),
            })
        });
        ChartError::Manifest {
            path: path.to_owned(),
            problem: self.text,
            location,
            rendered: Vec::new(),
        }
    }
}

impl Head {
    pub(super) fn parse(document: &[u8], dialect: Dialect) -> Result<Self, HeadError> {
        let options = Options {
            numbers: Numbers::Exact,
            strict: false,
            budget: budget(),
        };
        let wanted = |key: &str| match_field(key, FIELDS).is_some();
        let value = mainstay_yaml::parse_entries(document, wanted, &options).map_err(|error| HeadError {
            text: error.to_string(),
            at: Some(error.at),
        })?;
        let mut head = Self::default();
        match value {
            Value::Null => Ok(head),
            Value::Map(map) => head.fill(&map).map(|()| head),
            other => Err(mismatch(
                other.json_kind(),
                &format!("value of type {}", dialect.head_type()),
            )),
        }
    }

    fn fill(&mut self, map: &Map) -> Result<(), HeadError> {
        let mut first = None;
        for (key, value) in map {
            let result = match match_field(key, FIELDS) {
                Some("apiVersion") => decode_string(value, &mut self.api_version, "SimpleHead.apiVersion"),
                Some("kind") => decode_string(value, &mut self.kind, "SimpleHead.kind"),
                Some(_) => self.fill_metadata(value),
                None => Ok(()),
            };
            first = first.or(result.err());
        }
        first.map_or(Ok(()), Err)
    }

    fn fill_metadata(&mut self, value: &Value) -> Result<(), HeadError> {
        let map = match value {
            Value::Null => {
                self.name.clear();
                self.annotations.clear();
                return Ok(());
            }
            Value::Map(map) => map,
            other => return Err(mismatch(other.json_kind(), METADATA)),
        };
        let mut first = None;
        for (key, value) in map {
            let result = match match_field(key, &["annotations", "name"]) {
                Some("annotations") => self.fill_annotations(value),
                Some(_) => decode_string(value, &mut self.name, ".metadata.name"),
                None => Ok(()),
            };
            first = first.or(result.err());
        }
        first.map_or(Ok(()), Err)
    }

    fn fill_annotations(&mut self, value: &Value) -> Result<(), HeadError> {
        let map = match value {
            Value::Null => {
                self.annotations.clear();
                return Ok(());
            }
            Value::Map(map) => map,
            other => {
                return Err(mismatch(
                    other.json_kind(),
                    "struct field .metadata.annotations of type map[string]string",
                ));
            }
        };
        let mut first = None;
        for (key, value) in map {
            let mut text = String::new();
            first = first.or(decode_string(value, &mut text, ".metadata.annotations").err());
            self.annotations.insert(key.clone(), text);
        }
        first.map_or(Ok(()), Err)
    }
}

/// Fields of a head.
const FIELDS: &[&str] = &["apiVersion", "kind", "metadata"];

const METADATA: &str = "struct field SimpleHead.metadata of type struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }";

/// Returns the field that Go's JSON decoder matches to `key`, ignoring case.
fn match_field(key: &str, fields: &[&'static str]) -> Option<&'static str> {
    fields
        .iter()
        .find(|field| field.eq_ignore_ascii_case(key))
        .copied()
}

/// Decodes a scalar into a string. Numbers and booleans are converted; null leaves `text` unchanged.
fn decode_string(value: &Value, text: &mut String, field: &str) -> Result<(), HeadError> {
    *text = match value {
        Value::Null => return Ok(()),
        Value::String(value) => value.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Float(value) => mainstay_gostd::float::format_float32(*value),
        other => {
            return Err(mismatch(
                other.json_kind(),
                &format!("struct field {field} of type string"),
            ));
        }
    };
    Ok(())
}

fn mismatch(found: &str, into: &str) -> HeadError {
    HeadError {
        text: format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go {into}"
        ),
        at: None,
    }
}
