//! Decoding of the YAML tree of `Chart.yaml` or a lock file, with the conversions of `sigs.k8s.io/yaml`
//! (numbers and booleans are converted to strings if a string is expected) and Go's messages.

use std::collections::BTreeMap;

use mainstay_gostd::float::format_float32;
use mainstay_yaml::Value;

use crate::chart::Lock;
use crate::dialect::Dialect;
use crate::go;
use crate::metadata::{Dependency, Draft, ImportValue, Maintainer};

/// Error of a field with the wrong type, with the message of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error unmarshaling JSON: while decoding JSON: {0}")]
pub struct DecodeError(String);

/// Decoder of one document. Like Go's, it keeps the first error, decodes the remaining fields and fails at
/// the end.
pub(super) struct Decoder {
    dialect: Dialect,
    failed: Option<String>,
}

/// Position of a field: its struct, and its path from the outermost struct.
#[derive(Clone, Copy)]
struct FieldPosition<'a> {
    owner: &'a str,
    path: &'a str,
}

impl Decoder {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            failed: None,
        }
    }

    /// Decodes only `apiVersion`.
    pub(super) fn api_version(mut self, value: &Value) -> Result<String, DecodeError> {
        let mut version = String::new();
        match value {
            Value::Map(map) => {
                for (key, value) in map {
                    if matches_field(key, "apiVersion") {
                        let at = FieldPosition {
                            owner: "chartBase",
                            path: "apiVersion",
                        };
                        self.decode_string(&mut version, value, at);
                    }
                }
            }
            other => self.check_root(other, "loader.chartBase"),
        }
        self.finish(version)
    }

    /// Decodes `Chart.yaml` or `requirements.yaml` into `draft`. Replaces only fields that are present.
    pub(super) fn metadata(mut self, draft: &mut Draft, value: &Value) -> Result<(), DecodeError> {
        match value {
            Value::Map(map) => {
                for (key, value) in map {
                    self.decode_metadata_field(draft, key, value);
                }
            }
            other => {
                let package = self.package();
                self.check_root(other, &format!("{package}.Metadata"));
            }
        }
        self.finish(())
    }

    fn decode_metadata_field(&mut self, draft: &mut Draft, key: &str, value: &Value) {
        let owner = "Metadata";
        let md = &mut draft.metadata;
        match METADATA
            .iter()
            .find(|name| **name == key)
            .or_else(|| METADATA.iter().find(|name| matches_field(key, name)))
        {
            None => {}
            Some(&path) => {
                let at = FieldPosition { owner, path };
                match path {
                    "name" => self.decode_string(&mut md.name, value, at),
                    "home" => self.decode_string(&mut md.home, value, at),
                    "sources" => self.decode_strings(&mut md.sources, value, at),
                    "version" => self.decode_string(&mut md.version, value, at),
                    "description" => self.decode_string(&mut md.description, value, at),
                    "keywords" => self.decode_strings(&mut md.keywords, value, at),
                    "maintainers" => self.decode_maintainers(&mut draft.maintainers, value, at),
                    "icon" => self.decode_string(&mut md.icon, value, at),
                    "apiVersion" => self.decode_string(&mut md.api_version, value, at),
                    "condition" => self.decode_string(&mut md.condition, value, at),
                    "tags" => self.decode_string(&mut md.tags, value, at),
                    "appVersion" => self.decode_string(&mut md.app_version, value, at),
                    "deprecated" => self.decode_boolean(&mut md.deprecated, value, at),
                    "annotations" => self.decode_annotations(&mut md.annotations, value, at),
                    "kubeVersion" => self.decode_string(&mut md.kube_version, value, at),
                    "dependencies" => self.decode_dependencies(&mut draft.dependencies, value, at),
                    _ => self.decode_string(&mut md.kind, value, at),
                }
            }
        }
    }

    /// Decodes a lock file. Returns `None` for `null`.
    pub(super) fn lock(mut self, value: &Value) -> Result<Option<Lock>, DecodeError> {
        let mut lock = Lock::default();
        match value {
            Value::Null => return Ok(None),
            Value::Map(map) => {
                for (key, value) in map {
                    let at = |path| FieldPosition { owner: "Lock", path };
                    if matches_field(key, "generated") {
                        self.decode_string(&mut lock.generated, value, at("generated"));
                    } else if matches_field(key, "digest") {
                        self.decode_string(&mut lock.digest, value, at("digest"));
                    } else if matches_field(key, "dependencies") {
                        let mut list = None;
                        self.decode_dependencies(&mut list, value, at("dependencies"));
                        lock.dependencies = list.into_iter().flatten().flatten().collect();
                    }
                }
            }
            other => {
                let package = self.package();
                self.check_root(other, &format!("{package}.Lock"));
            }
        }
        self.finish(Some(lock))
    }

    fn package(&self) -> &'static str {
        self.dialect.metadata_package()
    }

    fn finish<T>(self, value: T) -> Result<T, DecodeError> {
        match self.failed {
            None => Ok(value),
            Some(text) => Err(DecodeError(text)),
        }
    }

    fn check_root(&mut self, value: &Value, wanted: &str) {
        if !value.is_null() {
            self.fail(format!(
                "json: cannot unmarshal {} into Go value of type {wanted}",
                value.json_kind()
            ));
        }
    }

    fn mismatch(&mut self, value: &Value, at: FieldPosition<'_>, wanted: &str) {
        let FieldPosition { owner, path } = at;
        let found = value.json_kind();
        self.fail(format!(
            "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}"
        ));
    }

    fn fail(&mut self, text: String) {
        self.failed.get_or_insert(text);
    }

    fn decode_string(&mut self, field: &mut String, value: &Value, at: FieldPosition<'_>) {
        match scalar_text(value) {
            Some(text) => *field = text,
            None if value.is_null() => {}
            None => self.mismatch(value, at, "string"),
        }
    }

    fn decode_boolean(&mut self, field: &mut bool, value: &Value, at: FieldPosition<'_>) {
        match value {
            Value::Bool(value) => *field = *value,
            Value::Null => {}
            other => self.mismatch(other, at, "bool"),
        }
    }

    fn decode_strings(&mut self, field: &mut Vec<String>, value: &Value, at: FieldPosition<'_>) {
        match value {
            Value::List(items) => {
                field.clear();
                for item in items {
                    let mut text = String::new();
                    self.decode_string(&mut text, item, at);
                    field.push(text);
                }
            }
            Value::Null => field.clear(),
            other => self.mismatch(other, at, "[]string"),
        }
    }

    fn decode_annotations(
        &mut self,
        field: &mut BTreeMap<String, String>,
        value: &Value,
        at: FieldPosition<'_>,
    ) {
        match value {
            Value::Map(map) => {
                for (key, value) in map {
                    let mut text = String::new();
                    self.decode_string(&mut text, value, at);
                    field.insert(key.clone(), text);
                }
            }
            Value::Null => field.clear(),
            other => self.mismatch(other, at, "map[string]string"),
        }
    }

    fn decode_maintainers(
        &mut self,
        field: &mut Vec<Option<Maintainer>>,
        value: &Value,
        at: FieldPosition<'_>,
    ) {
        let package = self.package();
        match value {
            Value::List(items) => {
                *field = items
                    .iter()
                    .map(|item| self.decode_maintainer(item, at))
                    .collect();
            }
            Value::Null => field.clear(),
            other => self.mismatch(other, at, &format!("[]*{package}.Maintainer")),
        }
    }

    fn decode_maintainer(&mut self, value: &Value, at: FieldPosition<'_>) -> Option<Maintainer> {
        let mut maintainer = Maintainer::default();
        match value {
            Value::Null => return None,
            Value::Map(map) => {
                for (key, value) in map {
                    let at = |path| FieldPosition {
                        owner: "Maintainer",
                        path,
                    };
                    if matches_field(key, "name") {
                        self.decode_string(&mut maintainer.name, value, at("maintainers.name"));
                    } else if matches_field(key, "email") {
                        self.decode_string(&mut maintainer.email, value, at("maintainers.email"));
                    } else if matches_field(key, "url") {
                        self.decode_string(&mut maintainer.url, value, at("maintainers.url"));
                    }
                }
            }
            other => {
                let package = self.package();
                self.mismatch(other, at, &format!("{package}.Maintainer"));
            }
        }
        Some(maintainer)
    }

    fn decode_dependencies(
        &mut self,
        field: &mut Option<Vec<Option<Dependency>>>,
        value: &Value,
        at: FieldPosition<'_>,
    ) {
        let package = self.package();
        match value {
            Value::List(items) => {
                *field = Some(
                    items
                        .iter()
                        .map(|item| self.decode_dependency(item, at))
                        .collect(),
                );
            }
            Value::Null => *field = None,
            other => self.mismatch(other, at, &format!("[]*{package}.Dependency")),
        }
    }

    fn decode_dependency(&mut self, value: &Value, at: FieldPosition<'_>) -> Option<Dependency> {
        let mut dependency = Dependency::default();
        match value {
            Value::Null => return None,
            Value::Map(map) => {
                for (key, value) in map {
                    self.decode_dependency_field(&mut dependency, key, value);
                }
            }
            other => {
                let package = self.package();
                self.mismatch(other, at, &format!("{package}.Dependency"));
            }
        }
        Some(dependency)
    }

    fn decode_dependency_field(&mut self, dependency: &mut Dependency, key: &str, value: &Value) {
        let known = DEPENDENCY.iter().find(|(name, _)| *name == key);
        let Some((name, path)) =
            known.or_else(|| DEPENDENCY.iter().find(|(name, _)| matches_field(key, name)))
        else {
            return;
        };
        let at = FieldPosition {
            owner: "Dependency",
            path,
        };
        match *name {
            "name" => self.decode_string(&mut dependency.name, value, at),
            "version" => self.decode_string(&mut dependency.version, value, at),
            "repository" => self.decode_string(&mut dependency.repository, value, at),
            "condition" => self.decode_string(&mut dependency.condition, value, at),
            "tags" => self.decode_strings(&mut dependency.tags, value, at),
            "enabled" => self.decode_boolean(&mut dependency.enabled, value, at),
            "alias" => self.decode_string(&mut dependency.alias, value, at),
            _ => match value {
                Value::List(items) => {
                    dependency.import_values = items.iter().map(decode_import_value).collect();
                }
                Value::Null => dependency.import_values.clear(),
                other => self.mismatch(other, at, "[]interface {}"),
            },
        }
    }
}

