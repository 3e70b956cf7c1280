//! Generates `OpenAPI` schemas from types in a small text format.
//!
//! ```text
//! # a comment
//! Name map=atomic                       a type, with attributes
//!   field TYPE required default=1 -- what it is for
//!   oneof a b                           at most one of these may be set
//!   rule "message" expression           a CEL rule on the whole type
//! Name = A|B|C                          an enumeration
//! Name : TYPE minLength=1               a type with attributes
//! ```
//!
//! A TYPE is `string`, `bool`, `int32`, `int64`, `number`, `quantity`, `int-or-string`, `int-or-percent`,
//! `date-time`, `tag-name`, `object`, `any`, the name of another type, `A|B` (an inline enumeration),
//! `[TYPE]` (a list) or `{TYPE}` (a map). Attributes of fields: `required`, `default=JSON`,
//! `list=atomic|set|map:KEYS`, `map=atomic`, `min=N`, `max=N`, `minLength=N`, `maxLength=N`, `minItems=N`,
//! `maxItems=N`, `maxProperties=N`, `immutable`, `unknown=kept` (fields without a description are
//! stored).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::names::MAX_TAG_LENGTH;

/// Regular expression of Kubernetes quantities.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Regular expression of a number or percentage as text.
const PERCENT: &str = "^[0-9]{1,6}%?$";

/// Regular expression of a DNS label.
const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// Maximum nesting of types. Ends the recursion of a type that contains itself.
const MAX_DEPTH: usize = 40;

/// Types by name.
#[derive(Debug, Default)]
pub(super) struct Facts<'a> {
    types: BTreeMap<&'a str, Type<'a>>,
}

#[derive(Debug, Default)]
struct Type<'a> {
    attributes: &'a str,
    enumeration: Option<&'a str>,
    alias: Option<&'a str>,
    lines: Vec<&'a str>,
}

impl<'a> Facts<'a> {
    /// Parses texts. A type replaces an earlier one with the same name.
    pub(super) fn parse(texts: &[&'a str]) -> Self {
        let mut facts = Self::default();
        let mut current = "";
        let lines = texts.iter().flat_map(|text| text.lines());
        for line in lines.filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty()) {
            if line.starts_with(' ') {
                if let Some(kind) = facts.types.get_mut(current) {
                    kind.lines.push(line.trim());
                }
                continue;
            }
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            let enumeration = rest.strip_prefix("= ");
            let alias = rest.strip_prefix(": ");
            let is_object = enumeration.is_none() && alias.is_none();
            let attributes = if is_object { rest } else { "" };
            facts.types.insert(
                name,
                Type {
                    attributes,
                    enumeration,
                    alias,
                    lines: Vec::new(),
                },
            );
            current = name;
        }
        facts
    }

    /// Returns the schema of a type expression. Undefined types accept any content.
    pub(super) fn schema(&self, expression: &str) -> Value {
        self.nested(expression, MAX_DEPTH)
    }

    fn nested(&self, expression: &str, depth: usize) -> Value {
        let Some(depth) = depth.checked_sub(1) else {
            return any();
        };
        if let Some(inner) = expression
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
        {
            return json!({"type": "array", "items": self.nested(inner, depth)});
        }
        if let Some(inner) = expression
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'))
        {
            return json!({"type": "object", "additionalProperties": self.nested(inner, depth)});
        }
        if let Some(schema) = scalar(expression) {
            return schema;
        }
        match self.types.get(expression) {
            None => any(),
            Some(Type {
                enumeration: Some(values),
                ..
            }) => enumeration(values),
            Some(Type {
                alias: Some(text), ..
            }) => self.alias(text, depth),
            Some(kind) => self.object(kind, depth),
        }
    }

    fn alias(&self, text: &str, depth: usize) -> Value {
        let (expression, attributes) = text.split_once(' ').unwrap_or((text, ""));
        let mut schema = self.nested(expression, depth);
        if let Value::Object(schema) = &mut schema {
            set_attributes(schema, attributes);
        }
        schema
    }

