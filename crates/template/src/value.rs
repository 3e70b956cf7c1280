//! Go's dynamic values with Go's aliasing, as visible in templates.

use std::any::Any;
use std::cell::{OnceCell, Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use crate::live;
use crate::object::{Method, NamedType, Object};
use crate::string::Str;

/// A Go value in a template.
///
/// Maps alias: a clone is the same map. Lists are immutable, except through [`List::sort`]: no other
/// function of a template modifies one.
#[derive(Clone, Default)]
pub enum Value {
    /// The nil interface: value of a missing map key and of a YAML null.
    #[default]
    Nil,
    /// `bool`.
    Bool(bool),
    /// A signed integer of some width.
    Int(i64, IntKind),
    /// An unsigned integer of some width.
    Uint(u64, UintKind),
    /// `float64`: type of all numbers from YAML or JSON.
    Float(f64),
    /// `complex128`: type of literals such as `2i` only.
    Complex(f64, f64),
    /// `string`.
    String(Str),
    /// A slice.
    List(List),
    /// A map with string keys.
    Map(Map),
    /// A value with fields or methods.
    Object(Rc<dyn Object>),
}

/// Go type of a signed integer. Visible only in `%T` and `typeOf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntKind {
    /// `int`: type of literals and of the results of `len` and `int`.
    Int,
    /// `int64`: type of the results of Sprig's arithmetic.
    Int64,
    /// `int32`: type of the items of a range over a string.
    Int32,
}

/// Go type of an unsigned integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UintKind {
    /// `uint64`: type of the parts of a semantic version.
    Uint64,
    /// `uint8`: type of a byte of a string.
    Uint8,
    /// `uint32`.
    Uint32,
    /// `uint`.
    Uint,
}

/// A Go slice. Cheap to clone.
#[derive(Clone)]
pub struct List(Rc<ListData>);

pub(crate) struct ListData {
    ty: ListType,
    nil: bool,
    pub(crate) items: Vec<Value>,
    sorted: OnceCell<Box<[Value]>>,
    /// Size in bytes that is counted as live.
    bytes: usize,
}

/// Go type of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// `[]interface {}`.
    Any,
    /// `[]string`.
    String,
    /// `[]int`.
    Int,
    /// `[]uint8`: each item is a [`Value::Uint`] of kind [`UintKind::Uint8`]. See [`Value::bytes`].
    Bytes,
    /// `[][]interface {}`.
    ListOfAny,
    /// Any other slice.
    Named(&'static NamedType),
}

/// A Go map with string keys. A clone is the same map, possibly with another type.
#[derive(Clone)]
pub struct Map {
    ty: MapType,
    entries: Rc<RefCell<MapData>>,
}

pub(crate) struct MapData {
    pub(crate) entries: BTreeMap<Str, Value>,
    nil: bool,
    /// Whether the map was written to after its creation. Only such a map may be part of a cycle.
    written: bool,
    /// Size in bytes that is counted as live.
    bytes: usize,
}

/// Size in bytes of a list or a map without its entries, with the allocator's headers.
pub const CONTAINER_BYTES: usize = 112;
/// Size in bytes of an entry of a map, including its share of the tree.
pub const ENTRY_BYTES: usize = 96;
/// Minimum number of entries for which the size of a non-empty map is counted. A tree node has capacity for
/// eleven entries, so a single entry uses as much memory as five entries do on average.
const MIN_ENTRIES: usize = 5;

/// Go type of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// `map[string]interface {}`.
    Any,
    /// `map[string]string`: type of the result of `split`.
    String,
    /// A named map type assignable to `map[string]interface {}`, such as Helm's `common.Values`.
    Named(&'static NamedType),
}

impl Value {
    /// Creates a Go `int`.
    #[must_use]
    pub fn int(value: i64) -> Self {
        Self::Int(value, IntKind::Int)
    }

    /// Creates a Go `int64`.
    #[must_use]
    pub fn int64(value: i64) -> Self {
        Self::Int(value, IntKind::Int64)
    }

    /// Creates a Go `uint64`.
    #[must_use]
    pub fn uint64(value: u64) -> Self {
        Self::Uint(value, UintKind::Uint64)
    }

    /// Creates a string.
    pub fn string(text: impl Into<Str>) -> Self {
        Self::String(text.into())
    }