const METADATA: [&str; 17] = [
    "name",
    "home",
    "sources",
    "version",
    "description",
    "keywords",
    "maintainers",
    "icon",
    "apiVersion",
    "condition",
    "tags",
    "appVersion",
    "deprecated",
    "annotations",
    "kubeVersion",
    "dependencies",
    "type",
];

const DEPENDENCY: [(&str, &str); 8] = [
    ("name", "dependencies.name"),
    ("version", "dependencies.version"),
    ("repository", "dependencies.repository"),
    ("condition", "dependencies.condition"),
    ("tags", "dependencies.tags"),
    ("enabled", "dependencies.enabled"),
    ("import-values", "dependencies.import-values"),
    ("alias", "dependencies.alias"),
];

fn decode_import_value(value: &Value) -> ImportValue {
    match value {
        Value::String(name) => ImportValue::Export(name.clone()),
        Value::Map(map) => {
            let field = |key| go::print(&map.get(key).map_or(Value::Null, numbers_to_floats));
            ImportValue::Table {
                child: field("child"),
                parent: field("parent"),
            }
        }
        _ => ImportValue::Other,
    }
}

/// Converts all numbers to floats, as a round trip through JSON does.
fn numbers_to_floats(value: &Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.iter().map(numbers_to_floats).collect()),
        Value::Map(map) => Value::Map(
            map.iter()
                .map(|(key, value)| (key.clone(), numbers_to_floats(value)))
                .collect(),
        ),
        other => other.as_f64().map_or_else(|| other.clone(), Value::Float),
    }
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(value) => Some(value.to_string()),
        Value::Uint(value) => Some(value.to_string()),
        Value::Float(value) => Some(format_float32(*value)),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}

/// Whether Go's JSON decoder matches `key` to the field `name`. It ignores case.
fn matches_field(key: &str, name: &str) -> bool {
    key.eq_ignore_ascii_case(name)
}
