//! JSON schemas of Go types and custom schemas, with the names of the API server.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::resource::Resource;
use crate::schema::{Field, ListKind, Schema, Type, TypeId};
use crate::tree;

/// Prefixes of Go packages in the table, and the prefixes of their definition names.
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

/// Returns the definition name of a Go type: `io.k8s.api.core.v1.PodSpec` for `core/v1.PodSpec`.
pub(super) fn definition_name(go: &str) -> String {
    let known = PACKAGES
        .iter()
        .find_map(|(package, prefix)| Some(format!("{prefix}{}", go.strip_prefix(package)?)));
    known.unwrap_or_else(|| format!("io.k8s.api.{}", go.replacen('/', ".", 1)))
}

/// Returns the definition name of a custom kind: `com.example.v1.Thing` for `Thing` in `example.com/v1`.
pub(super) fn custom_definition_name(resource: &Resource) -> String {
    let group: Vec<&str> = resource.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

/// Schemas by name, including all schemas that they refer to.
pub(super) struct Schemas {
    schema: &'static Schema,
    done: BTreeMap<String, Value>,
    pending: Vec<TypeId>,
}

impl Schemas {
    pub(super) fn new(schema: &'static Schema) -> Self {
        Self {
            schema,
            done: BTreeMap::new(),
            pending: Vec::new(),
        }
    }

    /// Adds a kind and the types of its fields.
    pub(super) fn add_kind(&mut self, group: &str, version: &str, kind: &str, id: TypeId) {
        self.add(id);
        let name = definition_name(&self.schema.get(id).name);
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
        let object = self.schema.find_struct("meta/v1.ObjectMeta");
        let metadata = object.map_or_else(|| json!({"type": "object"}), |id| self.reference(id));
        tree::set(
            &mut schema,
            &["properties", "apiVersion"],
            described_string(TYPE_META_VERSION),
        );
        tree::set(
            &mut schema,
            &["properties", "kind"],
            described_string(TYPE_META_KIND),
        );
        tree::set(
            &mut schema,
            &["properties", "metadata"],
            json!({"allOf": [metadata], "description": METADATA}),
        );
        let kind =
            json!([{"group": &*resource.group, "version": &*resource.version, "kind": &*resource.kind}]);
        tree::set(&mut schema, &["x-kubernetes-group-version-kind"], kind);
        self.done.insert(custom_definition_name(resource), schema);
        self.drain();
    }

    /// Returns all schemas that were added.
    pub(super) fn finish(self) -> Value {
        Value::Object(self.done.into_iter().collect())
    }

    fn add(&mut self, id: TypeId) {
        self.pending.push(id);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(id) = self.pending.pop() {
            let found = self.schema.get(id);
            let name = definition_name(&found.name);
            if self.done.contains_key(&name) {
                continue;
            }
            // Insert a placeholder before the fields are visited, because types may be recursive.
            self.done.insert(name.clone(), Value::Null);
            let schema = self.struct_schema(id);
            self.done.insert(name, schema);
        }
    }

    fn struct_schema(&mut self, id: TypeId) -> Value {
        let found = self.schema.get(id);
        let mut properties = Map::new();
        for field in &found.fields {
            properties.insert(field.name.to_string(), self.field_schema(field));
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

    fn field_schema(&mut self, field: &Field) -> Value {
        let mut schema = self.type_schema(&field.kind, free_form_definition(field));
        if !field.choices.is_empty() {
            let choices: Vec<Value> = field.choices.iter().map(|one| Value::from(&**one)).collect();
            let at: &[&str] = if matches!(field.kind.pointee(), Type::List(_)) {
                &["items", "enum"]
            } else {
                &["enum"]
            };
            tree::set(&mut schema, at, choices);
        }
        if let Some(default) = default_value(field) {
            schema = with_siblings(schema);
            tree::set(&mut schema, &["default"], default);
        }
        if let Some(description) = standard_description(field) {
            schema = with_siblings(schema);
            tree::set(&mut schema, &["description"], description);
        }
        set_extensions(&mut schema, field);
        schema
    }

    fn type_schema(&mut self, kind: &Type, free_form: &str) -> Value {
        match kind {
            Type::Pointer(inner) => self.type_schema(inner, free_form),
            Type::Text(_) => json!({"type": "string"}),
            Type::Int(name) => {
                json!({"type": "integer", "format": if &**name == "int64" { "int64" } else { "int32" }})
            }
            Type::Float => json!({"type": "number", "format": "double"}),
            Type::Bool => json!({"type": "boolean"}),
            Type::Bytes => json!({"type": "string", "format": "byte"}),
            Type::Quantity => self.define(
                "io.k8s.apimachinery.pkg.api.resource.Quantity",
                json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            ),
            Type::IntOrString => self.define(
                "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
            ),
            Type::Time => self.define(
                &format!("{META}.Time"),
                json!({"type": "string", "format": "date-time"}),
            ),
            Type::MicroTime => self.define(
                &format!("{META}.MicroTime"),
                json!({"type": "string", "format": "date-time"}),
            ),
            Type::Duration => self.define(&format!("{META}.Duration"), json!({"type": "string"})),
            Type::Any => {
                let shape = if free_form.ends_with("FieldsV1") || free_form.ends_with("RawExtension") {
                    json!({"type": "object"})
                } else {
                    json!({})
                };
                self.define(free_form, shape)
            }
            Type::List(item) => json!({"type": "array", "items": self.item_schema(item, free_form)}),
            Type::Map(item) => {
                json!({"type": "object", "additionalProperties": self.item_schema(item, free_form)})
            }
            Type::Struct(id) => self.reference(*id),
        }
    }

    /// Returns the schema of an item of a list or map, with its zero value as the default.
    fn item_schema(&mut self, kind: &Type, free_form: &str) -> Value {
        let schema = self.type_schema(kind, free_form);
        match zero_value(kind) {
            Some(zero) => {
                let mut schema = with_siblings(schema);
                tree::set(&mut schema, &["default"], zero);
                schema
            }
            None => schema,
        }
    }

    fn define(&mut self, name: &str, schema: Value) -> Value {
        self.done.entry(name.to_owned()).or_insert(schema);
        reference_to(name)
    }

    fn reference(&mut self, id: TypeId) -> Value {
        self.pending.push(id);
        reference_to(&definition_name(&self.schema.get(id).name))
    }
}

fn reference_to(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn described_string(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// Moves a reference into an `allOf`, because a reference cannot have sibling keys.
fn with_siblings(schema: Value) -> Value {
    if schema.get("$ref").is_some() {
        json!({"allOf": [schema]})
    } else {
        schema
    }
}

const TYPE_META_VERSION: &str = "API group and version of the object.";
const TYPE_META_KIND: &str = "Kind of the object.";
const METADATA: &str = "Metadata of the object, such as its name and labels.";

/// Returns the definition name of the part of a field that can contain any value.
fn free_form_definition(field: &Field) -> &'static str {
    match (&*field.free_form, &*field.name) {
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

/// Returns our own description of a field that every object has. The descriptions of all other fields belong
/// to upstream.
fn standard_description(field: &Field) -> Option<&'static str> {
    match (&*field.name, field.wire.is_empty()) {
        ("apiVersion", true) => Some(TYPE_META_VERSION),
        ("kind", true) => Some(TYPE_META_KIND),
        ("metadata", _) => Some(METADATA),
        _ => None,
    }
}

/// Returns the declared default, or the zero value if Go always prints the field.
fn default_value(field: &Field) -> Option<Value> {
    if let Some(default) = &field.default {
        return Some(default.clone());
    }
    match &field.kind {
        Type::Struct(_) => Some(json!({})),
        kind if !field.omit_empty => zero_value(kind),
        _ => None,
    }
}

fn zero_value(kind: &Type) -> Option<Value> {
    match kind {
        Type::Text(_) => Some("".into()),
        Type::Int(_) | Type::Float => Some(0.into()),
        Type::Bool => Some(false.into()),
        Type::Struct(_) => Some(json!({})),
        _ => None,
    }
}

fn set_extensions(schema: &mut Value, field: &Field) {
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
