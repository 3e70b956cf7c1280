//! JSON schemas of Go types and custom schemas, with the names of the API server.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::resource::Resource;
use crate::schema::{Field, ListKind, Schema, Type, TypeId};
use crate::tree;

/// The Go packages of the table, as in definition names.
const PACKAGES: [(&str, &str); 5] = [
    ("meta/", "io.k8s.apimachinery.pkg.apis.meta."),
    (
        "apiextensions/",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.",
    ),
    (
        "apiregistration/",
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.",
    ),
    ("runtime.", "io.k8s.apimachinery.pkg.runtime."),
    ("version.", "io.k8s.apimachinery.pkg.version."),
];

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// `core/v1.PodSpec` becomes `io.k8s.api.core.v1.PodSpec`.
pub(super) fn name(go: &str) -> String {
    let known = PACKAGES
        .iter()
        .find_map(|(package, prefix)| Some(format!("{prefix}{}", go.strip_prefix(package)?)));
    known.unwrap_or_else(|| format!("io.k8s.api.{}", go.replacen('/', ".", 1)))
}

/// `example.com`, `v1`, `Thing` become `com.example.v1.Thing`.
pub(super) fn custom_name(resource: &Resource) -> String {
    let group: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

/// Schemas by name, with everything they refer to.
pub(super) struct Schemas {
    schema: &'static Schema,
    done: BTreeMap<String, Value>,
    waiting: Vec<TypeId>,
}

impl Schemas {
    pub(super) fn new(schema: &'static Schema) -> Self {
        Self {
            schema,
            done: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    /// Adds a kind and the types of its fields.
    pub(super) fn add_kind(&mut self, group: &str, version: &str, kind: &str, id: TypeId) {
        self.add(id);
        let name = name(&self.schema.get(id).name);
        if let Some(schema) = self.done.get_mut(&name) {
            let kind = json!([{"group": group, "version": version, "kind": kind}]);
            tree::set(schema, &["x-kubernetes-group-version-kind"], kind);
        }
    }

    /// Adds a custom kind, with the descriptions of its definition.
    pub(super) fn add_custom(&mut self, resource: &Resource, given: &Value) {
        let mut schema = if given.is_object() {
            given.clone()
        } else {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        };
        let object = self.schema.named("meta/v1.ObjectMeta");
        let metadata = object.map_or_else(|| json!({"type": "object"}), |id| self.reference(id));
        tree::set(
            &mut schema,
            &["properties", "apiVersion"],
            text(TYPE_META_VERSION),
        );
        tree::set(&mut schema, &["properties", "kind"], text(TYPE_META_KIND));
        tree::set(
            &mut schema,
            &["properties", "metadata"],
            json!({"allOf": [metadata], "description": METADATA}),
        );
        let kind =
            json!([{"group": &*resource.group, "version": &*resource.version, "kind": &*resource.kind}]);
        tree::set(&mut schema, &["x-kubernetes-group-version-kind"], kind);
        self.done.insert(custom_name(resource), schema);
        self.drain();
    }

    /// Returns everything added so far.
    pub(super) fn finish(self) -> Value {
        Value::Object(self.done.into_iter().collect())
    }

    fn add(&mut self, id: TypeId) {
        self.waiting.push(id);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(id) = self.waiting.pop() {
            let found = self.schema.get(id);
            let name = name(&found.name);
            if self.done.contains_key(&name) {
                continue;
            }
            // Inserted before its fields are visited: types may be recursive.
            self.done.insert(name.clone(), Value::Null);
            let schema = self.of_struct(id);
            self.done.insert(name, schema);
        }
    }

    fn of_struct(&mut self, id: TypeId) -> Value {
        let found = self.schema.get(id);
        let mut properties = Map::new();
        for field in &found.fields {
            properties.insert(field.name.to_string(), self.of_field(field));
        }
        let required: Vec<&str> = found
            .fields
            .iter()
            .filter(|field| field.required)
            .map(|field| &*field.name)
            .collect();
        let mut schema = json!({"type": "object"});
        if !properties.is_empty() {
            tree::set(&mut schema, &["properties"], properties);
        }
        if !required.is_empty() {
            tree::set(&mut schema, &["required"], required);
        }
        if found.atomic {
            tree::set(&mut schema, &["x-kubernetes-map-type"], "atomic");
        }
        schema
    }

    fn of_field(&mut self, field: &Field) -> Value {
        let mut schema = self.of_type(&field.kind, free(field));
        if !field.choices.is_empty() {
            let choices: Vec<Value> = field.choices.iter().map(|one| Value::from(&**one)).collect();
            let at: &[&str] = if matches!(field.kind.pointee(), Type::List(_)) {
                &["items", "enum"]
            } else {
                &["enum"]
            };
            tree::set(&mut schema, at, choices);
        }
        if let Some(default) = default(field) {
            schema = with_siblings(schema);
            tree::set(&mut schema, &["default"], default);
        }
        if let Some(description) = described(field) {
            schema = with_siblings(schema);
            tree::set(&mut schema, &["description"], description);
        }
        put_rules(&mut schema, field);
        schema
    }

    fn of_type(&mut self, kind: &Type, free: &str) -> Value {
        match kind {
            Type::Pointer(inner) => self.of_type(inner, free),
            Type::Text(_) => json!({"type": "string"}),
            Type::Int(name) => {
                json!({"type": "integer", "format": if &**name == "int64" { "int64" } else { "int32" }})
            }
            Type::Float => json!({"type": "number", "format": "double"}),
            Type::Bool => json!({"type": "boolean"}),
            Type::Bytes => json!({"type": "string", "format": "byte"}),
            Type::Quantity => self.special(
                "io.k8s.apimachinery.pkg.api.resource.Quantity",
                json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            ),
            Type::IntOrString => self.special(
                "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
            ),
            Type::Time => self.special(
                &format!("{META}.Time"),
                json!({"type": "string", "format": "date-time"}),
            ),
            Type::MicroTime => self.special(
                &format!("{META}.MicroTime"),
                json!({"type": "string", "format": "date-time"}),
            ),
            Type::Duration => self.special(&format!("{META}.Duration"), json!({"type": "string"})),
            Type::Any => {
                let shape = if free.ends_with("FieldsV1") || free.ends_with("RawExtension") {
                    json!({"type": "object"})
                } else {
                    json!({})
                };
                self.special(free, shape)
            }
            Type::List(item) => json!({"type": "array", "items": self.of_item(item, free)}),
            Type::Map(item) => json!({"type": "object", "additionalProperties": self.of_item(item, free)}),
            Type::Struct(id) => self.reference(*id),
        }
    }

    /// The type of an item, with its zero value as the default.
    fn of_item(&mut self, kind: &Type, free: &str) -> Value {
        let schema = self.of_type(kind, free);
        match zero(kind) {
            Some(zero) => {
                let mut schema = with_siblings(schema);
                tree::set(&mut schema, &["default"], zero);
                schema
            }
            None => schema,
        }
    }

    fn special(&mut self, name: &str, schema: Value) -> Value {
        self.done.entry(name.to_owned()).or_insert(schema);
        refer(name)
    }

    fn reference(&mut self, id: TypeId) -> Value {
        self.waiting.push(id);
        refer(&name(&self.schema.get(id).name))
    }
}

fn refer(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// A reference cannot have siblings; it is moved into an `allOf`.
fn with_siblings(schema: Value) -> Value {
    if schema.get("$ref").is_some() {
        json!({"allOf": [schema]})
    } else {
        schema
    }
}

const TYPE_META_VERSION: &str = "The group and version in which this object is written.";
const TYPE_META_KIND: &str = "What this object is.";
const METADATA: &str = "Name, labels and everything else that all objects have.";

/// The type name of the part of a field that can be anything.
fn free(field: &Field) -> &'static str {
    match (&*field.free, &*field.name) {
        ("raw", _) => "io.k8s.apimachinery.pkg.runtime.RawExtension",
        ("any", "fieldsV1") => "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        ("schemaorarray", _) => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray"
        }
        ("schemaorbool", _) => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool"
        }
        ("schemaorstrings", _) => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray"
        }
        _ => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    }
}