    fn object(&self, kind: &Type<'_>, depth: usize) -> Value {
        let mut schema = Map::from_iter([("type".to_owned(), json!("object"))]);
        let (mut properties, mut required, mut rules) = (Map::new(), Vec::new(), Vec::new());
        for line in &kind.lines {
            if let Some(fields) = line.strip_prefix("oneof ") {
                rules.push(at_most_one(fields));
            } else if let Some(rule) = rule_text(line) {
                rules.extend(quoted_rule(rule));
            } else {
                let field = Field::parse(line);
                if field
                    .attributes
                    .split(' ')
                    .any(|attribute| attribute == "required")
                {
                    required.push(field.name);
                }
                properties.insert(field.name.to_owned(), self.field(&field, depth));
            }
        }
        required.sort_unstable();
        set_attributes(&mut schema, kind.attributes);
        put(&mut schema, "properties", Value::Object(properties));
        put(&mut schema, "required", json!(required));
        put(&mut schema, "x-kubernetes-validations", Value::Array(rules));
        Value::Object(schema)
    }

    fn field(&self, field: &Field<'_>, depth: usize) -> Value {
        let mut schema = self.nested(field.expression, depth);
        if let Value::Object(schema) = &mut schema {
            set_attributes(schema, field.attributes);
            if field
                .attributes
                .split(' ')
                .any(|attribute| attribute == "immutable")
            {
                let rule = json!({"message": "Value is immutable", "rule": "self == oldSelf"});
                schema.insert("x-kubernetes-validations".into(), json!([rule]));
            }
            if !field.description.is_empty() {
                schema.insert("description".into(), json!(field.description));
            }
        }
        schema
    }
}

/// Parsed line of a field.
struct Field<'a> {
    name: &'a str,
    expression: &'a str,
    attributes: &'a str,
    description: &'a str,
}

impl<'a> Field<'a> {
    fn parse(line: &'a str) -> Self {
        let (facts, description) = line.split_once(" -- ").unwrap_or((line, ""));
        let (name, rest) = facts.split_once(' ').unwrap_or((facts, "any"));
        let (expression, attributes) = rest.split_once(' ').unwrap_or((rest, ""));
        Self {
            name,
            expression,
            attributes,
            description,
        }
    }
}

/// Sets a key, unless the value is an empty list or map.
fn put(schema: &mut Map<String, Value>, key: &str, value: Value) {
    let is_empty = match &value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if !is_empty {
        schema.insert(key.into(), value);
    }
}

fn any() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

fn scalar(expression: &str) -> Option<Value> {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    Some(match expression {
        "string" | "number" | "object" => json!({"type": expression}),
        "bool" => json!({"type": "boolean"}),
        "int32" | "int64" => json!({"type": "integer", "format": expression}),
        "date-time" => json!({"type": "string", "format": "date-time"}),
        "quantity" => json!({"anyOf": either, "pattern": QUANTITY, "x-kubernetes-int-or-string": true}),
        "int-or-percent" => json!({
            "anyOf": either, "pattern": PERCENT, "x-kubernetes-int-or-string": true, "maxLength": 8,
        }),
        "int-or-string" => json!({"anyOf": either, "x-kubernetes-int-or-string": true}),
        "tag-name" => json!({"type": "string", "pattern": DNS_LABEL, "maxLength": MAX_TAG_LENGTH}),
        "any" => any(),
        _ if expression.contains('|') => enumeration(expression),
        _ => return None,
    })
}

fn enumeration(values: &str) -> Value {
    json!({"type": "string", "enum": values.split('|').collect::<Vec<_>>()})
}

