//! `--set PATH=VALUE`: parses an expression and writes it into a tree.
//!
//! The path is the text before the first `=` outside brackets. The value is an integer (including `1`), a
//! number, a boolean (`true`, `t`), a list (`{a,b}`), JSON (`["a"]`, `{"a": 1}`), or otherwise a string in
//! which `\,` is a comma. The values of some paths are always strings, so that the tag `1.20` does not
//! become a number.

use mainstay_gostd::number::{parse_float, parse_int};
use mainstay_yaml::{Map, Numbers, Value, parse_json_list, parse_json_map};

use crate::limits::{MAX_SET_BYTES, input_budget};
use crate::path::{Pair, Path, PathError, Segment, describe_kind, scalar_text};

/// Paths of which the value is always a string.
const ALWAYS_STRING: &[&str] = &[
    "compatibilityVersion",
    "hub",
    "revision",
    "tag",
    "values.compatibilityVersion",
    "values.global.tag",
    "values.revision",
];

/// Prefixes of paths of which the value is always a string.
const STRING_MAPS: &[&str] = &[
    "meshConfig.defaultConfig.proxyMetadata.",
    "values.meshConfig.defaultConfig.proxyMetadata.",
];

/// Lists to which a selector may add items, because they are merged with the profile by name.
const NAMED_LISTS: &[&str] = &["components.ingressGateways", "components.egressGateways"];

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct SetExpression {
    /// Path below `spec`.
    pub path: Path,
    /// Parsed value.
    pub value: Value,
}

/// Error of parsing or applying an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The expression contains no `=`.
    #[error("expected PATH=VALUE")]
    NoValue,
    /// The expression is too long.
    #[error("the expression exceeds {MAX_SET_BYTES} bytes")]
    TooLong,
    /// The path is malformed.
    #[error("{0}")]
    Path(#[from] PathError),
    /// A segment of the path requires a map.
    #[error("{path} is {found}, not a map")]
    NotAMap {
        /// Path of the node.
        path: Path,
        /// Kind of the node, with its article.
        found: &'static str,
    },
    /// A segment of the path requires a list.
    #[error("{path} is {found}, not a list")]
    NotAList {
        /// Path of the node.
        path: Path,
        /// Kind of the node, with its article.
        found: &'static str,
    },
    /// No item of the list matches the selector.
    #[error("no item of {path} matches [{selector}]")]
    NoItem {
        /// Path of the list.
        path: Path,
        /// Text of the selector, without brackets.
        selector: String,
        /// Selectors of the existing items.
        candidates: Vec<String>,
    },
}

impl SetError {
    /// Returns the byte offset of the error in the expression.
    #[must_use]
    pub fn offset(&self) -> usize {
        match self {
            Self::Path(error) => error.offset(),
            _ => 0,
        }
    }

    /// Returns a suggested fix.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoValue => Some("write --set PATH=VALUE, for example --set profile=demo".into()),
            Self::NoItem { candidates, .. } => {
                let list: Vec<String> = candidates.iter().map(|one| format!("[{one}]")).collect();
                (!list.is_empty()).then(|| format!("use one of {}", list.join(", ")))
            }
            _ => None,
        }
    }
}

impl SetExpression {
    /// Parses `PATH=VALUE`.
    pub fn parse(text: &str) -> Result<Self, SetError> {
        if text.len() > MAX_SET_BYTES {
            return Err(SetError::TooLong);
        }
        let at = find_equals_sign(text).ok_or(SetError::NoValue)?;
        let (path, value) = (text.get(..at), text.get(at + 1..));
        let (path, value) = (path.unwrap_or_default().trim(), value.unwrap_or_default().trim());
        let path = Path::parse(path)?;
        let value = if is_always_string(&path.to_string()) {
            Value::from(value)
        } else {
            typed_value(value)
        };
        Ok(Self { path, value })
    }

    /// Writes the value below `spec`. Missing maps and lists are created.
    pub fn apply(&self, spec: &mut Value) -> Result<(), SetError> {
        let mut node = spec;
        let mut walked = Path::default();
        for segment in &self.path.0 {
            node = child(node, segment, &walked)?;
            walked.0.push(segment.clone());
        }
        *node = self.value.clone();
        Ok(())
    }
}

