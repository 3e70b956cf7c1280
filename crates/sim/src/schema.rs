//! The Go types of the builtin API as data: takes a kind, gives its fields with their JSON, patch and merge rules.
//!
//! The table `schema/builtin.txt` is printed by `tools/kubernetes/schema` from the Go types themselves. One line per kind
//! (`= apiVersion Kind Type`), then one block per struct: its name, then a line per field:
//! `name type [#number] [?] [z] [patch=…] [key=…] [list=…] [keys=…] [map=…] [enum=…] [default=…] [!]`, where `?` is `omitempty`, `z` is `omitzero` and `!`
//! is required by the published schema; the number is the field's on the wire (protobuf), `2.1` when its struct is inlined. Types: `*T` pointer, `[]T` list, `{}T` map, `@Name` struct, and scalars.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::Value;

mod decode;
mod parse;
mod quantity;

pub use decode::{DecodeError, Decoded};
pub use quantity::{canonical_quantity, quantity_millis};

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
    /// The places of its fields, by name.
    by_name: Vec<usize>,
    /// The places of the fields that Go prints even if nobody set them.
    printed: Vec<usize>,
    /// What Go prints if nobody set any.
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
    /// Its number on the wire, below the numbers of the structs it is inlined from; empty when it does not travel.
    pub wire: Box<[u32]>,
    /// What the table calls a part of it that may be anything (`any`, `raw`, `schemaorbool` …); empty when there is none.
    pub free: Box<str>,
    /// Left out when empty.
    pub omit_empty: bool,
    /// Left out when zero, also for structs.
    pub omit_zero: bool,
    /// Named as required by the published schema.
    pub required: bool,
    /// A strategic merge patch merges the list instead of replacing it.
    pub patch_merge: bool,
    /// A strategic merge patch may clear sibling keys (`$retainKeys`).
    pub patch_retain_keys: bool,
    /// The key by which a strategic merge patch matches items.
    pub merge_key: Option<Box<str>>,
    /// How server-side apply treats a list.
    pub list: ListKind,
    /// Server-side apply replaces the map as a whole.
    pub atomic_map: bool,
    /// The values it (or an item of it) may have, as the published schema names them; empty for any.
    pub choices: Vec<Box<str>>,
    /// The schema's default.
    pub default: Option<Value>,
}

/// How server-side apply treats a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// As a whole (also when nothing is said).
    #[default]
    Atomic,
    /// As a set of scalars.
    Set,
    /// As a map by these keys.
    Map(Vec<Box<str>>),
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Text; the name of the Go type when it is not `string`.
    Text(Option<Box<str>>),
    /// A whole number of that Go type.
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
    /// Anything at all.
    Any,
    /// May be absent, and absence differs from zero.
    Pointer(Box<Type>),
    /// A list.
    List(Box<Type>),
    /// A map with text keys.
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

    /// The struct behind a kind.
    #[must_use]
    pub fn kind(&self, api_version: &str, kind: &str) -> Option<TypeId> {
        self.kinds.get(&(api_version.into(), kind.into())).copied()
    }

    /// The struct called `name`, such as `core/v1.PodSpec`.
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

    /// What `id` stands for.
    #[must_use]
    pub fn get(&self, id: TypeId) -> &Struct {
        static NOTHING: OnceLock<Struct> = OnceLock::new();
        let nothing = || NOTHING.get_or_init(Struct::default);
        self.structs.get(id.0 as usize).unwrap_or_else(nothing)
    }

    /// A field of a struct.
    #[must_use]
    pub fn field(&self, id: TypeId, name: &str) -> Option<&Field> {
        self.get(id).field(name)
    }
}

impl Struct {
    /// The field called `name`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        let called = |at: &usize| self.fields.get(*at).map_or("", |field| &*field.name);
        let found = self.by_name.binary_search_by(|at| called(at).cmp(name)).ok()?;
        self.fields.get(*self.by_name.get(found)?)
    }

    /// The fields that Go prints even if nobody set them.
    fn printed(&self) -> impl Iterator<Item = &Field> {
        self.printed.iter().filter_map(|at| self.fields.get(*at))
    }

    /// Makes the tables of places, once all fields are there.
    fn index(&mut self) {
        let name = |at: &usize| self.fields.get(*at).map(|field| field.name.clone());
        self.by_name = (0..self.fields.len()).collect();
        self.by_name.sort_by_key(name);
        let printed = |at: &usize| self.fields.get(*at).is_some_and(decode::is_printed_unset);
        self.printed = (0..self.fields.len()).filter(printed).collect();
    }

    /// `DeploymentSpec`, as Go's errors say it.
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