fn set_attributes(schema: &mut Map<String, Value>, attributes: &str) {
    for (key, value) in attributes
        .split(' ')
        .filter_map(|attribute| attribute.split_once('='))
    {
        let number = || value.parse::<i64>().map_or(Value::Null, Value::from);
        let (key, value) = match key {
            "default" => (
                "default",
                serde_json::from_str(value).unwrap_or_else(|_| json!(value)),
            ),
            "min" => ("minimum", number()),
            "max" => ("maximum", number()),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "maxProperties" => (key, number()),
            "map" => ("x-kubernetes-map-type", json!(value)),
            "unknown" => ("x-kubernetes-preserve-unknown-fields", json!(value == "kept")),
            "list" => {
                let (kind, keys) = value.split_once(':').unwrap_or((value, ""));
                if !keys.is_empty() {
                    let keys: Vec<_> = keys.split(',').collect();
                    schema.insert("x-kubernetes-list-map-keys".into(), json!(keys));
                }
                ("x-kubernetes-list-type", json!(kind))
            }
            _ => continue,
        };
        schema.insert(key.to_owned(), value);
    }
}

fn at_most_one(fields: &str) -> Value {
    let terms: Vec<_> = fields
        .split(' ')
        .map(|field| format!("(has(self.{field})?1:0)"))
        .collect();
    json!({
        "message": format!("At most one of [{fields}] should be set"),
        "rule": format!("{} <= 1", terms.join(" + ")),
    })
}

/// Returns the text of a line with a CEL rule, or `None` for other lines. A field may also be named `rule`;
/// a CEL rule starts with a quoted message.
fn rule_text(line: &str) -> Option<&str> {
    line.strip_prefix("rule ").filter(|text| text.starts_with('"'))
}

fn quoted_rule(text: &str) -> Option<Value> {
    let (message, rule) = text.strip_prefix('"')?.split_once("\" ")?;
    Some(json!({"message": message, "rule": rule}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expression: &str, expected: &Value) {
        assert_eq!(&Facts::parse(&[text]).schema(expression), expected, "{text}");
    }

    #[test]
    fn fields_become_properties() {
        let text = "A map=atomic\n  b [string] required list=set -- names\n  c {B}\n  d x|y default=\"x\"\nB = P|Q\n";
        let expected = json!({
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "required": ["b"],
            "properties": {
                "b": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set", "description": "names"},
                "c": {"type": "object", "additionalProperties": {"type": "string", "enum": ["P", "Q"]}},
                "d": {"type": "string", "enum": ["x", "y"], "default": "x"},
            },
        });
        check(text, "A", &expected);
    }

    #[test]
    fn groups_and_rules_become_validations() {
        let rules = json!([
            {"message": "At most one of [a b] should be set", "rule": "(has(self.a)?1:0) + (has(self.b)?1:0) <= 1"},
            {"message": "no", "rule": "self.a == 'x'"},
        ]);
        let expected = json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "integer", "format": "int64", "minimum": 1}},
            "x-kubernetes-validations": rules,
        });
        check(
            "A\n  a string\n  b int64 min=1\n  oneof a b\n  rule \"no\" self.a == 'x'\n",
            "A",
            &expected,
        );
    }

    #[test]
    fn a_field_may_be_named_rule() {
        let expected = json!({
            "type": "object",
            "required": ["rule"],
            "properties": {"rule": {"type": "string"}},
        });
        check("A\n  rule string required\n", "A", &expected);
    }

    #[test]
    fn a_named_type_has_the_attributes_of_its_line() {
        let expected = json!({
            "type": "object",
            "properties": {"a": {
                "type": "object",
                "maxProperties": 2,
                "additionalProperties": {"type": "string", "maxLength": 63},
            }},
        });
        check(
            "A\n  a {B} maxProperties=2\nB : string maxLength=63\n",
            "A",
            &expected,
        );
    }

    #[test]
    fn recursive_types_end_at_the_maximum_depth() {
        let facts = Facts::parse(&["A\n  a A\n"]);
        assert!(facts.schema("A").to_string().len() < 10_000);
    }
}
