//! Fields, map entries and methods.

use std::rc::Rc;

use super::call::Callee;
use super::{Run, Step};
use crate::ast::NodeId;
use crate::object::{GoKind, Object};
use crate::set::MissingKey;
use crate::slot::{Held, Slot};
use crate::string::Str;
use crate::value::{MapType, Value};
use mainstay_gostd::quote::quote;

/// The field access being evaluated, and the fields after it.
#[derive(Clone, Copy)]
struct Place<'n> {
    dot: &'n Slot,
    node: NodeId,
    args: &'n [NodeId],
}

impl Run<'_> {
    /// Resolves one field after the other; the arguments go to the last one, if it is a method.
    pub(super) fn fields(
        &mut self,
        dot: &Slot,
        mut of: Slot,
        node: NodeId,
        names: &[Str],
        args: &[NodeId],
        last: Option<Slot>,
    ) -> Step<Slot> {
        let Some((final_name, names)) = names.split_last() else {
            return Ok(of);
        };
        for name in names {
            of = self.field(Place { dot, node, args: &[] }, &of, name, None)?;
        }
        self.field(Place { dot, node, args }, &of, final_name, last)
    }

    fn field(&mut self, place: Place<'_>, of: &Slot, name: &Str, last: Option<Slot>) -> Step<Slot> {
        if let Some(method) = of.value.named_method(name) {
            let callee = Callee::Named(method, &of.value);
            return self.call(place.dot, callee, place.node, name, place.args, last);
        }
        match (&of.value, of.held) {
            (Value::Map(map), _) => {
                if !place.args.is_empty() || last.is_some() {
                    return self.fail(format!("{name} is not a method but has arguments"));
                }
                let boxed = map.ty() != MapType::String;
                match map.get(name) {
                    Some(value) if boxed => Ok(Slot::boxed(value)),
                    Some(value) => Ok(Slot::bare(value)),
                    None if boxed => self.missing(name, Value::Nil),
                    None => self.missing(name, Value::String(Str::default())),
                }
            }
            (Value::Object(object), _) => {
                let object = Rc::clone(object);
                self.object_field(place, of, &object, name, last)
            }
            (_, Held::Nowhere) if self.missing_key == MissingKey::Error => {
                self.fail(format!("nil data; no entry for key {}", quote(name)))
            }
            (_, Held::Nowhere) => Ok(Slot::NOTHING),
            (Value::Nil, _) => self.fail(format!("nil pointer evaluating {}.{name}", of.type_name())),
            _ => self.fail(format!("can't evaluate field {name} in type {}", of.type_name())),
        }
    }

    pub(super) fn missing(&self, name: &Str, zero: Value) -> Step<Slot> {
        match self.missing_key {
            MissingKey::Default => Ok(Slot::NOTHING),
            MissingKey::Zero => Ok(Slot::result(zero)),
            MissingKey::Error => self.fail(format!("map has no entry for key {}", quote(name))),
        }
    }

    fn object_field(
        &mut self,
        place: Place<'_>,
        of: &Slot,
        object: &Rc<dyn Object>,
        name: &Str,
        last: Option<Slot>,
    ) -> Step<Slot> {
        let text = name.to_str_lossy();
        if let Some(signature) = object.method(&text) {
            let callee = Callee::Method(object, signature);
            return self.call(place.dot, callee, place.node, name, place.args, last);
        }
        let has_args = !place.args.is_empty() || last.is_some();
        let is_map = object.go_kind() == GoKind::Map;
        match object.field(&text) {
            _ if is_map && has_args => self.fail(format!("{name} is not a method but has arguments")),
            Some(_) if has_args => {
                self.fail(format!("{name} has arguments but cannot be invoked as function"))
            }
            Some(value) => Ok(Slot::result(value)),
            None if is_map => self.missing(name, Value::Nil),
            None => self.fail(format!("can't evaluate field {name} in type {}", of.type_name())),
        }
    }
}
