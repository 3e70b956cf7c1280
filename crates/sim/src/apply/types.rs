//! Types for server-side apply: whether a Go type or a custom schema node is a scalar, a list or a map, and
//! how its parts are owned.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::element::{Element, Leaf, Name};
use super::error::ListItemError;
use crate::resource::{Resource, Shape};
use crate::schema::{Field, ListKind, Schema, Type, TypeId};

/// An unresolved type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ref<'a> {
    /// A Go type, with the field that contains its merge rules.
    Go(&'static Schema, &'static Type, Option<&'static Field>),
    /// A Go struct.
    Struct(&'static Schema, TypeId),
    /// A node of a custom schema.
    Custom(&'static Schema, Node<'a>),
    /// Any type: maps are owned by key, lists as a whole.
    Deduced,
    /// Any type, owned as a whole.
    Atomic,
    /// No type: the schema allows no value.
    Nothing,
}

/// A node of a custom schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    schema: &'a Value,
    /// Whether the node is an object with its own `apiVersion`, `kind` and `metadata`.
    object: bool,
    /// Whether a parent preserves unknown fields.
    preserve: bool,
}

/// A resolved type: the kinds of values that it allows.
#[derive(Clone, Debug, Default)]
pub(super) struct Atom<'a> {
    pub scalar: Option<Scalar>,
    pub list: Option<List<'a>>,
    pub map: Option<MapOf<'a>>,
}

/// Scalars that a type allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Text,
    Number,
    Bool,
    Any,
}

/// A list type and its merge rule.
#[derive(Clone, Debug)]
pub(super) struct List<'a> {
    pub rule: Rule<'a>,
    pub element: Ref<'a>,
}

/// Merge rule of a list.
#[derive(Clone, Debug)]
pub(super) enum Rule<'a> {
    Atomic,
    Set,
    Keys(Keys<'a>),
}

/// Names of the key fields of an associative list.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keys<'a> {
    Go(&'static [Box<str>]),
    Custom(&'a [Value]),
}

impl Keys<'_> {
    fn names(&self) -> impl Iterator<Item = Name> {
        let (go, custom) = match self {
            Self::Go(names) => (*names, &[][..]),
            Self::Custom(names) => (&[][..], *names),
        };
        let custom = custom.iter().filter_map(Value::as_str);
        go.iter()
            .map(|name| Cow::Borrowed(&**name))
            .chain(custom.map(|name| Cow::Owned(name.to_owned())))
    }
}

/// A map or struct type and its merge rule.
#[derive(Clone, Debug)]
pub(super) struct MapOf<'a> {
    pub atomic: bool,
    pub element: Ref<'a>,
    fields: Fields<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Fields<'a> {
    None,
    Struct(&'static Schema, TypeId),
    Custom(&'static Schema, Option<&'a Map<String, Value>>, Node<'a>),
}

/// Kind of a value, one of those that its type allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Map,
    Scalar,
    List,
    None,
}

static TEXT: Type = Type::Text(None);

impl<'a> Ref<'a> {
    /// Returns the type of a resource's objects.
    pub(super) fn for_resource(schema: &'static Schema, resource: &'a Resource) -> Self {
        match &resource.shape {
            Shape::Builtin(Some(id)) => Self::Struct(schema, *id),
            Shape::Custom(custom) if custom.schema.is_object() => Self::Custom(
                schema,
                Node {
                    schema: &custom.schema,
                    object: true,
                    preserve: false,
                },
            ),
            _ => Self::Deduced,
        }
    }

    pub(super) fn resolve(self) -> Atom<'a> {
        match self {
            Self::Go(schema, kind, rules) => resolve_go_type(schema, kind, rules),
            Self::Struct(schema, id) => resolve_struct(schema, id, false),
            Self::Custom(schema, node) => node.resolve(schema),
            Self::Deduced => any_type(false),
            Self::Atomic => any_type(true),
            Self::Nothing => Atom::default(),
        }
    }

    pub(super) fn is_nothing(self) -> bool {
        matches!(self, Self::Nothing)
    }
}

fn scalar_type<'a>(kind: Scalar) -> Atom<'a> {
    Atom {
        scalar: Some(kind),
        ..Atom::default()
    }
}

/// Returns a type that allows any value.
fn any_type<'a>(atomic: bool) -> Atom<'a> {
    let element = if atomic { Ref::Atomic } else { Ref::Deduced };
    Atom {
        scalar: Some(Scalar::Any),
        list: Some(List {
            rule: Rule::Atomic,
            element: Ref::Atomic,
        }),
        map: Some(MapOf {
            atomic,
            element,
            fields: Fields::None,
        }),
    }
}

