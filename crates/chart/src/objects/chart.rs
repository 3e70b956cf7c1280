//! `.Chart`: takes metadata, gives the map Helm 4 shows, or the struct Helm 3 shows.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mainstay_template::{GoKind, List, ListType, Map, MapType, Object, Str, Value};

use crate::dialect::Dialect;
use crate::metadata::{Dependency, ImportValue, Maintainer, Metadata};

/// What templates see as `.Chart`.
pub(crate) fn object(metadata: &Metadata, is_root: bool, dialect: Dialect) -> Value {
    match dialect {
        Dialect::Helm4 => {
            let mut fields = fields(metadata, Dialect::Helm4);
            fields.push(Field {
                name: "IsRoot",
                key: "IsRoot",
                value: Value::Bool(is_root),
            });
            by_go_name(fields)
        }
        Dialect::Helm3 => Value::object(Struct {
            type_name: "struct { chart.Metadata; IsRoot bool }",
            fields: fields(metadata, Dialect::Helm3),
            is_root: Some(is_root),
        }),
    }
}

/// One field of a Go struct: its name in templates, its name in YAML, what it holds.
struct Field {
    name: &'static str,
    key: &'static str,
    value: Value,
}

fn text(name: &'static str, key: &'static str, text: &str) -> Field {
    Field {
        name,
        key,
        value: Value::string(text),
    }
}

/// The fields in the order of Helm's struct.
fn fields(metadata: &Metadata, dialect: Dialect) -> Vec<Field> {
    let strings = |items: &[String]| strings(items, dialect);
    vec![
        text("Name", "name", &metadata.name),
        text("Home", "home", &metadata.home),
        Field {
            name: "Sources",
            key: "sources",
            value: strings(&metadata.sources),
        },
        text("Version", "version", &metadata.version),
        text("Description", "description", &metadata.description),
        Field {
            name: "Keywords",
            key: "keywords",
            value: strings(&metadata.keywords),
        },
        Field {
            name: "Maintainers",
            key: "maintainers",
            value: maintainers(&metadata.maintainers, dialect),
        },
        text("Icon", "icon", &metadata.icon),
        text("APIVersion", "apiVersion", &metadata.api_version),
        text("Condition", "condition", &metadata.condition),
        text("Tags", "tags", &metadata.tags),
        text("AppVersion", "appVersion", &metadata.app_version),
        Field {
            name: "Deprecated",
            key: "deprecated",
            value: Value::Bool(metadata.deprecated),
        },
        Field {
            name: "Annotations",
            key: "annotations",
            value: annotations(&metadata.annotations),
        },
        text("KubeVersion", "kubeVersion", &metadata.kube_version),
        Field {
            name: "Dependencies",
            key: "dependencies",
            value: dependencies(metadata.dependencies.as_deref().unwrap_or_default(), dialect),
        },
        text("Type", "type", &metadata.kind),
    ]
}

fn strings(items: &[String], dialect: Dialect) -> Value {
    let ty = if dialect == Dialect::Helm4 {
        ListType::Any
    } else {
        ListType::String
    };
    Value::List(List::new(
        ty,
        items.iter().map(|item| Value::string(item.as_str())).collect(),
    ))
}

fn annotations(entries: &BTreeMap<String, String>) -> Value {
    if entries.is_empty() {
        return Value::Map(Map::nil(MapType::String));
    }
    let entries = entries
        .iter()
        .map(|(key, value)| (Str::from(key.as_str()), Value::string(value.as_str())));
    Value::Map(Map::new(MapType::String, entries.collect()))
}

fn maintainers(maintainers: &[Maintainer], dialect: Dialect) -> Value {
    let fields = |maintainer: &Maintainer| {
        vec![
            text("Name", "name", &maintainer.name),
            text("Email", "email", &maintainer.email),
            text("URL", "url", &maintainer.url),
        ]
    };
    pointers(
        "*chart.Maintainer",
        "[]*chart.Maintainer",
        maintainers.iter().map(fields),
        dialect,
    )
}