/// Returns the offset of the first `=` outside brackets, or otherwise of the first `=`.
fn find_equals_sign(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    let outside = text.char_indices().find(|(_, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        *c == '=' && depth <= 0
    });
    outside.map(|(at, _)| at).or_else(|| text.find('='))
}

fn is_always_string(path: &str) -> bool {
    ALWAYS_STRING.contains(&path) || STRING_MAPS.iter().any(|prefix| path.starts_with(prefix))
}

/// Returns the typed value of a text. Types are tried in the order of istioctl.
fn typed_value(text: &str) -> Value {
    if let Some(value) = parse_structure(text) {
        return value;
    }
    if let Ok(number) = parse_int(text.as_bytes(), 10) {
        return Value::Int(number);
    }
    // NaN and infinities have no JSON representation, so they are strings.
    if let Some(number) = parse_float(text.as_bytes()).ok().filter(|it| it.is_finite()) {
        return Value::Float(number);
    }
    match text {
        "t" | "T" | "TRUE" | "true" | "True" => Value::Bool(true),
        "f" | "F" | "FALSE" | "false" | "False" => Value::Bool(false),
        _ => Value::String(text.replace("\\,", ",")),
    }
}

/// Parses a list or a map. Returns `None` if the text is neither.
fn parse_structure(text: &str) -> Option<Value> {
    if text.starts_with('[') {
        let items = parse_json_list(text, Numbers::Float, &input_budget());
        return items.ok().map(Value::List);
    }
    if !text.starts_with('{') {
        return None;
    }
    if let Ok(map) = parse_json_map(text, Numbers::Float, &input_budget()) {
        return Some(Value::Map(map));
    }
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    if inner.contains(['{', '}']) {
        return None;
    }
    let items = split_commas(inner)
        .into_iter()
        .map(|item| typed_value(item.trim()));
    Some(Value::List(items.collect()))
}

/// Splits text at unescaped commas.
fn split_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == ',' && !escaped {
            parts.push(text.get(start..at).unwrap_or_default());
            start = at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

fn child<'a>(node: &'a mut Value, segment: &Segment, at: &Path) -> Result<&'a mut Value, SetError> {
    match segment {
        Segment::Key(key) => {
            if node.is_null() {
                *node = Value::Map(Map::new());
            }
            let found = describe_kind(node);
            let map = node.as_map_mut().ok_or_else(|| SetError::NotAMap {
                path: at.clone(),
                found,
            })?;
            Ok(map.entry(key.clone()).or_default())
        }
        Segment::Item(selector) => {
            if node.is_null() {
                *node = Value::List(Vec::new());
            }
            let found = describe_kind(node);
            let Value::List(items) = node else {
                return Err(SetError::NotAList {
                    path: at.clone(),
                    found,
                });
            };
            let position = match (selector.index, &selector.pair) {
                (Some(index), _) => usize::try_from(index).unwrap_or(items.len()).min(items.len()),
                (None, Some(pair)) => named_item(items, pair, at)?,
                (None, None) => return Err(no_item(items, &selector.text, None, at)),
            };
            if position == items.len() {
                items.push(Value::Null);
            }
            let missing = no_item(&[], &selector.text, None, at);
            items.get_mut(position).ok_or(missing)
        }
    }
}

/// Returns the position of the item that a pair selects. In a list that is merged by name, a missing item
/// is added.
fn named_item(items: &mut Vec<Value>, pair: &Pair, at: &Path) -> Result<usize, SetError> {
    if let Some(found) = items.iter().position(|item| has_pair(item, pair)) {
        return Ok(found);
    }
    if pair.key == "name" && NAMED_LISTS.contains(&at.to_string().as_str()) {
        let name = (pair.key.clone(), Value::from(pair.value.as_str()));
        items.push(Value::Map(Map::from([name])));
        return Ok(items.len() - 1);
    }
    let selector = format!("{}:{}", pair.key, pair.value);
    Err(no_item(items, &selector, Some(&pair.key), at))
}

pub(crate) fn has_pair(item: &Value, pair: &Pair) -> bool {
    item.get(&pair.key).and_then(scalar_text).as_deref() == Some(pair.value.as_str())
}