fn resolve_go_type<'a>(
    schema: &'static Schema,
    kind: &'static Type,
    rules: Option<&'static Field>,
) -> Atom<'a> {
    match kind {
        Type::Text(_) | Type::Bytes | Type::Duration => scalar_type(Scalar::Text),
        Type::Time | Type::MicroTime => scalar_type(Scalar::Any),
        Type::Int(_) | Type::Float => scalar_type(Scalar::Number),
        Type::Bool => scalar_type(Scalar::Bool),
        Type::Quantity | Type::IntOrString | Type::Any => any_type(false),
        Type::Pointer(inner) => resolve_go_type(schema, inner, rules),
        Type::List(item) => Atom {
            list: Some(List {
                rule: match rules.map(|field| &field.list) {
                    Some(ListKind::Set) => Rule::Set,
                    Some(ListKind::Map(keys)) => Rule::Keys(Keys::Go(keys)),
                    _ => Rule::Atomic,
                },
                element: Ref::Go(schema, item, None),
            }),
            ..Atom::default()
        },
        Type::Map(item) => Atom {
            map: Some(MapOf {
                atomic: rules.is_some_and(|field| field.atomic_map),
                element: Ref::Go(schema, item, None),
                fields: Fields::None,
            }),
            ..Atom::default()
        },
        Type::Struct(id) => resolve_struct(schema, *id, rules.is_some_and(|field| field.atomic_map)),
    }
}

fn resolve_struct<'a>(schema: &'static Schema, id: TypeId, atomic: bool) -> Atom<'a> {
    let found = schema.get(id);
    Atom {
        map: Some(MapOf {
            atomic: atomic || found.atomic,
            // A struct without fields is a free-form object in the published schema.
            element: if found.fields.is_empty() {
                Ref::Deduced
            } else {
                Ref::Nothing
            },
            fields: Fields::Struct(schema, id),
        }),
        ..Atom::default()
    }
}

impl<'a> Node<'a> {
    fn flag(&self, name: &str) -> bool {
        self.schema.get(name).is_some_and(|flag| flag == true)
    }

    fn text(&self, name: &str) -> &'a str {
        self.schema.get(name).and_then(Value::as_str).unwrap_or("")
    }

    fn child(self, schema: &'a Value) -> Self {
        Self {
            schema,
            object: false,
            preserve: self.preserves(),
        }
    }

    fn preserves(&self) -> bool {
        self.preserve || self.flag("x-kubernetes-preserve-unknown-fields")
    }

    fn resolve(self, schema: &'static Schema) -> Atom<'a> {
        match self.text("type") {
            "object" => Atom {
                map: Some(self.map(schema)),
                ..Atom::default()
            },
            "array" => Atom {
                list: Some(self.list(schema)),
                ..Atom::default()
            },
            "integer" | "number" => scalar_type(Scalar::Number),
            "boolean" => scalar_type(Scalar::Bool),
            "string" if matches!(self.text("format"), "" | "byte") => scalar_type(Scalar::Text),
            "string" => scalar_type(Scalar::Any),
            _ => Atom {
                scalar: Some(Scalar::Any),
                list: Some(self.list(schema)),
                map: Some(self.map(schema)),
            },
        }
    }

    fn list(self, schema: &'static Schema) -> List<'a> {
        let keys = self
            .schema
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array);
        List {
            rule: match self.text("x-kubernetes-list-type") {
                "set" => Rule::Set,
                "map" => Rule::Keys(Keys::Custom(keys.map_or(&[], Vec::as_slice))),
                _ => Rule::Atomic,
            },
            element: self
                .schema
                .get("items")
                .map_or(Ref::Atomic, |items| Ref::Custom(schema, self.child(items))),
        }
    }

    fn map(self, schema: &'static Schema) -> MapOf<'a> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let object = self.object || self.flag("x-kubernetes-embedded-resource");
        let is_free_form = self.preserves() || (!object && properties.is_none_or(Map::is_empty));
        let element = match self.schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => Ref::Custom(schema, self.child(values)),
            Some(Value::Bool(true)) => Ref::Deduced,
            Some(Value::Bool(false)) => Ref::Nothing,
            _ if is_free_form => Ref::Deduced,
            _ => Ref::Nothing,
        };
        MapOf {
            atomic: self.text("x-kubernetes-map-type") == "atomic",
            element,
            fields: Fields::Custom(schema, properties, Node { object, ..self }),
        }
    }
}

