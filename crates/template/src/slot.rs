//! Values as represented by reflection: Go distinguishes an interface from its content, and "no value" from
//! a nil interface. Error texts depend on the difference.

use std::borrow::Cow;

use crate::value::Value;

/// A value and its representation in Go's reflection.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) value: Value,
    pub(crate) representation: Representation,
}

/// Representation of a value. As wide as a word: with a narrower tag, every move of a slot would wait for a
/// separate store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Representation {
    /// No value: the zero `reflect.Value`.
    NoValue,
    /// Content of an `interface {}`, which may be nil.
    Interface,
    /// A concrete value.
    Concrete,
}

impl Slot {
    /// The zero `reflect.Value`.
    pub(crate) const NO_VALUE: Self = Self {
        value: Value::Nil,
        representation: Representation::NoValue,
    };

    pub(crate) fn concrete(value: Value) -> Self {
        Self {
            value,
            representation: Representation::Concrete,
        }
    }

    pub(crate) fn interface(value: Value) -> Self {
        Self {
            value,
            representation: Representation::Interface,
        }
    }

    /// Wraps the result of a function. Nil becomes a nil interface.
    pub(crate) fn result(value: Value) -> Self {
        let representation = if matches!(value, Value::Nil) {
            Representation::Interface
        } else {
            Representation::Concrete
        };
        Self {
            value,
            representation,
        }
    }

    /// Converts to the representation that `reflect.ValueOf` returns.
    pub(crate) fn unwrap_interface(mut self) -> Self {
        self.representation = if matches!(self.value, Value::Nil) {
            Representation::NoValue
        } else {
            Representation::Concrete
        };
        self
    }

    /// Returns the static Go type.
    pub(crate) fn type_name(&self) -> Cow<'static, str> {
        if self.representation == Representation::Interface {
            Cow::Borrowed("interface {}")
        } else {
            self.value.type_name()
        }
    }
}
