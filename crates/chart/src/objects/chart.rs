//! `.Chart`: the metadata of a chart as visible in templates.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use mainstay_template::{
    Call, Failure, GoKind, List, ListType, Map, MapType, NamedType, Object, Signature, Str, Value,
};

use crate::dialect::Dialect;
use crate::metadata::{Dependency, ImportValue, Maintainer, Metadata};

/// Returns `.Chart`, a map or a struct; see [`Dialect::shows_chart_as_map`].
pub(crate) fn object(metadata: &Metadata, is_root: bool, dialect: Dialect) -> Value {
    let builder = Builder { dialect };
    let mut fields = builder.fields(metadata);
    if dialect.shows_chart_as_map() {
        fields.push(Field {
            name: "IsRoot",
            key: "IsRoot",
            value: Value::Bool(is_root),
        });
        by_go_name(fields)
    } else {
        Value::object(GoStruct {
            type_name: "struct { chart.Metadata; IsRoot bool }",
            fields: fields.into(),
            struct_kind: StructKind::Chart { is_root },
        })
    }
}

static MAINTAINERS: NamedType = NamedType {
    name: "[]*chart.Maintainer",
    methods: &[],
};

static DEPENDENCIES: NamedType = NamedType {
    name: "[]*chart.Dependency",
    methods: &[],
};

/// A field of a Go struct: Go name, YAML name and value.
struct Field {
    name: &'static str,
    key: &'static str,
    value: Value,
}

fn text_field(name: &'static str, key: &'static str, text: &str) -> Field {
    Field {
        name,
        key,
        value: Value::string(text),
    }
}

/// Builder of the values in `.Chart`.
struct Builder {
    dialect: Dialect,
}

impl Builder {
    /// Returns the fields in the order of Helm's struct.
    fn fields(&self, metadata: &Metadata) -> Vec<Field> {
        vec![
            text_field("Name", "name", &metadata.name),
            text_field("Home", "home", &metadata.home),
            Field {
                name: "Sources",
                key: "sources",
                value: self.strings(&metadata.sources),
            },
            text_field("Version", "version", &metadata.version),
            text_field("Description", "description", &metadata.description),
            Field {
                name: "Keywords",
                key: "keywords",
                value: self.strings(&metadata.keywords),
            },
            Field {
                name: "Maintainers",
                key: "maintainers",
                value: self.maintainers(&metadata.maintainers),
            },
            text_field("Icon", "icon", &metadata.icon),
            text_field("APIVersion", "apiVersion", &metadata.api_version),
            text_field("Condition", "condition", &metadata.condition),
            text_field("Tags", "tags", &metadata.tags),
            text_field("AppVersion", "appVersion", &metadata.app_version),
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
            text_field("KubeVersion", "kubeVersion", &metadata.kube_version),
            Field {
                name: "Dependencies",
                key: "dependencies",
                value: self.dependencies(metadata.dependencies.as_deref().unwrap_or_default()),
            },
            text_field("Type", "type", &metadata.kind),
        ]
    }

    fn strings(&self, items: &[String]) -> Value {
        let ty = if self.dialect.shows_chart_as_map() {
            ListType::Any
        } else {
            ListType::String
        };
        Value::List(List::new(
            ty,
            items.iter().map(|item| Value::string(item.as_str())).collect(),
        ))
    }

    fn maintainers(&self, maintainers: &[Maintainer]) -> Value {
        let fields = |maintainer: &Maintainer| {
            vec![
                text_field("Name", "name", &maintainer.name),
                text_field("Email", "email", &maintainer.email),
                text_field("URL", "url", &maintainer.url),
            ]
        };
        self.structs("*chart.Maintainer", &MAINTAINERS, maintainers.iter().map(fields))
    }

