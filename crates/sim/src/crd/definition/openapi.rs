//! What a schema may say, word by word: takes it as written, gives what the server refuses, its rules among it.

use serde_json::{Map, Value};

use super::internal;
use crate::crd::paths;
use crate::crd::rules::Rule;
use crate::crd::schema::{Node, text, words};
use crate::crd::show;
use crate::field::{ErrorType, FieldErrors, Path};

/// Checks a whole schema; `rules` says whether it is sound enough to compile its rules.
pub(super) fn check(schema: &Value, path: &Path, rules: bool) -> FieldErrors {
    let mut found = Found::default();
    let node = rules.then(|| Node::compile(schema));
    let site = Site {
        root: true,
        whole: true,
        node: node.as_ref(),
        ..Site::default()
    };
    found.walk(schema, path, &site);
    found.schema.append(found.rules);
    found.schema
}

/// Rules are reported after everything else.
#[derive(Default)]
struct Found {
    schema: FieldErrors,
    rules: FieldErrors,
}

/// What is known of a place from above.
#[derive(Clone, Default)]
struct Site<'n> {
    root: bool,
    /// A whole object: rules see its metadata.
    whole: bool,
    /// The compiled place, where rules may be compiled.
    node: Option<&'n Node>,
    /// Why defaults are forbidden here.
    no_defaults: Option<String>,
    in_metadata: bool,
    /// From where on old and new values cannot be matched.
    unmatched: Option<Path>,
}

impl<'n> Site<'n> {
    /// A place below, with its compiled part.
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
    fn walk(&mut self, schema: &Value, path: &Path, site: &Site<'_>) {
        let before = self.schema.len();
        self.words(schema, path, site);
        if flag(schema, "uniqueItems") {
            let words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.schema.forbidden(&path.child("uniqueItems"), words);
        }
        self.additional(schema, path, site);
        self.properties(schema, path, site);
        self.branches(schema, path, site);
        self.items(schema, path, site);
        if given(schema, "x-kubernetes-preserve-unknown-fields").is_some_and(|value| *value == false) {
            let place = path.child("x-kubernetes-preserve-unknown-fields");
            self.schema.invalid(&place, false, "must be true or undefined");
        }
        self.map_type(schema, path);
        self.list_type(schema, path);
        self.list_keys(schema, path);
        self.rule_words(schema, path, site);
        if self.schema.len() == before
            && let Some(node) = site.node
        {
            self.compile(schema, path, node, site);
        }
    }

    /// Words that are not allowed, or not here.
    fn words(&mut self, schema: &Value, path: &Path, site: &Site<'_>) {
        let errors = &mut self.schema;
        let kind = text(schema, "type");
        if !kind.is_empty() && !TYPES.contains(&kind) {
            errors.not_supported(&path.child("type"), kind, &TYPES);
        }
        if let Some(reason) = site
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
            let words = "type cannot be set to null, use nullable as an alternative";
            errors.forbidden(&path.child("type"), words);
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
        if site.in_metadata && flag(schema, "x-kubernetes-embedded-resource") {
            let place = path.child("x-kubernetes-embedded-resource");
            errors.forbidden(&place, "must not be used inside of resource meta");
        }
    }

    fn additional(&mut self, schema: &Value, path: &Path, site: &Site<'_>) {
        let Some(below) = given(schema, "additionalProperties") else {
            return;
        };
        let place = path.child("additionalProperties");
        if map(schema, "properties").is_some() && *below != true {
            let words = "additionalProperties and properties are mutual exclusive";
            self.schema.forbidden(&place, words);
        }
        if below.is_object() {
            let node = site.node.and_then(|node| match &node.additional {
                Some(crate::crd::schema::Additional::Like(below)) => Some(&**below),
                _ => None,
            });
            let mut next = site.below(node);
            if site.in_metadata {
                next.no_defaults = Some("inside additionalProperties applying to object metadata".into());
            }
            self.walk(below, &place, &next);
        }
    }