fn dependencies(dependencies: &[Dependency], dialect: Dialect) -> Value {
    let fields = |dependency: &Dependency| {
        let imports = dependency.import_values.iter().map(import).collect();
        vec![
            text("Name", "name", &dependency.name),
            text("Version", "version", &dependency.version),
            text("Repository", "repository", &dependency.repository),
            text("Condition", "condition", &dependency.condition),
            Field {
                name: "Tags",
                key: "tags",
                value: strings(&dependency.tags, dialect),
            },
            Field {
                name: "Enabled",
                key: "enabled",
                value: Value::Bool(dependency.enabled),
            },
            Field {
                name: "ImportValues",
                key: "import-values",
                value: Value::list(imports),
            },
            text("Alias", "alias", &dependency.alias),
        ]
    };
    pointers(
        "*chart.Dependency",
        "[]*chart.Dependency",
        dependencies.iter().map(fields),
        dialect,
    )
}

fn import(import: &ImportValue) -> Value {
    match import {
        ImportValue::Export(name) => Value::string(name.as_str()),
        ImportValue::Table { child, parent } => Value::map(BTreeMap::from([
            ("child".into(), Value::string(child.as_str())),
            ("parent".into(), Value::string(parent.as_str())),
        ])),
        ImportValue::Other => Value::Nil,
    }
}

/// A slice of structs: maps in Helm 4, pointers in Helm 3.
fn pointers(
    item: &'static str,
    slice: &'static str,
    structs: impl Iterator<Item = Vec<Field>>,
    dialect: Dialect,
) -> Value {
    match dialect {
        Dialect::Helm4 => Value::list(structs.map(by_go_name).collect()),
        Dialect::Helm3 => {
            let object = |fields| {
                Value::object(Struct {
                    type_name: item,
                    fields,
                    is_root: None,
                })
            };
            Value::List(List::new(ListType::Named(slice), structs.map(object).collect()))
        }
    }
}

fn by_go_name(fields: Vec<Field>) -> Value {
    Value::map(
        fields
            .into_iter()
            .map(|field| (Str::from(field.name), field.value))
            .collect(),
    )
}

/// A struct of Helm 3.
struct Struct {
    type_name: &'static str,
    fields: Vec<Field>,
    /// The root's struct wraps the metadata and adds this.
    is_root: Option<bool>,
}

impl Object for Struct {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn go_kind(&self) -> GoKind {
        if self.is_root.is_some() {
            GoKind::Struct
        } else {
            GoKind::Pointer
        }
    }

    fn field(&self, name: &str) -> Option<Value> {
        match (name, self.is_root) {
            ("IsRoot", Some(is_root)) => Some(Value::Bool(is_root)),
            _ => self
                .fields
                .iter()
                .find(|field| field.name == name)
                .map(|field| field.value.clone()),
        }
    }

    /// Go shows addresses for the pointers inside; nothing can depend on those.
    fn print(&self) -> Str {
        let texts: Vec<String> = self.fields.iter().map(|field| shown(&field.value)).collect();
        match self.is_root {
            Some(is_root) => format!("{{{{{}}} {is_root}}}", texts.join(" ")).into(),
            None => format!("&{{{}}}", texts.join(" ")).into(),
        }
    }

    fn plain(&self) -> Value {
        Value::map(
            self.json_fields()
                .unwrap_or_default()
                .into_iter()
                .collect::<BTreeMap<_, _>>(),
        )
    }

    /// Every field is `omitempty`.
    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        let said = self.fields.iter().filter(|field| !is_empty(&field.value));
        let root = self
            .is_root
            .map(|is_root| (Str::from("IsRoot"), Value::Bool(is_root)));
        Some(
            said.map(|field| (Str::from(field.key), field.value.clone()))
                .chain(root)
                .collect(),
        )
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::List(list) => list.items().is_empty(),
        Value::Map(map) => map.entries().is_empty(),
        Value::Bool(value) => !value,
        _ => false,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::List(list) => format!(
            "[{}]",
            list.items().iter().map(shown).collect::<Vec<_>>().join(" ")
        ),
        Value::Map(map) => {
            let entries = map.entries();
            let texts: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{key}:{}", shown(value)))
                .collect();
            format!("map[{}]", texts.join(" "))
        }
        Value::Object(object) => object.print().to_string(),
        _ => String::new(),
    }
}
