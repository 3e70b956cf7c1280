//! Validates the keywords and rules of a schema.

use serde_json::{Map, Value};

use super::internal;
use crate::crd::paths;
use crate::crd::rules::Rule;
use crate::crd::schema::{Node, strings, text};
use crate::field::{ErrorType, FieldErrors, Path};
use crate::show;

/// Validates a schema. With `compile_rules`, also compiles its rules, which requires that other checks
/// succeeded.
pub(super) fn check(schema: &Value, path: &Path, compile_rules: bool) -> FieldErrors {
    let mut errors = SchemaErrors::default();
    let node = compile_rules.then(|| Node::compile(schema));
    let context = NodeContext {
        root: true,
        is_object_root: true,
        node: node.as_ref(),
        ..NodeContext::default()
    };
    errors.check_node(schema, path, &context);
    errors.schema.append(errors.rules);
    errors.schema
}

/// Errors of a schema and of its rules, which are reported last.
#[derive(Default)]
struct SchemaErrors {
    schema: FieldErrors,
    rules: FieldErrors,
}

/// Context of a schema node.
#[derive(Clone, Default)]
struct NodeContext<'n> {
    root: bool,
    /// Whether the node is a complete object with metadata that rules can access.
    is_object_root: bool,
    /// Compiled node, if rules are compiled.
    node: Option<&'n Node>,
    /// Reason why the node must not have a default.
    no_defaults: Option<String>,
    in_metadata: bool,
    /// Path of the node below which old and new values cannot be correlated.
    uncorrelatable: Option<Path>,
}

impl<'n> NodeContext<'n> {
    /// Returns the context of a child with this compiled node.
    fn for_child(&self, node: Option<&'n Node>) -> Self {
        Self {
            root: false,
            is_object_root: node.is_some_and(|node| node.embedded),
            node,
            ..self.clone()
        }
    }
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some_and(|flag| flag == true)
}

fn non_empty_map<'v>(schema: &'v Value, key: &str) -> Option<&'v Map<String, Value>> {
    schema
        .get(key)
        .and_then(Value::as_object)
        .filter(|map| !map.is_empty())
}

fn non_null<'v>(schema: &'v Value, key: &str) -> Option<&'v Value> {
    schema.get(key).filter(|value| !value.is_null())
}

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";
const RULES: &str = "x-kubernetes-validations";
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

impl SchemaErrors {
    fn check_node(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let before = self.schema.len();
        self.check_keywords(schema, path, context);
        if flag(schema, "uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.schema.forbidden(&path.child("uniqueItems"), detail);
        }
        self.check_additional_properties(schema, path, context);
        self.check_properties(schema, path, context);
        self.check_branches(schema, path, context);
        self.check_items(schema, path, context);
        if non_null(schema, "x-kubernetes-preserve-unknown-fields").is_some_and(|value| *value == false) {
            let location = path.child("x-kubernetes-preserve-unknown-fields");
            self.schema.invalid(&location, false, "must be true or undefined");
        }
        self.check_map_type(schema, path);
        self.check_list_type(schema, path);
        self.check_list_keys(schema, path);
        self.check_rule_fields(schema, path, context);
        if self.schema.len() == before
            && let Some(node) = context.node
        {
            self.compile_rules(schema, path, node, context);
        }
    }

