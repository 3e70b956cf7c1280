//! Compiled structural schemas for pruning, defaulting and validation. Compilation never fails:
//! `definition` has validated the schema, and unknown keywords are ignored.

use std::collections::BTreeMap;

use serde_json::Value;

use super::pattern::Pattern;

/// A node of a schema.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent keywords of a schema")]
pub(crate) struct Node {
    /// `type`, or empty.
    pub kind: String,
    pub nullable: bool,
    pub default: Option<Value>,
    pub properties: BTreeMap<String, Node>,
    pub items: Option<Box<Node>>,
    pub additional: Option<Additional>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    pub list: List,
    pub checks: Checks,
}

/// `additionalProperties`: a bool or a schema.
#[derive(Debug)]
pub(crate) enum Additional {
    Any(bool),
    Schema(Box<Node>),
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum List {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// Constraints on a value besides its type.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    pub format: String,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub max_length: Option<u64>,
    pub min_length: Option<u64>,
    pub pattern: Option<Pattern>,
    pub max_items: Option<u64>,
    pub min_items: Option<u64>,
    pub unique_items: bool,
    pub multiple_of: Option<f64>,
    pub max_properties: Option<u64>,
    pub min_properties: Option<u64>,
    pub required: Vec<String>,
    pub enum_values: Vec<Value>,
    pub all_of: Vec<Node>,
    pub any_of: Vec<Node>,
    pub one_of: Vec<Node>,
    pub not: Option<Box<Node>>,
}

impl Node {
    /// Compiles a schema. Rules are compiled separately by `rules`, because they need the compiled nodes.
    pub(crate) fn compile(schema: &Value) -> Self {
        let flag = |key| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
        let properties = schema.get("properties").and_then(Value::as_object);
        Self {
            kind: text(schema, "type").to_owned(),
            nullable: flag("nullable"),
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            properties: properties
                .into_iter()
                .flatten()
                .map(|(name, property)| (name.clone(), Self::compile(property)))
                .collect(),
            items: schema
                .get("items")
                .filter(|items| items.is_object())
                .map(|items| Box::new(Self::compile(items))),
            additional: match schema.get("additionalProperties") {
                Some(Value::Bool(any)) => Some(Additional::Any(*any)),
                Some(values @ Value::Object(_)) => Some(Additional::Schema(Box::new(Self::compile(values)))),
                _ => None,
            },
            preserve: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            list: List::from_schema(schema),
            checks: Checks::from_schema(schema),
        }
    }

    /// Returns the schema of a field: that of the property, otherwise that of additional properties.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Some(Additional::Schema(values)) => Some(values),
            _ => None,
        })
    }

    /// Returns the types that the validator accepts. Empty if all types are accepted.
    pub(crate) fn types(&self) -> Vec<&str> {
        match self.kind.as_str() {
            _ if self.int_or_string => vec!["integer", "string"],
            "" => Vec::new(),
            kind => vec![kind],
        }
    }
}

impl List {
    fn from_schema(schema: &Value) -> Self {
        match text(schema, "x-kubernetes-list-type") {
            "set" => Self::Set,
            "map" => Self::Map(strings(schema, "x-kubernetes-list-map-keys")),
            _ => Self::Atomic,
        }
    }
}

impl Checks {
    fn from_schema(schema: &Value) -> Self {
        let flag = |key| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
        let number = |key| schema.get(key).and_then(Value::as_f64);
        let count = |key| schema.get(key).and_then(Value::as_u64);
        let nodes = |key| {
            let list = schema.get(key).and_then(Value::as_array);
            list.into_iter().flatten().map(Node::compile).collect()
        };
        Self {
            format: supported_format(schema).to_owned(),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            max_length: count("maxLength"),
            min_length: count("minLength"),
            pattern: Some(text(schema, "pattern"))
                .filter(|text| !text.is_empty())
                .map(Pattern::new),
            max_items: count("maxItems"),
            min_items: count("minItems"),
            unique_items: flag("uniqueItems"),
            multiple_of: number("multipleOf"),
            max_properties: count("maxProperties"),
            min_properties: count("minProperties"),
            required: strings(schema, "required"),
            enum_values: schema
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            all_of: nodes("allOf"),
            any_of: nodes("anyOf"),
            one_of: nodes("oneOf"),
            not: schema
                .get("not")
                .filter(|not| not.is_object())
                .map(|not| Box::new(Node::compile(not))),
        }
    }
}

/// String formats that are validated, without hyphens.
const FORMATS: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Returns the format of a schema, or an empty text if the real server does not support it for this type.
pub(crate) fn supported_format(schema: &Value) -> &str {
    let format = text(schema, "format");
    let is_int_or_string = schema
        .get("x-kubernetes-int-or-string")
        .is_some_and(|flag| flag == true);
    let known = match text(schema, "type") {
        _ if is_int_or_string => false,
        "" | "string" => FORMATS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    if known { format } else { "" }
}

pub(crate) fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Returns the strings in a list.
pub(crate) fn strings(schema: &Value, key: &str) -> Vec<String> {
    let list = schema.get(key).and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
