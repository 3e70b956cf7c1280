//! The Go types of the builtin API as data: the fields of each kind with their JSON, patch and merge rules.
//!
//! The table `schema/builtin.txt` is printed by `tools/kubernetes/schema` from the Go types themselves. One
//! line per kind (`= apiVersion Kind Type`), then one block per struct: its name, then a line per field:
//! `name type [#number] [?] [z] [patch=…] [key=…] [list=…] [keys=…] [map=…] [enum=…] [default=…] [!]`, where
//! `?` is `omitempty`, `z` is `omitzero` and `!` is required by the published schema; the number is the
//! field's protobuf number, `2.1` if its struct is inlined. Types: `*T` pointer, `[]T` list, `{}T` map,
//! `@Name` struct, and scalars.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::Value;

mod decode;
mod parse;
mod quantity;

pub use decode::{DecodeError, Decoded};
pub use quantity::{Quantity, canonical_quantity, quantity_millis};

/// A struct of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(u32);

/// All types.
#[derive(Debug)]
pub struct Schema {
    structs: Vec<Struct>,
    names: HashMap<Box<str>, TypeId>,
    kinds: HashMap<(Box<str>, Box<str>), TypeId>,
}

/// One Go struct.
#[derive(Debug, Default)]
pub struct Struct {
    /// `apps/v1.DeploymentSpec`.
    pub name: Box<str>,
    /// Applied as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// Its fields in Go's order.
    pub fields: Vec<Field>,
    /// Indexes into `fields`, sorted by field name.
    by_name: Vec<usize>,
    /// Indexes of the fields that Go prints even if they are unset.
    printed: Vec<usize>,
    /// What Go prints for an empty struct.
    zero: OnceLock<Value>,
}

/// One field of a struct.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent yes/no facts per field")]
pub struct Field {
    /// Its name in JSON.
    pub name: Box<str>,
    /// Its type.
    pub kind: Type,
    /// Its protobuf number, after the numbers of the structs it is inlined from; empty if it is not
    /// serialised.
    pub wire: Box<[u32]>,
    /// The name in the table of a part of it that can be anything (`any`, `raw`, `schemaorbool` …); empty if
    /// there is none.
    pub free: Box<str>,
    /// Omitted when empty.
    pub omit_empty: bool,
    /// Omitted when zero, also for structs.
    pub omit_zero: bool,
    /// Required by the published schema.
    pub required: bool,
    /// A strategic merge patch merges the list instead of replacing it.
    pub patch_merge: bool,
    /// A strategic merge patch may clear sibling keys (`$retainKeys`).
    pub patch_retain_keys: bool,
    /// The key by which a strategic merge patch matches items.
    pub merge_key: Option<Box<str>>,
    /// How server-side apply merges a list.
    pub list: ListKind,
    /// Server-side apply replaces the map as a whole.
    pub atomic_map: bool,
    /// The allowed values of it (or of its items) in the published schema; empty for any.
    pub choices: Vec<Box<str>>,
    /// The schema's default.
    pub default: Option<Value>,
}

/// How server-side apply merges a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// Replaced as a whole (the default).
    #[default]
    Atomic,
    /// Merged as a set of scalars.
    Set,
    /// Merged as a map by these keys.
    Map(Vec<Box<str>>),
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A string; the name of the Go type if it is not `string`.
    Text(Option<Box<str>>),
    /// An integer of that Go type.
    Int(Box<str>),
    /// A floating point number.
    Float,
    /// True or false.
    Bool,
    /// Base64.
    Bytes,
    /// `resource.Quantity`.
    Quantity,
    /// `intstr.IntOrString`.
    IntOrString,
    /// `metav1.Time`.
    Time,
    /// `metav1.MicroTime`.
    MicroTime,
    /// `metav1.Duration`.
    Duration,
    /// Any value.
    Any,
    /// Optional; unset differs from zero.
    Pointer(Box<Type>),
    /// A list.
    List(Box<Type>),
    /// A map with string keys.
    Map(Box<Type>),
    /// A struct.
    Struct(TypeId),
}

impl Schema {
    /// The builtin types of Kubernetes 1.36.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Schema> = OnceLock::new();
        BUILTIN.get_or_init(|| parse::parse(include_str!("schema/builtin.txt")))
    }

    /// Returns the struct of a kind.
    #[must_use]
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<TypeId> {
        self.kinds.get(&(api_version.into(), kind.into())).copied()
    }

    /// Returns the struct called `name`, such as `core/v1.PodSpec`.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<TypeId> {
        self.names.get(name).copied()
    }

    /// Every kind: its `apiVersion`, its name and its struct.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &str, TypeId)> {
        self.kinds
            .iter()
            .map(|((api_version, kind), id)| (&**api_version, &**kind, *id))
    }

    /// Returns the struct of an id.
    #[must_use]
    pub fn get(&self, id: TypeId) -> &Struct {
        static NOTHING: OnceLock<Struct> = OnceLock::new();
        let nothing = || NOTHING.get_or_init(Struct::default);
        self.structs.get(id.0 as usize).unwrap_or_else(nothing)
    }

    /// Returns a field of a struct.
    #[must_use]
    pub fn field(&self, id: TypeId, name: &str) -> Option<&Field> {
        self.get(id).field(name)
    }
}

impl Struct {
    /// Returns the field called `name`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        let called = |at: &usize| self.fields.get(*at).map_or("", |field| &*field.name);
        let found = self.by_name.binary_search_by(|at| called(at).cmp(name)).ok()?;
        self.fields.get(*self.by_name.get(found)?)
    }

    /// The fields that Go prints even if they are unset.
    fn printed(&self) -> impl Iterator<Item = &Field> {
        self.printed.iter().filter_map(|at| self.fields.get(*at))
    }

    /// Builds the indexes after all fields were added.
    fn index(&mut self) {
        let name = |at: &usize| self.fields.get(*at).map(|field| field.name.clone());
        self.by_name = (0..self.fields.len()).collect();
        self.by_name.sort_by_key(name);
        let printed = |at: &usize| self.fields.get(*at).is_some_and(decode::is_printed_unset);
        self.printed = (0..self.fields.len()).filter(printed).collect();
    }

    /// `DeploymentSpec`, as in Go's errors.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }
}

impl Type {
    /// The type below a pointer.
    #[must_use]
    pub fn pointee(&self) -> &Self {
        match self {
            Self::Pointer(inner) => inner,
            other => other,
        }
    }
}