/// Our own descriptions of the fields that every object has; all other texts are upstream's.
fn described(field: &Field) -> Option<&'static str> {
    match (&*field.name, field.wire.is_empty()) {
        ("apiVersion", true) => Some(TYPE_META_VERSION),
        ("kind", true) => Some(TYPE_META_KIND),
        ("metadata", _) => Some(METADATA),
        _ => None,
    }
}

/// The declared default, or else the zero value if Go always prints the field.
fn default(field: &Field) -> Option<Value> {
    if let Some(default) = &field.default {
        return Some(default.clone());
    }
    match &field.kind {
        Type::Struct(_) => Some(json!({})),
        kind if !field.omit_empty => zero(kind),
        _ => None,
    }
}

fn zero(kind: &Type) -> Option<Value> {
    match kind {
        Type::Text(_) => Some("".into()),
        Type::Int(_) | Type::Float => Some(0.into()),
        Type::Bool => Some(false.into()),
        Type::Struct(_) => Some(json!({})),
        _ => None,
    }
}

fn put_rules(schema: &mut Value, field: &Field) {
    match &field.list {
        ListKind::Set => tree::set(schema, &["x-kubernetes-list-type"], "set"),
        ListKind::Map(keys) => {
            let keys: Vec<Value> = keys.iter().map(|key| Value::from(&**key)).collect();
            tree::set(schema, &["x-kubernetes-list-type"], "map");
            tree::set(schema, &["x-kubernetes-list-map-keys"], keys);
        }
        ListKind::Atomic if matches!(field.kind.pointee(), Type::List(_)) => {
            tree::set(schema, &["x-kubernetes-list-type"], "atomic");
        }
        ListKind::Atomic => {}
    }
    if field.atomic_map {
        tree::set(schema, &["x-kubernetes-map-type"], "atomic");
    }
    if let Some(key) = &field.merge_key {
        tree::set(schema, &["x-kubernetes-patch-merge-key"], &**key);
    }
    let strategy = match (field.patch_merge, field.patch_retain_keys) {
        (true, true) => "merge,retainKeys",
        (true, false) => "merge",
        (false, true) => "retainKeys",
        (false, false) => return,
    };
    tree::set(schema, &["x-kubernetes-patch-strategy"], strategy);
}