    fn properties(&mut self, schema: &Value, path: &Path, site: &Site<'_>) {
        let resource = site.root || flag(schema, "x-kubernetes-embedded-resource");
        for (name, below) in map(schema, "properties").into_iter().flatten() {
            let node = site.node.and_then(|node| node.properties.get(name));
            let mut next = site.below(node);
            if resource && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                next.in_metadata = true;
                if site.root {
                    next.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.walk(below, &path.child("properties").key(name), &next);
        }
    }

    fn branches(&mut self, schema: &Value, path: &Path, site: &Site<'_>) {
        let next = site.below(None);
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

    fn items(&mut self, schema: &Value, path: &Path, site: &Site<'_>) {
        let Some(items) = given(schema, "items") else {
            return;
        };
        let mut next = site.below(site.node.and_then(|node| node.items.as_deref()));
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
        let words = format!("must be {wanted} if {key} is specified");
        if kind.is_empty() {
            self.schema.required(&path.child("type"), words);
        } else {
            self.schema.invalid(&path.child("type"), kind, words);
        }
        false
    }

    fn map_type(&mut self, schema: &Value, path: &Path) {
        if given(schema, MAP_TYPE).is_none() {
            return;
        }
        self.must_be(schema, "object", MAP_TYPE, path);
        let sort = text(schema, MAP_TYPE);
        if !matches!(sort, "atomic" | "granular") {
            self.schema
                .not_supported(&path.child(MAP_TYPE), sort, &["atomic", "granular"]);
        }
    }

    fn list_type(&mut self, schema: &Value, path: &Path) {
        if given(schema, LIST_TYPE).is_none() {
            return;
        }
        let sort = text(schema, LIST_TYPE);
        if self.must_be(schema, "array", LIST_TYPE, path)
            && sort == "set"
            && let Some(items) = given(schema, "items").filter(|items| items.is_object())
        {
            let words = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let (list, shown) = (
                text(items, LIST_TYPE),
                given(items, LIST_TYPE).map_or("null".into(), show::value),
            );
            match text(items, "type") {
                "array" if !matches!(list, "" | "atomic") => {
                    let place = path.child("items").child(LIST_TYPE);
                    self.schema
                        .push_shown(ErrorType::Invalid, &place, Some(shown), words);
                }
                "object" if text(items, MAP_TYPE) != "atomic" => {
                    let place = path.child("items").child(MAP_TYPE);
                    self.schema
                        .push_shown(ErrorType::Invalid, &place, Some(shown), words);
                }
                _ => {}
            }
        }
        if !matches!(sort, "atomic" | "set" | "map") {
            self.schema
                .not_supported(&path.child(LIST_TYPE), sort, &["atomic", "set", "map"]);
        }
    }

    fn list_keys(&mut self, schema: &Value, path: &Path) {
        let keys = words(schema, MAP_KEYS);
        let sort = text(schema, LIST_TYPE);
        if !keys.is_empty() && sort != "map" {
            let words = "must be map if x-kubernetes-list-map-keys is non-empty";
            if given(schema, LIST_TYPE).is_none() {
                self.schema.required(&path.child(LIST_TYPE), words);
            } else {
                self.schema.invalid(&path.child(LIST_TYPE), sort, words);
            }
        }
        let items = given(schema, "items");
        if sort == "map" {
            self.map_list(&keys, items, path);
        }
        if let Some(items) = items.filter(|items| items.is_object() && matches!(sort, "map" | "set")) {
            self.nullable_items(&keys, items, sort, path);
        }
    }

    fn map_list(&mut self, keys: &[String], items: Option<&Value>, path: &Path) {
        if keys.is_empty() {
            let words = "must not be empty if x-kubernetes-list-type is map";
            self.schema.required(&path.child(MAP_KEYS), words);
        }
        let Some(items) = items else {
            let words = "must have a schema if x-kubernetes-list-type is map";
            self.schema.required(&path.child("items"), words);
            return;
        };
        let place = path.child("items");
        if items.is_array() {
            let words = "must only have a single schema if x-kubernetes-list-type is map";
            self.schema
                .push_shown(ErrorType::Invalid, &place, Some(show::json(items)), words);
            return;
        }
        if text(items, "type") != "object" {
            let words = "must be object if parent array's x-kubernetes-list-type is map";
            self.schema
                .invalid(&place.child("type"), text(items, "type"), words);
            return;
        }
        for (at, key) in keys.iter().enumerate() {
            match items.get("properties").and_then(|properties| properties.get(key)) {
                Some(property) if matches!(text(property, "type"), "array" | "object") => {
                    let place = place.child("properties").key(key).child("type");
                    let words = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.schema.invalid(&place, text(items, "type"), words);
                }
                Some(_) => {}
                None => {
                    let words = "entries must all be names of item properties";
                    self.schema.invalid(&path.child(MAP_KEYS), keys.to_vec(), words);
                }
            }
            if keys.iter().take(at).any(|earlier| earlier == key) {
                let words = "must not contain duplicate entries";
                self.schema.invalid(&path.child(MAP_KEYS), keys.to_vec(), words);
            }
        }
    }

    fn nullable_items(&mut self, keys: &[String], items: &Value, sort: &str, path: &Path) {
        let place = path.child("items");
        if flag(items, "nullable") {
            let words = format!("cannot be nullable when x-kubernetes-list-type is {sort}");
            self.schema.forbidden(&place.child("nullable"), words);
        }
        if sort != "map" {
            return;
        }
        let required = words(items, "required");
        for key in keys {
            let Some(property) = items.get("properties").and_then(|properties| properties.get(key)) else {
                continue;
            };
            let place = place.child("properties").key(key);
            if !required.contains(key) && given(property, "default").is_none() {
                let words = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.schema.required(&place.child("default"), words);
            }
            if flag(property, "nullable") {
                let words = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.schema.forbidden(&place.child("nullable"), words);
            }
        }
    }

    /// The words around rules.
    fn rule_words(&mut self, schema: &Value, path: &Path, _site: &Site<'_>) {
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
            let place = path.child(RULES).index(at);
            let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
            let shown = || Some(show::quoted(message));
            if source.is_empty() {
                errors.required(&place.child("rule"), "rule is not specified");
            } else if !message.is_empty() && message.trim().is_empty() {
                let words = "must be non-empty if specified";
                errors.push_shown(ErrorType::Invalid, &place.child("message"), shown(), words);
            } else if lines(message.trim()) {
                let words = "must not contain line breaks";
                errors.push_shown(ErrorType::Invalid, &place.child("message"), shown(), words);
            } else if lines(source) && message.trim().is_empty() {
                let words = "message must be specified if rule contains line breaks";
                errors.required(&place.child("message"), words);
            }
            let expression = text(rule, "messageExpression");
            if !expression.is_empty() && expression.trim().is_empty() {
                let words = "messageExpression must be non-empty if specified";
                errors.required(&place.child("messageExpression"), words);
            }
            if let Some(reason) = given(rule, "reason").and_then(Value::as_str)
                && !REASONS.contains(&reason)
            {
                errors.not_supported(&place.child("reason"), reason, &REASONS);
            }
            let field = text(rule, "fieldPath");
            let field_place = place.child("fieldPath");
            if !field.is_empty() && field.trim().is_empty() {
                errors.invalid(&field_place, field, "must be non-empty if specified");
            }
            if lines(field) {
                let words = "must not contain line breaks";
                errors.push_shown(ErrorType::Invalid, &field_place, Some(show::quoted(field)), words);
            }
            if !field.is_empty() && paths::find(field, &Node::compile(schema), true).is_err() {
                errors.push_shown(
                    ErrorType::Invalid,
                    &field_place,
                    Some(show::quoted(field)),
                    "must be a valid path",
                );
            }
        }
    }

    fn compile(&mut self, schema: &Value, path: &Path, node: &Node, site: &Site<'_>) {
        let errors = &mut self.rules;
        let rules = given(schema, RULES).and_then(Value::as_array);
        for (at, source) in rules.into_iter().flatten().enumerate() {
            let place = path.child(RULES).index(at);
            let rule = Rule::compile(node, site.whole, source);
            let shown = || Some(internal::rule(source));
            if let Some(words) = rule.error {
                errors.push_shown(ErrorType::Invalid, &place.child("rule"), shown(), words);
                continue;
            }
            if let Some(words) = rule.message_error {
                errors.push_shown(
                    ErrorType::Invalid,
                    &place.child("messageExpression"),
                    shown(),
                    words,
                );
            }
            if rule.uses_old {
                if let Some(from) = &site.unmatched {
                    let words = format!(
                        "oldSelf cannot be used on the uncorrelatable portion of the schema within {from}"
                    );
                    let text = Some(show::quoted(text(source, "rule")));
                    errors.push_shown(ErrorType::Invalid, &place.child("rule"), text, words);
                }
            } else if let Some(flag) = given(source, "optionalOldSelf") {
                let words = "may not be set if oldSelf is not used in rule";
                errors.invalid(&place.child("optionalOldSelf"), flag.clone(), words);
            }
        }
    }
}