    /// Creates a `[]interface {}`.
    #[must_use]
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(List::new(ListType::Any, items))
    }

    /// Creates a `[]string`.
    #[must_use]
    pub fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> Self {
        Self::List(List::new(
            ListType::String,
            items.into_iter().map(Value::string).collect(),
        ))
    }

    /// Creates a `[]byte`.
    #[must_use]
    pub fn bytes(bytes: &[u8]) -> Self {
        let item = |&byte: &u8| Self::Uint(u64::from(byte), UintKind::Uint8);
        Self::List(List::new(ListType::Bytes, bytes.iter().map(item).collect()))
    }

    /// Creates a `map[string]interface {}`.
    #[must_use]
    pub fn map(entries: BTreeMap<Str, Value>) -> Self {
        Self::Map(Map::new(MapType::Any, entries))
    }

    /// Returns the method `name` of a named map or slice type, or `None`.
    pub(crate) fn named_method(&self, name: &[u8]) -> Option<&'static Method> {
        let ty = match self {
            Self::Map(map) => match map.ty {
                MapType::Named(ty) => ty,
                _ => return None,
            },
            Self::List(list) => match list.ty() {
                ListType::Named(ty) => ty,
                _ => return None,
            },
            _ => return None,
        };
        ty.method(name)
    }

    /// Creates a native object.
    pub fn object(object: impl Object) -> Self {
        Self::Object(Rc::new(object))
    }

    /// Returns the native object, or `None` if it is not of Rust type `T`.
    #[must_use]
    pub fn native<T: Object>(&self) -> Option<&T> {
        match self {
            Self::Object(object) => (&**object as &dyn Any).downcast_ref(),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::string(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::string(value)
    }
}

impl ListData {
    fn new(ty: ListType, nil: bool, items: Vec<Value>) -> Self {
        // Collecting in place keeps the buffer of the source, whose items may have been larger.
        let bytes = CONTAINER_BYTES + items.capacity() * size_of::<Value>();
        live::add(bytes);
        Self {
            ty,
            nil,
            items,
            sorted: OnceCell::new(),
            bytes,
        }
    }
}

impl List {
    /// Creates a slice of type `ty`. The caller guarantees that the items match it.
    #[must_use]
    pub fn new(ty: ListType, items: Vec<Value>) -> Self {
        Self(Rc::new(ListData::new(ty, false, items)))
    }

    /// Creates the nil slice of type `ty`. It prints as `[]` and is empty, but is `null` in JSON and does
    /// not equal an empty slice.
    #[must_use]
    pub fn nil(ty: ListType) -> Self {
        Self(Rc::new(ListData::new(ty, true, Vec::new())))
    }

    /// Whether this is a nil slice.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.0.nil
    }

    /// Returns the Go type.
    #[must_use]
    pub fn ty(&self) -> ListType {
        self.0.ty
    }

    pub(crate) fn data(&self) -> Rc<ListData> {
        Rc::clone(&self.0)
    }

    /// Returns the bytes of a `[]uint8`.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let byte = |item: &Value| match item {
            Value::Uint(byte, _) => *byte as u8,
            _ => 0,
        };
        self.items().iter().map(byte).collect()
    }

    /// Returns the items.
    #[must_use]
    pub fn items(&self) -> &[Value] {
        self.0.sorted.get().map_or(&self.0.items, |sorted| sorted)
    }

    /// Sorts a slice of strings in place, which is visible through every alias, as `sortAlpha` does with a
    /// `[]string`.
    pub fn sort(&self) {
        self.0.sorted.get_or_init(|| {
            let mut items: Box<[Value]> = self.0.items.as_slice().into();
            items.sort_by(|a, b| match (a, b) {
                (Value::String(a), Value::String(b)) => a.cmp(b),
                _ => std::cmp::Ordering::Equal,
            });
            items
        });
    }

    /// Returns an identifier that is unique among live lists.
    #[must_use]
    pub fn address(&self) -> usize {
        Rc::as_ptr(&self.0).addr()
    }

    /// Whether both are the same list.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl MapData {
    fn new(entries: BTreeMap<Str, Value>, nil: bool) -> Self {
        let mut data = Self {
            entries,
            nil,
            written: false,
            bytes: 0,
        };
        data.count();
        data
    }

    /// Updates the counted size of a map that has grown after its creation.
    fn count(&mut self) {
        let entries = match self.entries.len() {
            0 => 0,
            length => length.max(MIN_ENTRIES),
        };
        let bytes = CONTAINER_BYTES + entries * ENTRY_BYTES;
        live::add(bytes);
        live::subtract(self.bytes);
        self.bytes = bytes;
    }
}