    /// Reports keywords that are not allowed.
    fn check_keywords(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let errors = &mut self.schema;
        let kind = text(schema, "type");
        if !kind.is_empty() && !TYPES.contains(&kind) {
            errors.not_supported(&path.child("type"), kind, &TYPES);
        }
        if let Some(reason) = context
            .no_defaults
            .as_ref()
            .filter(|_| non_null(schema, "default").is_some())
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
            let is_present = non_null(schema, key).is_some_and(|value| match value {
                Value::Object(map) => !map.is_empty() || key == "dependencies" || key == "additionalItems",
                Value::String(text) => !text.is_empty() || key == "$ref",
                _ => true,
            });
            if is_present {
                errors.forbidden(&path.child(key), format!("{key} is not supported"));
            }
        }
        if kind == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            errors.forbidden(&path.child("type"), detail);
        }
        if non_null(schema, "items")
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

    fn check_additional_properties(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let Some(values) = non_null(schema, "additionalProperties") else {
            return;
        };
        let location = path.child("additionalProperties");
        if non_empty_map(schema, "properties").is_some() && *values != true {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.schema.forbidden(&location, detail);
        }
        if values.is_object() {
            let node = context.node.and_then(|node| match &node.additional {
                Some(crate::crd::schema::Additional::Schema(node)) => Some(&**node),
                _ => None,
            });
            let mut next = context.for_child(node);
            if context.in_metadata {
                next.no_defaults = Some("inside additionalProperties applying to object metadata".into());
            }
            self.check_node(values, &location, &next);
        }
    }

    fn check_properties(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let has_metadata = context.root || flag(schema, "x-kubernetes-embedded-resource");
        for (name, property) in non_empty_map(schema, "properties").into_iter().flatten() {
            let node = context.node.and_then(|node| node.properties.get(name));
            let mut next = context.for_child(node);
            if has_metadata && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                next.in_metadata = true;
                if context.root {
                    next.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.check_node(property, &path.child("properties").key(name), &next);
        }
    }

    fn check_branches(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let next = context.for_child(None);
        if let Some(not) = non_null(schema, "not") {
            self.check_node(not, &path.child("not"), &next);
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            let list = non_null(schema, key).and_then(Value::as_array);
            for (at, branch) in list.into_iter().flatten().enumerate() {
                self.check_node(branch, &path.child(key).index(at), &next);
            }
        }
        for (name, schema) in non_empty_map(schema, "definitions").into_iter().flatten() {
            self.check_node(schema, &path.child("definitions").key(name), &next);
        }
        for (name, dependency) in non_empty_map(schema, "dependencies").into_iter().flatten() {
            if dependency.is_object() {
                self.check_node(dependency, &path.child("dependencies").key(name), &next);
            }
        }
    }

    fn check_items(&mut self, schema: &Value, path: &Path, context: &NodeContext<'_>) {
        let Some(items) = non_null(schema, "items") else {
            return;
        };
        let mut next = context.for_child(context.node.and_then(|node| node.items.as_deref()));
        if text(schema, LIST_TYPE) != "map" && next.uncorrelatable.is_none() {
            next.uncorrelatable = Some(path.clone());
        }
        match items {
            Value::Array(list) => {
                for (at, item) in list.iter().enumerate() {
                    self.check_node(item, &path.child("items").index(at), &next);
                }
            }
            item => self.check_node(item, &path.child("items"), &next),
        }
    }

    /// Reports a type other than `required`, which `key` requires. Returns whether the type is `required`.
    fn require_type(&mut self, schema: &Value, required: &str, key: &str, path: &Path) -> bool {
        let kind = text(schema, "type");
        if kind == required {
            return true;
        }
        let detail = format!("must be {required} if {key} is specified");
        if kind.is_empty() {
            self.schema.required(&path.child("type"), detail);
        } else {
            self.schema.invalid(&path.child("type"), kind, detail);
        }
        false
    }

    fn check_map_type(&mut self, schema: &Value, path: &Path) {
        if non_null(schema, MAP_TYPE).is_none() {
            return;
        }
        self.require_type(schema, "object", MAP_TYPE, path);
        let map_type = text(schema, MAP_TYPE);
        if !matches!(map_type, "atomic" | "granular") {
            self.schema
                .not_supported(&path.child(MAP_TYPE), map_type, &["atomic", "granular"]);
        }
    }

    fn check_list_type(&mut self, schema: &Value, path: &Path) {
        if non_null(schema, LIST_TYPE).is_none() {
            return;
        }
        let list_type = text(schema, LIST_TYPE);
        if self.require_type(schema, "array", LIST_TYPE, path)
            && list_type == "set"
            && let Some(items) = non_null(schema, "items").filter(|items| items.is_object())
        {
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let (list, shown) = (
                text(items, LIST_TYPE),
                non_null(items, LIST_TYPE).map_or("null".into(), show::value),
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

    fn check_list_keys(&mut self, schema: &Value, path: &Path) {
        let keys = strings(schema, MAP_KEYS);
        let list_type = text(schema, LIST_TYPE);
        if !keys.is_empty() && list_type != "map" {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            if non_null(schema, LIST_TYPE).is_none() {
                self.schema.required(&path.child(LIST_TYPE), detail);
            } else {
                self.schema.invalid(&path.child(LIST_TYPE), list_type, detail);
            }
        }
        let items = non_null(schema, "items");
        if list_type == "map" {
            self.check_map_list(&keys, items, path);
        }
        if let Some(items) = items.filter(|items| items.is_object() && matches!(list_type, "map" | "set")) {
            self.check_list_items(&keys, items, list_type, path);
        }
    }

    fn check_map_list(&mut self, keys: &[String], items: Option<&Value>, path: &Path) {
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

    fn check_list_items(&mut self, keys: &[String], items: &Value, list_type: &str, path: &Path) {
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
            if !required.contains(key) && non_null(property, "default").is_none() {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.schema.required(&location.child("default"), detail);
            }
            if flag(property, "nullable") {
                let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.schema.forbidden(&location.child("nullable"), detail);
            }
        }
    }

    /// Validates the fields of the rules without compiling them.
    fn check_rule_fields(&mut self, schema: &Value, path: &Path, _context: &NodeContext<'_>) {
        const REASONS: [&str; 4] = [
            "FieldValueDuplicate",
            "FieldValueForbidden",
            "FieldValueInvalid",
            "FieldValueRequired",
        ];
        let has_line_breaks = |text: &str| text.contains(['\n', '\r']);
        let errors = &mut self.schema;
        let rules = non_null(schema, RULES).and_then(Value::as_array);
        for (at, rule) in rules.into_iter().flatten().enumerate() {
            let location = path.child(RULES).index(at);
            let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
            let shown = || Some(show::quoted(message));
            if source.is_empty() {
                errors.required(&location.child("rule"), "rule is not specified");
            } else if !message.is_empty() && message.trim().is_empty() {
                let detail = "must be non-empty if specified";
                errors.push_shown(ErrorType::Invalid, &location.child("message"), shown(), detail);
            } else if has_line_breaks(message.trim()) {
                let detail = "must not contain line breaks";
                errors.push_shown(ErrorType::Invalid, &location.child("message"), shown(), detail);
            } else if has_line_breaks(source) && message.trim().is_empty() {
                let detail = "message must be specified if rule contains line breaks";
                errors.required(&location.child("message"), detail);
            }
            let expression = text(rule, "messageExpression");
            if !expression.is_empty() && expression.trim().is_empty() {
                let detail = "messageExpression must be non-empty if specified";
                errors.required(&location.child("messageExpression"), detail);
            }
            if let Some(reason) = non_null(rule, "reason").and_then(Value::as_str)
                && !REASONS.contains(&reason)
            {
                errors.not_supported(&location.child("reason"), reason, &REASONS);
            }
            let field = text(rule, "fieldPath");
            let field_location = location.child("fieldPath");
            if !field.is_empty() && field.trim().is_empty() {
                errors.invalid(&field_location, field, "must be non-empty if specified");
            }
            if has_line_breaks(field) {
                let detail = "must not contain line breaks";
                errors.push_shown(
                    ErrorType::Invalid,
                    &field_location,
                    Some(show::quoted(field)),
                    detail,
                );
            }
            if !field.is_empty() && paths::resolve(field, &Node::compile(schema), true).is_err() {
                errors.push_shown(
                    ErrorType::Invalid,
                    &field_location,
                    Some(show::quoted(field)),
                    "must be a valid path",
                );
            }
        }
    }

    fn compile_rules(&mut self, schema: &Value, path: &Path, node: &Node, context: &NodeContext<'_>) {
        let errors = &mut self.rules;
        let rules = non_null(schema, RULES).and_then(Value::as_array);
        for (at, source) in rules.into_iter().flatten().enumerate() {
            let location = path.child(RULES).index(at);
            let rule = Rule::compile(node, context.is_object_root, source);
            let shown = || Some(internal::format_rule(source));
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
                if let Some(from) = &context.uncorrelatable {
                    let detail = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {from}"
                    );
                    let text = Some(show::quoted(text(source, "rule")));
                    errors.push_shown(ErrorType::Invalid, &location.child("rule"), text, detail);
                }
            } else if let Some(flag) = non_null(source, "optionalOldSelf") {
                let detail = "may not be set if oldSelf is not used in rule";
                errors.invalid(&location.child("optionalOldSelf"), flag.clone(), detail);
            }
        }
    }
}
