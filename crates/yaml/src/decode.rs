//! Decoding of YAML text into a tree, as in `sigs.k8s.io/yaml`: first with go-yaml v2, then through JSON.

mod binary;
mod compare;
mod scalar;
mod typed;
mod value;

use crate::read::{Source, Tree, compose};
use crate::{Budget, Error, Map, Numbers, Operation, Position, Problem, Value};

/// Options of a parse.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Types of numbers.
    pub numbers: Numbers,
    /// Whether a repeated key is an error, as in `UnmarshalStrict`. Otherwise the last of equal keys takes
    /// precedence.
    pub strict: bool,
    /// Limits of the parse.
    pub budget: Budget,
}

/// Parses the first document of `text` as `yaml.Unmarshal` into an `interface{}` does. Every number is a
/// float.
pub fn parse(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Value, Error> {
    let options = Options {
        budget: *budget,
        ..Options::default()
    };
    parse_with(text, &options)
}

/// Parses the first document of `text` with `options`.
pub fn parse_with(text: impl AsRef<[u8]>, options: &Options) -> Result<Value, Error> {
    decode(text.as_ref(), options).map_err(|error| error.during(Operation::YamlToJson))
}

fn decode(text: &[u8], options: &Options) -> Result<Value, Error> {
    let source = Source::new(text, &options.budget)?;
    let trees = compose(&source, &options.budget, false)?;
    match trees.first() {
        Some(tree) => value::decode(tree, source.skipped, options),
        None => Ok(Value::Null),
    }
}

/// Reports whether the first document of `text` parses as `value` with `options`. Returns `false` if it
/// does not parse.
#[must_use]
pub fn reads_as(text: impl AsRef<[u8]>, value: &Value, options: &Options) -> bool {
    let Ok(source) = Source::new(text.as_ref(), &options.budget) else {
        return false;
    };
    let Ok(trees) = compose(&source, &options.budget, false) else {
        return false;
    };
    let Some(tree) = trees.first().filter(|tree| !tree.nodes.is_empty()) else {
        return value.is_null();
    };
    let plain = options.numbers == Numbers::Exact && !options.strict;
    let quick = plain.then(|| compare::node_matches(tree, 0, value)).flatten();
    quick.unwrap_or_else(|| value::decode(tree, source.skipped, options).is_ok_and(|found| found == *value))
}

/// Decodes one composed document. `skipped` is the number of bytes before its text.
pub(crate) fn tree_value(tree: &Tree<'_>, skipped: usize, options: &Options) -> Result<Value, Error> {
    value::decode(tree, skipped, options)
}

/// Parses the first document of `text`, which must be a map, as `yaml.Unmarshal` into a
/// `map[string]interface{}` does. An empty document or `null` is an empty map.
pub fn parse_map(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Map, Error> {
    into_map(parse(text, budget)?).map_err(|error| error.during(Operation::JsonToValue))
}

/// Parses the first document of `text`, which must be a list, as `yaml.Unmarshal` into a `[]interface{}`
/// does. An empty document or `null` is an empty list.
pub fn parse_list(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Value>, Error> {
    into_list(parse(text, budget)?).map_err(|error| error.during(Operation::JsonToValue))
}

/// Converts a root that must be a map, as Go's JSON decoder does.
pub(crate) fn into_map(value: Value) -> Result<Map, Error> {
    match value {
        Value::Map(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        other => Err(kind_error(&other, "map[string]interface {}")),
    }
}

/// Converts a root that must be a list, as Go's JSON decoder does.
pub(crate) fn into_list(value: Value) -> Result<Vec<Value>, Error> {
    match value {
        Value::List(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        other => Err(kind_error(&other, "[]interface {}")),
    }
}

fn kind_error(found: &Value, wanted: &'static str) -> Error {
    let found = found.json_kind().into();
    Problem::Kind { found, wanted }.at(Position::start())
}