    fn dependencies(&self, dependencies: &[Dependency]) -> Value {
        let fields = |dependency: &Dependency| {
            let imports = dependency.import_values.iter().map(import_value).collect();
            vec![
                text_field("Name", "name", &dependency.name),
                text_field("Version", "version", &dependency.version),
                text_field("Repository", "repository", &dependency.repository),
                text_field("Condition", "condition", &dependency.condition),
                Field {
                    name: "Tags",
                    key: "tags",
                    value: self.strings(&dependency.tags),
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
                text_field("Alias", "alias", &dependency.alias),
            ]
        };
        self.structs(
            "*chart.Dependency",
            &DEPENDENCIES,
            dependencies.iter().map(fields),
        )
    }

    /// Returns a list of maps, or a slice of pointers to structs. `item` and `slice` are the Go types.
    fn structs(
        &self,
        item: &'static str,
        slice: &'static NamedType,
        structs: impl Iterator<Item = Vec<Field>>,
    ) -> Value {
        if self.dialect.shows_chart_as_map() {
            return Value::list(structs.map(by_go_name).collect());
        }
        let object = |fields| {
            Value::object(GoStruct {
                type_name: item,
                fields: Vec::into(fields),
                struct_kind: StructKind::Item,
            })
        };
        Value::List(List::new(ListType::Named(slice), structs.map(object).collect()))
    }
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

fn import_value(import: &ImportValue) -> Value {
    match import {
        ImportValue::Export(name) => Value::string(name.as_str()),
        ImportValue::Table { child, parent } => Value::map(BTreeMap::from([
            ("child".into(), Value::string(child.as_str())),
            ("parent".into(), Value::string(parent.as_str())),
        ])),
        ImportValue::Other => Value::Nil,
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

/// A Go struct, which Helm 3 passes to templates.
struct GoStruct {
    type_name: &'static str,
    fields: Rc<[Field]>,
    struct_kind: StructKind,
}

/// Identifies a struct of a chart.
#[derive(Clone, Copy)]
enum StructKind {
    /// `.Chart`, which embeds the metadata.
    Chart { is_root: bool },
    /// `.Chart.Metadata`.
    Metadata,
    /// A pointer to a maintainer or a dependency.
    Item,
}

impl Object for GoStruct {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.into()
    }

    fn go_kind(&self) -> GoKind {
        match self.struct_kind {
            StructKind::Chart { .. } | StructKind::Metadata => GoKind::Struct,
            StructKind::Item => GoKind::Pointer,
        }
    }

    fn field(&self, name: &str) -> Option<Value> {
        match (name, self.struct_kind) {
            ("IsRoot", StructKind::Chart { is_root }) => Some(Value::Bool(is_root)),
            ("Metadata", StructKind::Chart { .. }) => Some(Value::object(Self {
                type_name: "chart.Metadata",
                fields: Rc::clone(&self.fields),
                struct_kind: StructKind::Metadata,
            })),
            _ => self
                .fields
                .iter()
                .find(|field| field.name == name)
                .map(|field| field.value.clone()),
        }
    }

    /// `Validate` is a method of the pointer types. The metadata itself is not addressable.
    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Validate" && matches!(self.struct_kind, StructKind::Item)).then_some(Signature {
            params: &[],
            variadic: false,
        })
    }

    /// Calls `Validate`, which returns no error for a chart that was loaded.
    fn call(&self, _name: &str, _call: &mut Call<'_>) -> Result<Value, Failure> {
        Ok(Value::object(NoError))
    }

    /// Omits the addresses that Go prints for nested pointers. Templates cannot depend on them.
    fn print(&self) -> Str {
        let texts: Vec<String> = self.fields.iter().map(|field| format(&field.value)).collect();
        let texts = texts.join(" ");
        match self.struct_kind {
            StructKind::Chart { is_root } => format!("{{{{{texts}}} {is_root}}}").into(),
            StructKind::Metadata => format!("{{{texts}}}").into(),
            StructKind::Item => format!("&{{{texts}}}").into(),
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

    /// Every field is `omitempty`, except the repository of a dependency.
    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        let is_present = |field: &&Field| field.key == "repository" || !is_empty(&field.value);
        let present = self.fields.iter().filter(is_present);
        let root = match self.struct_kind {
            StructKind::Chart { is_root } => Some((Str::from("IsRoot"), Value::Bool(is_root))),
            StructKind::Metadata | StructKind::Item => None,
        };
        Some(
            present
                .map(|field| (Str::from(field.key), field.value.clone()))
                .chain(root)
                .collect(),
        )
    }
}

/// A nil `error`, which is printed as `<nil>` and is false.
struct NoError;

impl Object for NoError {
    fn type_name(&self) -> Cow<'static, str> {
        "<nil>".into()
    }

    /// Returns a kind for which the truth is that of [`Object::plain`].
    fn go_kind(&self) -> GoKind {
        GoKind::Number
    }

    fn print(&self) -> Str {
        "<nil>".into()
    }

    fn plain(&self) -> Value {
        Value::Nil
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

fn format(value: &Value) -> String {
    match value {
        Value::String(text) => text.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::List(list) => format!(
            "[{}]",
            list.items().iter().map(format).collect::<Vec<_>>().join(" ")
        ),
        Value::Map(map) => {
            let entries = map.entries();
            let texts: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{key}:{}", format(value)))
                .collect();
            format!("map[{}]", texts.join(" "))
        }
        Value::Object(object) => object.print().to_string(),
        _ => String::new(),
    }
}