impl<'a> MapOf<'a> {
    /// Returns the type of a named field, or `None` if the type has no such field.
    pub(super) fn field_type(&self, name: &str) -> Option<Ref<'a>> {
        match self.fields {
            Fields::None => None,
            Fields::Struct(schema, id) => schema
                .field(id, name)
                .map(|field| Ref::Go(schema, &field.kind, Some(field))),
            Fields::Custom(schema, properties, node) => {
                match name {
                    "apiVersion" | "kind" if node.object => return Some(Ref::Go(schema, &TEXT, None)),
                    "metadata" if node.object => {
                        return schema
                            .find_struct("meta/v1.ObjectMeta")
                            .map(|id| Ref::Struct(schema, id));
                    }
                    _ => {}
                }
                let found = properties?.get(name)?;
                Some(Ref::Custom(schema, node.child(found)))
            }
        }
    }

    /// Returns the path element and the type of the child `name`.
    pub(super) fn element_and_type(&self, name: &str) -> (Element, Ref<'a>) {
        if let Fields::Struct(schema, id) = self.fields
            && let Some(field) = schema.field(id, name)
        {
            let element = Element::Field(Cow::Borrowed(&field.name));
            return (element, Ref::Go(schema, &field.kind, Some(field)));
        }
        (Element::field(name), self.child_type(name))
    }

    /// Returns the type of the child `name`: a named field or a map value.
    pub(super) fn child_type(&self, name: &str) -> Ref<'a> {
        self.field_type(name).unwrap_or(self.element)
    }

    /// Returns whether the type has no named fields and allows any field.
    pub(super) fn is_free_form(&self) -> bool {
        let has_no_fields = match self.fields {
            Fields::None => true,
            Fields::Struct(schema, id) => schema.get(id).fields.is_empty(),
            Fields::Custom(_, properties, node) => !node.object && properties.is_none_or(Map::is_empty),
        };
        has_no_fields && matches!(self.element, Ref::Deduced)
    }

    /// Returns the default of a key field of a list item.
    fn key_default(&self, name: &str) -> Option<Value> {
        match self.fields {
            Fields::None => None,
            Fields::Custom(_, properties, _) => properties?.get(name)?.get("default").cloned(),
            Fields::Struct(schema, id) => {
                let field = schema.field(id, name)?;
                match &field.kind {
                    Type::Text(Some(kind)) if &**kind == "v1.Protocol" => Some("TCP".into()),
                    Type::Text(_) if !field.omit_empty => Some("".into()),
                    Type::Int(_) if !field.omit_empty => Some(0.into()),
                    _ => None,
                }
            }
        }
    }
}

impl List<'_> {
    /// Returns the path element of a list item.
    pub(super) fn path_element(&self, item: &Value) -> Result<Element, ListItemError> {
        let keys = match &self.rule {
            Rule::Atomic => return Err(ListItemError::NotAssociative),
            Rule::Set => return set_element(item),
            Rule::Keys(keys) => keys,
        };
        let Value::Object(fields) = item else {
            return Err(if item.is_null() {
                ListItemError::NullElement
            } else {
                ListItemError::NonMapElement
            });
        };
        let map = self.element.resolve().map;
        let found: Vec<(Name, Leaf)> = keys
            .names()
            .filter_map(|key| {
                let value = fields.get(&*key).cloned();
                let value = value.or_else(|| map.as_ref()?.key_default(&key))?;
                Some((key, Leaf(value)))
            })
            .collect();
        if found.is_empty() {
            let keys: Vec<_> = keys.names().map(|key| format!("{key:?}")).collect();
            return Err(ListItemError::MissingKeys(keys.join(" ")));
        }
        Ok(Element::from_keys(found))
    }
}

fn set_element(item: &Value) -> Result<Element, ListItemError> {
    match item {
        Value::Object(_) => Err(ListItemError::MapInSet),
        Value::Array(_) => Err(ListItemError::ListInSet),
        Value::Null => Err(ListItemError::NullInSet),
        _ => Ok(Element::Item(Leaf(item.clone()))),
    }
}

impl Atom<'_> {
    /// Returns the kind of a value according to this type.
    pub(super) fn form(&self, value: Option<&Value>) -> Form {
        match value {
            Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) if self.scalar.is_some() => {
                Form::Scalar
            }
            Some(Value::Array(_)) if self.list.is_some() => Form::List,
            _ if self.map.is_some() => Form::Map,
            _ if self.scalar.is_some() => Form::Scalar,
            _ if self.list.is_some() => Form::List,
            _ => Form::None,
        }
    }
}