impl Map {
    /// Creates a map of type `ty`. The caller guarantees that the values match it.
    #[must_use]
    pub fn new(ty: MapType, entries: BTreeMap<Str, Value>) -> Self {
        Self::from_data(ty, MapData::new(entries, false))
    }

    /// Creates the nil map of type `ty`. It prints as `map[]` and is empty, but is `null` in JSON and
    /// rejects writes.
    #[must_use]
    pub fn nil(ty: MapType) -> Self {
        Self::from_data(ty, MapData::new(BTreeMap::new(), true))
    }

    fn from_data(ty: MapType, data: MapData) -> Self {
        Self {
            ty,
            entries: Rc::new(RefCell::new(data)),
        }
    }

    /// Whether this is a nil map.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        self.entries.borrow().nil
    }

    /// Returns the Go type.
    #[must_use]
    pub fn ty(&self) -> MapType {
        self.ty
    }

    /// Returns the same map with another type, as in an assignment between named and unnamed map types.
    #[must_use]
    pub fn retyped(&self, ty: MapType) -> Self {
        Self {
            ty,
            entries: Rc::clone(&self.entries),
        }
    }

    /// Borrows the entries. The guard must not be held while template code runs.
    #[must_use]
    pub fn entries(&self) -> Ref<'_, BTreeMap<Str, Value>> {
        Ref::map(self.entries.borrow(), |data| &data.entries)
    }

    /// Borrows the entries for writing, which is visible through every alias. The guard must not be held
    /// while template code runs.
    #[must_use]
    pub fn entries_mut(&self) -> RefMut<'_, BTreeMap<Str, Value>> {
        let mut data = self.entries.borrow_mut();
        data.count();
        if !std::mem::replace(&mut data.written, true) {
            crate::cycle::record_write(&self.entries);
        }
        RefMut::map(data, |data| &mut data.entries)
    }

    /// Returns the value under `key`.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.entries().get(key).cloned()
    }

    /// Inserts `value` under `key`.
    pub fn insert(&self, key: impl Into<Str>, value: Value) {
        self.entries_mut().insert(key.into(), value);
    }

    pub(crate) fn cell(&self) -> Rc<RefCell<MapData>> {
        Rc::clone(&self.entries)
    }

    /// Returns an identifier that is unique among live maps.
    #[must_use]
    pub fn address(&self) -> usize {
        Rc::as_ptr(&self.entries).addr()
    }

    /// Whether both are the same map.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.entries, &other.entries)
    }
}

/// Moves the children out before a tree is dropped, so that depth consumes heap instead of stack.
impl Drop for MapData {
    fn drop(&mut self) {
        live::subtract(self.bytes);
        drop_all(
            std::mem::take(&mut self.entries)
                .into_values()
                .filter(Value::is_container)
                .collect(),
        );
    }
}

impl Drop for ListData {
    fn drop(&mut self) {
        live::subtract(self.bytes);
        drop_all(
            std::mem::take(&mut self.items)
                .into_iter()
                .filter(Value::is_container)
                .collect(),
        );
    }
}

fn drop_all(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::List(List(data)) => {
                if let Ok(mut data) = Rc::try_unwrap(data) {
                    pending.append(&mut data.items);
                }
            }
            Value::Map(Map { entries, .. }) => {
                if let Ok(data) = Rc::try_unwrap(entries) {
                    pending.extend(std::mem::take(&mut data.into_inner().entries).into_values());
                }
            }
            _ => {}
        }
    }
}

impl Value {
    fn is_container(&self) -> bool {
        matches!(self, Self::List(_) | Self::Map(_))
    }
}

/// Formats only the top level, for test failures and logs, so that neither depth nor cycles matter.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("nil"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value, kind) => write!(f, "{value}{kind:?}"),
            Self::Uint(value, kind) => write!(f, "{value}{kind:?}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Complex(re, im) => write!(f, "({re:?}{im:+?}i)"),
            Self::String(text) => write!(f, "{text:?}"),
            Self::List(list) => write!(f, "{:?}[{}]", list.ty(), list.items().len()),
            Self::Map(map) => write!(f, "{:?}{{{}}}", map.ty(), map.entries().len()),
            Self::Object(object) => f.write_str(&object.type_name()),
        }
    }
}
