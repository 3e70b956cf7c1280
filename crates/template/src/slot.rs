//! A value as reflection holds it: Go tells an interface from what is inside it, and nothing at all from a nil interface. Error
//! texts depend on it.

use std::borrow::Cow;

use crate::value::Value;

/// A value and how it is held.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) value: Value,
    pub(crate) held: Held,
}

/// How a value is held. As wide as a word: a narrower tag makes every move of a slot wait for its own store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Held {
    /// Not at all: the zero `reflect.Value`.
    Nowhere,
    /// In an `interface {}`, which may be nil.
    Boxed,
    /// As itself.
    Bare,
}

impl Slot {
    /// The zero `reflect.Value`.
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

    /// What a function gave: nil comes as a nil interface.
    pub(crate) fn result(value: Value) -> Self {
        let held = if matches!(value, Value::Nil) {
            Held::Boxed
        } else {
            Held::Bare
        };
        Self { value, held }
    }

    /// What `reflect.ValueOf` of it would be.
    pub(crate) fn unboxed(mut self) -> Self {
        self.held = if matches!(self.value, Value::Nil) {
            Held::Nowhere
        } else {
            Held::Bare
        };
        self
    }

    /// Its static Go type.
    pub(crate) fn type_name(&self) -> Cow<'static, str> {
        if self.held == Held::Boxed {
            Cow::Borrowed("interface {}")
        } else {
            self.value.type_name()
        }
    }
}
