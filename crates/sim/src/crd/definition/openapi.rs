//! Validates the keywords and rules of a schema.

use serde_json::{Map, Value};

use super::internal;
use crate::crd::paths;
use crate::crd::rules::Rule;
use crate::crd::schema::{Node, strings, text};
use crate::crd::show;
use crate::field::{ErrorType, FieldErrors, Path};

/// Validates a schema; `rules` is set if it is valid enough to compile its rules.
pub(super) fn check(schema: &Value, path: &Path, rules: bool) -> FieldErrors {
    let mut found = Found::default();
    let node = rules.then(|| Node::compile(schema));
    let context = NodeContext {
        root: true,
        whole: true,
        node: node.as_ref(),
        ..NodeContext::default()
    };
    found.walk(schema, path, &context);
    found.schema.append(found.rules);
    found.schema
}

/// Errors of rules are reported after all others.
#[derive(Default)]
struct Found {
    schema: FieldErrors,
    rules: FieldErrors,
}

/// The context of a schema node.
#[derive(Clone, Default)]
struct NodeContext<'n> {
    root: bool,
    /// Whether the node is a whole object, whose metadata is visible to rules.
    whole: bool,
    /// The compiled node, if rules can be compiled.
    node: Option<&'n Node>,
    /// The reason that defaults are forbidden here.
    no_defaults: Option<String>,
    in_metadata: bool,
    /// The path below which old and new values cannot be correlated.
    unmatched: Option<Path>,
}

impl<'n> NodeContext<'n> {
    /// The context of a child, with its compiled node.
    fn below(&self, node: Option<&'n Node>) -> Self {
        Self {
            root: false,
            whole: node.is_some_and(|node| node.embedded),
            node,
            ..self.clone()
        }
    }
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some_and(|flag| flag == true)
}

fn map<'v>(schema: &'v Value, key: &str) -> Option<&'v Map<String, Value>> {
    schema
        .get(key)
        .and_then(Value::as_object)
        .filter(|map| !map.is_empty())
}

fn given<'v>(schema: &'v Value, key: &str) -> Option<&'v Value> {
    schema.get(key).filter(|value| !value.is_null())
}

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const RULES: &str = "x-kubernetes-validations";
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

impl Found {
    fn walk(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let before = self.schema.len();
        self.check_keywords(schema, path, context);
        if flag(schema, "uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.schema.forbidden(&path.child("uniqueItems"), detail);
        }
        self.additional(schema, path, context);
        self.properties(schema, path, context);
        self.branches(schema, path, context);
        self.items(schema, path, context);
        if given(schema, "x-kubernetes-preserve-unknown-fields").is_some_and(|value| *value == false) {
            let location = path.child("x-kubernetes-preserve-unknown-fields");
            self.schema.invalid(&location, false, "must be true or undefined");
        }
        self.map_type(schema, path);
        self.list_type(schema, path);
        self.list_keys(schema, path);
        self.check_rules(schema, path, context);
        if self.schema.len() == before
            && let Some(node) = context.node
        {
            self.compile(schema, path, node, context);
        }
    }