fn no_item(items: &[Value], selector: &str, key: Option<&str>, at: &Path) -> SetError {
    const MAX_LISTED: usize = 10;
    let named = items.iter().filter_map(|item| {
        let key = key?;
        Some(format!("{key}:{}", item.get(key).and_then(scalar_text)?))
    });
    SetError::NoItem {
        path: at.clone(),
        selector: selector.to_owned(),
        candidates: named.take(MAX_LISTED).collect(),
    }
}

#[cfg(test)]
mod tests {
    use mainstay_yaml::{Budget, parse, to_json};

    use super::*;

    fn check(spec: &str, expression: &str, expected: &str) {
        let mut spec = parse(spec, &Budget::default()).unwrap();
        let done = SetExpression::parse(expression).and_then(|set| set.apply(&mut spec));
        let found = match done {
            Ok(()) => to_json(&spec).unwrap(),
            Err(error) => match error.hint() {
                Some(hint) => format!("{error}; {hint}"),
                None => error.to_string(),
            },
        };
        assert_eq!(found, expected, "{expression}");
    }

    #[test]
    fn values_have_the_type_of_their_text() {
        for (text, expected) in [
            ("1", "1"),
            ("+5", "5"),
            ("007", "7"),
            ("1.5", "1.5"),
            ("true", "true"),
            ("t", "true"),
            ("F", "false"),
            ("yes", "\"yes\""),
            ("", "\"\""),
            ("null", "\"null\""),
            ("NaN", "\"NaN\""),
            ("-inf", "\"-inf\""),
            ("a\\,b", "\"a,b\""),
            ("a,b", "\"a,b\""),
            ("b=c", "\"b=c\""),
            ("{a,2,c\\,d}", "[\"a\",2,\"c,d\"]"),
            ("[\"x\",1]", "[\"x\",1]"),
            ("{\"k\":[true]}", "{\"k\":[true]}"),
            ("{x", "\"{x\""),
            ("[x", "\"[x\""),
        ] {
            check("{}", &format!("a={text}"), &format!("{{\"a\":{expected}}}"));
        }
    }

    #[test]
    fn values_of_some_paths_are_always_strings() {
        check("{}", "tag=1.20", r#"{"tag":"1.20"}"#);
        check("{}", "revision=7", r#"{"revision":"7"}"#);
        check(
            "{}",
            "meshConfig.defaultConfig.proxyMetadata.A=1",
            r#"{"meshConfig":{"defaultConfig":{"proxyMetadata":{"A":"1"}}}}"#,
        );
    }

    #[test]
    fn paths_create_maps_and_lists() {
        check("{}", "a.b[0].c=1", r#"{"a":{"b":[{"c":1}]}}"#);
        check("a: null", "a.b=1", r#"{"a":{"b":1}}"#);
        check("a: [1, 2]", "a[1]=5", r#"{"a":[1,5]}"#);
        check("a: [1, 2]", "a[9]=5", r#"{"a":[1,2,5]}"#);
        check("a: [1, 2]", "a[-1]=5", r#"{"a":[1,2,5]}"#);
        check("{}", "a\\.b/c=1", r#"{"a.b/c":1}"#);
        check(
            "a: [{id: x, v: 1}]",
            "a.[id:x].v=2",
            r#"{"a":[{"id":"x","v":2}]}"#,
        );
        check(
            "{}",
            "components.ingressGateways.[name:g].enabled=true",
            r#"{"components":{"ingressGateways":[{"enabled":true,"name":"g"}]}}"#,
        );
    }

    #[test]
    fn errors_name_the_path_and_the_candidates() {
        check(
            "{}",
            "a",
            "expected PATH=VALUE; write --set PATH=VALUE, for example --set profile=demo",
        );
        check("a: x", "a.b=1", "a is a string, not a map");
        check("a: {}", "a[0]=1", "a is a map, not a list");
        check(
            "a: [{id: x}, {id: w}]",
            "a.[id:z].v=2",
            "no item of a matches [id:z]; use one of [id:x], [id:w]",
        );
        check("{}", "a..b=1", "two dots without a key between them");
    }
}
