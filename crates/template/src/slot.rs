//! A value as reflection represents it: Go distinguishes an interface from its content, and no value from a
//! nil interface. Error texts depend on the difference.

use std::borrow::Cow;

use crate::value::Value;

/// A value and its representation.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) value: Value,
    pub(crate) held: Held,
}

/// The representation of a value. As wide as a word: with a narrower tag, every move of a slot waits for its
/// own store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Held {
    /// No value: the zero `reflect.Value`.
    Nowhere,
    /// In an `interface {}`, which may be nil.
    Boxed,
    /// The concrete value.
    Bare,
}

impl Slot {
    /// Returns the zero `reflect.Value`.
    pub(crate) const NOTHING: Self = Self {
        value: Value::Nil,
        held: Held::Nowhere,
    };

    pub(crate) fn bare(value: Value) -> Self {
        Self {
            value,
            held: Held::Bare,
        }
    }

    pub(crate) fn boxed(value: Value) -> Self {
        Self {
            value,
            held: Held::Boxed,
        }
    }

    /// Wraps the result of a function: nil is a nil interface.
    pub(crate) fn result(value: Value) -> Self {
        let held = if matches!(value, Value::Nil) {
            Held::Boxed
        } else {
            Held::Bare
        };
        Self { value, held }
    }

    /// Wraps a value as `reflect.ValueOf` does.
    pub(crate) fn unboxed(mut self) -> Self {
        self.held = if matches!(self.value, Value::Nil) {
            Held::Nowhere
        } else {
            Held::Bare
        };
        self
    }

    /// Returns the static Go type.
    pub(crate) fn type_name(&self) -> Cow<'static, str> {
        if self.held == Held::Boxed {
            Cow::Borrowed("interface {}")
        } else {
            self.value.type_name()
        }
    }
}