    /// Reports keywords that are not allowed, or not allowed here.
    fn check_keywords(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let errors = &mut self.schema;
        let kind = text(schema, "type");
        if !kind.is_empty() && !TYPES.contains(&kind) {
            errors.not_supported(&path.child("type"), kind, &TYPES);
        }
        if let Some(reason) = context
            .no_defaults
            .as_ref()
            .filter(|_| given(schema, "default").is_some())
        {
            errors.forbidden(&path.child("default"), format!("must not be set {reason}"));
        }
        for key in [
            "id",
            "additionalItems",
            "patternProperties",
            "definitions",
            "dependencies",
            "$ref",
        ] {
            let present = given(schema, key).is_some_and(|value| match value {
                Value::Object(map) => !map.is_empty() || key == "dependencies" || key == "additionalItems",
                Value::String(text) => !text.is_empty() || key == "$ref",
                _ => true,
            });
            if present {
                errors.forbidden(&path.child(key), format!("{key} is not supported"));
            }
        }
        if kind == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            errors.forbidden(&path.child("type"), detail);
        }
        if given(schema, "items")
            .and_then(Value::as_array)
            .is_some_and(|items| !items.is_empty())
        {
            errors.forbidden(
                &path.child("items"),
                "items must be a schema object and not an array",
            );
        }
        if context.in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
            let location = path.child("x-kubernetes-embedded-resource");
            errors.forbidden(&location, "must not be used inside of resource meta");
        }
    }

    fn additional(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let Some(below) = given(schema, "additionalProperties") else {
            return;
        };
        let location = path.child("additionalProperties");
        if map(schema, "properties").is_some() && *below != true {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.schema.forbidden(&location, detail);
        }
        if below.is_object() {
            let node = context.node.and_then(|node| match &node.additional {
                Some(crate::crd::schema::Additional::Like(below)) => Some(&**below),
                _ => None,
            });
            let mut next = context.below(node);
            if context.in_metadata {
                next.no_defaults = Some("inside additionalProperties applying to object metadata".into());
            }
            self.walk(below, &location, &next);
        }
    }

    fn properties(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let resource = context.root || flag(schema, "x-kubernetes-embedded-resource");
        for (name, below) in map(schema, "properties").into_iter().flatten() {
            let node = context.node.and_then(|node| node.properties.get(name));
            let mut next = context.below(node);
            if resource && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                next.in_metadata = true;
                if context.root {
                    next.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.walk(below, &path.child("properties").key(name), &next);
        }
    }

    fn branches(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let next = context.below(None);
        if let Some(not) = given(schema, "not") {
            self.walk(not, &path.child("not"), &next);
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            let list = given(schema, key).and_then(Value::as_array);
            for (at, branch) in list.into_iter().flatten().enumerate() {
                self.walk(branch, &path.child(key).index(at), &next);
            }
        }
        for (name, below) in map(schema, "definitions").into_iter().flatten() {
            self.walk(below, &path.child("definitions").key(name), &next);
        }
        for (name, below) in map(schema, "dependencies").into_iter().flatten() {
            if below.is_object() {
                self.walk(below, &path.child("dependencies").key(name), &next);
            }
        }
    }

    fn items(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let Some(items) = given(schema, "items") else {
            return;
        };
        let mut next = context.below(context.node.and_then(|node| node.items.as_deref()));
        if text(schema, LIST_TYPE) != "map" && next.unmatched.is_none() {
            next.unmatched = Some(path.clone());
        }
        match items {
            Value::Array(list) => {
                for (at, item) in list.iter().enumerate() {
                    self.walk(item, &path.child("items").index(at), &next);
                }
            }
            item => self.walk(item, &path.child("items"), &next),
        }
    }

    /// The type must be `wanted` because of `key`.
    fn must_be(&mut self, schema: &Value, wanted: &str, key: &str, path: &Path) -> bool {
        let kind = text(schema, "type");
        if kind == wanted {
            return true;
        }
        let detail = format!("must be {wanted} if {key} is specified");
        if kind.is_empty() {
            self.schema.required(&path.child("type"), detail);
        } else {
            self.schema.invalid(&path.child("type"), kind, detail);
        }
        false
    }

    fn map_type(&mut self, schema: &Value, path: &Path) {
        if given(schema, MAP_TYPE).is_none() {
            return;
        }
        self.must_be(schema, "object", MAP_TYPE, path);
        let map_type = text(schema, MAP_TYPE);
        if !matches!(map_type, "atomic" | "granular") {
            self.schema
                .not_supported(&path.child(MAP_TYPE), map_type, &["atomic", "granular"]);
        }
    }

    fn list_type(&mut self, schema: &Value, path: &Path) {
        if given(schema, LIST_TYPE).is_none() {
            return;
        }
        let list_type = text(schema, LIST_TYPE);
        if self.must_be(schema, "array", LIST_TYPE, path)
            && list_type == "set"
            && let Some(items) = given(schema, "items").filter(|items| items.is_object())
        {
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let (list, shown) = (
                text(items, LIST_TYPE),
                given(items, LIST_TYPE).map_or("null".into(), show::value),
            );
            match text(items, "type") {
                "array" if !matches!(list, "" | "atomic") => {
                    let location = path.child("items").child(LIST_TYPE);
                    self.schema
                        .push_shown(ErrorType::Invalid, &location, Some(shown), detail);
                }
                "object" if text(items, MAP_TYPE) != "atomic" => {
                    let location = path.child("items").child(MAP_TYPE);
                    self.schema
                        .push_shown(ErrorType::Invalid, &location, Some(shown), detail);
                }
                _ => {}
            }
        }
        if !matches!(list_type, "atomic" | "set" | "map") {
            self.schema
                .not_supported(&path.child(LIST_TYPE), list_type, &["atomic", "set", "map"]);
        }
    }

    fn list_keys(&mut self, schema: &Value, path: &Path) {
        let keys = strings(schema, MAP_KEYS);
        let list_type = text(schema, LIST_TYPE);
        if !keys.is_empty() && list_type != "map" {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            if given(schema, LIST_TYPE).is_none() {
                self.schema.required(&path.child(LIST_TYPE), detail);
            } else {
                self.schema.invalid(&path.child(LIST_TYPE), list_type, detail);
            }
        }
        let items = given(schema, "items");
        if list_type == "map" {
            self.map_list(&keys, items, path);
        }
        if let Some(items) = items.filter(|items| items.is_object() && matches!(list_type, "map" | "set")) {
            self.nullable_items(&keys, items, list_type, path);
        }
    }

    fn map_list(&mut self, keys: &[String], items: Option<&Value>, path: &Path) {
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.schema.required(&path.child(MAP_KEYS), detail);
        }
        let Some(items) = items else {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            self.schema.required(&path.child("items"), detail);
            return;
        };
        let location = path.child("items");
        if items.is_array() {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            self.schema
                .push_shown(ErrorType::Invalid, &location, Some(show::json(items)), detail);
            return;
        }
        if text(items, "type") != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.schema
                .invalid(&location.child("type"), text(items, "type"), detail);
            return;
        }
        for (at, key) in keys.iter().enumerate() {
            match items.get("properties").and_then(|properties| properties.get(key)) {
                Some(property) if matches!(text(property, "type"), "array" | "object") => {
                    let location = location.child("properties").key(key).child("type");
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.schema.invalid(&location, text(items, "type"), detail);
                }
                Some(_) => {}
                None => {
                    let detail = "entries must all be names of item properties";
                    self.schema.invalid(&path.child(MAP_KEYS), keys.to_vec(), detail);
                }
            }
            if keys.iter().take(at).any(|earlier| earlier == key) {
                let detail = "must not contain duplicate entries";
                self.schema.invalid(&path.child(MAP_KEYS), keys.to_vec(), detail);
            }
        }
    }

    fn nullable_items(&mut self, keys: &[String], items: &Value, list_type: &str, path: &Path) {
        let location = path.child("items");
        if flag(items, "nullable") {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.schema.forbidden(&location.child("nullable"), detail);
        }
        if list_type != "map" {
            return;
        }
        let required = strings(items, "required");
        for key in keys {
            let Some(property) = items.get("properties").and_then(|properties| properties.get(key)) else {
                continue;
            };
            let location = location.child("properties").key(key);
            if !required.contains(key) && given(property, "default").is_none() {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.schema.required(&location.child("default"), detail);
            }
            if flag(property, "nullable") {
                let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.schema.forbidden(&location.child("nullable"), detail);
            }
        }
    }

    /// Validates the fields of rules.
    fn check_rules(&mut self, schema: &Value, path: &Path, _context: &NodeContext<'_>) {
        const REASONS: [&str; 4] = [
            "FieldValueDuplicate",
            "FieldValueForbidden",
            "FieldValueInvalid",
            "FieldValueRequired",
        ];
        let lines = |text: &str| text.contains(['\n', '\r']);
        let errors = &mut self.schema;
        let rules = given(schema, RULES).and_then(Value::as_array);
        for (at, rule) in rules.into_iter().flatten().enumerate() {
            let location = path.child(RULES).index(at);
            let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
            let shown = || Some(show::quoted(message));
            if source.is_empty() {
                errors.required(&location.child("rule"), "rule is not specified");
            } else if !message.is_empty() && message.trim().is_empty() {
                let detail = "must be non-empty if specified";
                errors.push_shown(ErrorType::Invalid, &location.child("message"), shown(), detail);
            } else if lines(message.trim()) {
                let detail = "must not contain line breaks";
                errors.push_shown(ErrorType::Invalid, &location.child("message"), shown(), detail);
            } else if lines(source) && message.trim().is_empty() {
                let detail = "message must be specified if rule contains line breaks";
                errors.required(&location.child("message"), detail);
            }
            let expression = text(rule, "messageExpression");
            if !expression.is_empty() && expression.trim().is_empty() {
                let detail = "messageExpression must be non-empty if specified";
                errors.required(&location.child("messageExpression"), detail);
            }
            if let Some(reason) = given(rule, "reason").and_then(Value::as_str)
                && !REASONS.contains(&reason)
            {
                errors.not_supported(&location.child("reason"), reason, &REASONS);
            }
            let field = text(rule, "fieldPath");
            let field_location = location.child("fieldPath");
            if !field.is_empty() && field.trim().is_empty() {
                errors.invalid(&field_location, field, "must be non-empty if specified");
            }
            if lines(field) {
                let detail = "must not contain line breaks";
                errors.push_shown(
                    ErrorType::Invalid,
                    &field_location,
                    Some(show::quoted(field)),
                    detail,
                );
            }
            if !field.is_empty() && paths::find(field, &Node::compile(schema), true).is_err() {
                errors.push_shown(
                    ErrorType::Invalid,
                    &field_location,
                    Some(show::quoted(field)),
                    "must be a valid path",
                );
            }
        }
    }

    fn compile(&mut self, schema: &Value, path: &Path, node: &Node, context: &NodeContext<'_>) {
        let errors = &mut self.rules;
        let rules = given(schema, RULES).and_then(Value::as_array);
        for (at, source) in rules.into_iter().flatten().enumerate() {
            let location = path.child(RULES).index(at);
            let rule = Rule::compile(node, context.whole, source);
            let shown = || Some(internal::rule(source));
            if let Some(detail) = rule.error {
                errors.push_shown(ErrorType::Invalid, &location.child("rule"), shown(), detail);
                continue;
            }
            if let Some(detail) = rule.message_error {
                errors.push_shown(
                    ErrorType::Invalid,
                    &location.child("messageExpression"),
                    shown(),
                    detail,
                );
            }
            if rule.uses_old {
                if let Some(from) = &context.unmatched {
                    let detail = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {from}"
                    );
                    let text = Some(show::quoted(text(source, "rule")));
                    errors.push_shown(ErrorType::Invalid, &location.child("rule"), text, detail);
                }
            } else if let Some(flag) = given(source, "optionalOldSelf") {
                let detail = "may not be set if oldSelf is not used in rule";
                errors.invalid(&location.child("optionalOldSelf"), flag.clone(), detail);
            }
        }
    }
}
