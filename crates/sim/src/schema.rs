//! The Go types of the builtin API as data: the fields of each kind with their JSON, patch and merge rules.
//!
//! `tools/kubernetes/schema` prints the table `schema/builtin.txt` from the Go types. The table has one line
//! per kind (`= apiVersion Kind Type`), then one block per struct: its name, and a line per field: `name type
//! [#number] [?] [z] [patch=…] [key=…] [list=…] [keys=…] [map=…] [enum=…] [default=…] [!]`, where `?` is
//! `omitempty`, `z` is `omitzero` and `!` means that the published schema requires the field. The number is
//! the protobuf number of the field, such as `2.1` for a field of an inlined struct. Types are `*T`
//! (pointer), `[]T` (list), `{}T` (map), `@Name` (struct), and scalars.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::Value;

mod decode;
mod parse;
mod quantity;

pub use decode::{DecodeError, Decoded};
pub use quantity::{Quantity, canonical_quantity, quantity_millis};

/// Identifier of a struct in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(u32);

/// All Go types of the builtin API.
#[derive(Debug)]
pub struct Schema {
    structs: Vec<Struct>,
    names: HashMap<Box<str>, TypeId>,
    kinds: HashMap<(Box<str>, Box<str>), TypeId>,
}

/// A Go struct.
#[derive(Debug, Default)]
pub struct Struct {
    /// Name with package, such as `apps/v1.DeploymentSpec`.
    pub name: Box<str>,
    /// Whether server-side apply replaces the struct as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// Fields in the order of the Go struct.
    pub fields: Vec<Field>,
    /// Indexes into `fields`, sorted by field name.
    by_name: Vec<usize>,
    /// Indexes of the fields that Go prints even if they are unset.
    printed: Vec<usize>,
    /// JSON that Go prints for an empty struct.
    zero: OnceLock<Value>,
}

/// A field of a struct.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent yes/no facts per field")]
pub struct Field {
    /// Name in JSON.
    pub name: Box<str>,
    /// Type of the field.
    pub kind: Type,
    /// Protobuf number, preceded by the numbers of the inlined structs that contain the field. Empty if
    /// protobuf does not include the field.
    pub wire: Box<[u32]>,
    /// Name in the table of the part of the type that can contain any value (`any`, `raw`, `schemaorbool` …);
    /// empty if there is none.
    pub free_form: Box<str>,
    /// Whether Go omits the field if it is empty (`omitempty`).
    pub omit_empty: bool,
    /// Whether Go omits the field if it is zero, including structs (`omitzero`).
    pub omit_zero: bool,
    /// Whether the published schema requires the field.
    pub required: bool,
    /// Whether a strategic merge patch merges the list instead of replacing it.
    pub patch_merge: bool,
    /// Whether a strategic merge patch may clear sibling keys (`$retainKeys`).
    pub patch_retain_keys: bool,
    /// Key by which a strategic merge patch matches items.
    pub merge_key: Option<Box<str>>,
    /// Type of the list for server-side apply.
    pub list: ListKind,
    /// Whether server-side apply replaces the map as a whole.
    pub atomic_map: bool,
    /// Allowed values of the field or of its items in the published schema; empty if all values are allowed.
    pub choices: Vec<Box<str>>,
    /// Default value in the published schema.
    pub default: Option<Value>,
}

/// Type of the list for server-side apply.
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
    /// A string. Contains the name of the Go type if it is not `string`.
    Text(Option<Box<str>>),
    /// An integer of the Go type with this name.
    Int(Box<str>),
    /// A floating point number.
    Float,
    /// A boolean.
    Bool,
    /// Bytes, encoded as base64.
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
    /// A pointer: an unset value differs from a zero value.
    Pointer(Box<Type>),
    /// A list.
    List(Box<Type>),
    /// A map with string keys.
    Map(Box<Type>),
    /// A struct.
    Struct(TypeId),
}

impl Schema {
    /// Returns the builtin types of Kubernetes 1.36.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Schema> = OnceLock::new();
        BUILTIN.get_or_init(|| parse::parse_schema(include_str!("schema/builtin.txt")))
    }

    /// Returns the struct of a kind.
    #[must_use]
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<TypeId> {
        self.kinds.get(&(api_version.into(), kind.into())).copied()
    }

    /// Returns the struct with this name, such as `core/v1.PodSpec`.
    #[must_use]
    pub fn find_struct(&self, name: &str) -> Option<TypeId> {
        self.names.get(name).copied()
    }

    /// Iterates over all kinds: `apiVersion`, name and struct.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &str, TypeId)> {
        self.kinds
            .iter()
            .map(|((api_version, kind), id)| (&**api_version, &**kind, *id))
    }

    /// Returns the struct with this id, or an empty struct if there is none.
    #[must_use]
    pub fn get(&self, id: TypeId) -> &Struct {
        static EMPTY: OnceLock<Struct> = OnceLock::new();
        let empty = || EMPTY.get_or_init(Struct::default);
        self.structs.get(id.0 as usize).unwrap_or_else(empty)
    }

    /// Returns a field of a struct.
    #[must_use]
    pub fn field(&self, id: TypeId, name: &str) -> Option<&Field> {
        self.get(id).field(name)
    }
}

impl Struct {
    /// Returns the field with this JSON name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        let name_at = |at: &usize| self.fields.get(*at).map_or("", |field| &*field.name);
        let found = self.by_name.binary_search_by(|at| name_at(at).cmp(name)).ok()?;
        self.fields.get(*self.by_name.get(found)?)
    }

    /// Iterates over the fields that Go prints even if they are unset.
    fn printed(&self) -> impl Iterator<Item = &Field> {
        self.printed.iter().filter_map(|at| self.fields.get(*at))
    }

    /// Builds the indexes. Must be called after all fields have been added.
    fn index(&mut self) {
        let name = |at: &usize| self.fields.get(*at).map(|field| field.name.clone());
        self.by_name = (0..self.fields.len()).collect();
        self.by_name.sort_by_key(name);
        let printed = |at: &usize| self.fields.get(*at).is_some_and(decode::is_printed_unset);
        self.printed = (0..self.fields.len()).filter(printed).collect();
    }

    /// Returns the name without the package, such as `DeploymentSpec`, as in Go's errors.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }
}

impl Type {
    /// Returns the type that a pointer refers to, or `self` for any other type.
    #[must_use]
    pub fn pointee(&self) -> &Self {
        match self {
            Self::Pointer(inner) => inner,
            other => other,
        }
    }
}
