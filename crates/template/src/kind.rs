//! Go type, kind and truth of values, as defined by Go's reflection.

use std::borrow::Cow;

use crate::function::Type;
use crate::object::GoKind;
use crate::value::{IntKind, ListType, MapType, UintKind, Value};

impl Value {
    /// Returns the Go type, as `%T` and `typeOf` print it.
    #[must_use]
    pub fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_, kind) => kind.name(),
            Self::Uint(_, kind) => kind.name(),
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::String(_) => "string",
            Self::List(list) => list.ty().name(),
            Self::Map(map) => map.ty().name(),
            Self::Object(object) => return object.type_name(),
        })
    }

    /// Returns the Go kind, as `kindOf` prints it.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_, kind) => kind.name(),
            Self::Uint(_, kind) => kind.name(),
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::String(_) => "string",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Object(object) => match object.go_kind() {
                GoKind::Struct => "struct",
                GoKind::Pointer => "ptr",
                GoKind::Map => "map",
                GoKind::Number => object.plain().kind_name(),
            },
        }
    }

    /// Whether the value is true in `if`: it is not the zero value of its type, and not empty.
    #[must_use]
    pub fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value, _) => *value != 0,
            Self::Uint(value, _) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::String(text) => !text.is_empty(),
            Self::List(list) => !list.items().is_empty(),
            Self::Map(map) => !map.entries().is_empty(),
            Self::Object(object) => match object.go_kind() {
                GoKind::Struct | GoKind::Pointer => true,
                GoKind::Map => !object.map_keys().is_empty(),
                GoKind::Number => object.plain().is_true(),
            },
        }
    }
}

impl IntKind {
    /// Returns the Go name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Int32 => "int32",
        }
    }
}

impl UintKind {
    /// Returns the Go name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Uint64 => "uint64",
            Self::Uint8 => "uint8",
            Self::Uint32 => "uint32",
            Self::Uint => "uint",
        }
    }
}

impl ListType {
    /// Returns the Go name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "[]interface {}",
            Self::String => "[]string",
            Self::Int => "[]int",
            Self::Bytes => "[]uint8",
            Self::ListOfAny => "[][]interface {}",
            Self::Named(ty) => ty.name,
        }
    }
}

impl MapType {
    /// Returns the Go name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "map[string]interface {}",
            Self::String => "map[string]string",
            Self::Named(ty) => ty.name,
        }
    }
}

impl Type {
    /// Returns the Go name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Uint32 => "uint32",
            Self::Float64 => "float64",
            Self::String => "string",
            Self::ListOfAny => ListType::Any.name(),
            Self::ListOfString => ListType::String.name(),
            Self::MapOfAny => MapType::Any.name(),
            Self::MapOfString => MapType::String.name(),
            Self::Object(name) | Self::Interface(name) => name,
        }
    }

    /// Whether nil can be assigned to this type.
    #[must_use]
    pub fn can_be_nil(self) -> bool {
        match self {
            Self::Any
            | Self::Interface(_)
            | Self::ListOfAny
            | Self::ListOfString
            | Self::MapOfAny
            | Self::MapOfString => true,
            Self::Object(name) => name.starts_with('*'),
            _ => false,
        }
    }

    /// Whether `value` can be assigned to this type. `value` must not be nil.
    #[must_use]
    pub fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, _)
            | (Self::Bool, Value::Bool(_))
            | (Self::Int, Value::Int(_, IntKind::Int))
            | (Self::Int64, Value::Int(_, IntKind::Int64))
            | (Self::Uint32, Value::Uint(_, UintKind::Uint32))
            | (Self::Float64, Value::Float(_))
            | (Self::String, Value::String(_)) => true,
            (Self::ListOfAny, Value::List(list)) => list.ty() == ListType::Any,
            (Self::ListOfString, Value::List(list)) => list.ty() == ListType::String,
            (Self::MapOfAny, Value::Map(map)) => map.ty() != MapType::String,
            (Self::MapOfString, Value::Map(map)) => map.ty() == MapType::String,
            (Self::Object(name), Value::Object(object)) => {
                let found = object.type_name();
                found == name || found.strip_prefix('*') == Some(name)
            }
            _ => false,
        }
    }
}
