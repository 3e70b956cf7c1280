//! Access to fields, map entries and methods.

use std::rc::Rc;

use super::call::Callee;
use super::{Run, Step};
use crate::ast::NodeId;
use crate::object::{GoKind, Object};
use crate::set::MissingKey;
use crate::slot::{Representation, Slot};
use crate::string::Str;
use crate::value::{MapType, Value};
use mainstay_gostd::quote::quote;

/// The field access that is being evaluated, and its arguments.
#[derive(Clone, Copy)]
struct FieldAccess<'n> {
    dot: &'n Slot,
    node: NodeId,
    args: &'n [NodeId],
}

impl Run<'_> {
    /// Evaluates a chain of fields. The arguments are passed to the last one, which must then be a method.
    pub(super) fn evaluate_fields(
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
            of = self.access_field(FieldAccess { dot, node, args: &[] }, &of, name, None)?;
        }
        self.access_field(FieldAccess { dot, node, args }, &of, final_name, last)
    }

    fn access_field(
        &mut self,
        access: FieldAccess<'_>,
        of: &Slot,
        name: &Str,
        last: Option<Slot>,
    ) -> Step<Slot> {
        if let Some(method) = of.value.named_method(name) {
            let callee = Callee::Named(method, &of.value);
            return self.call(access.dot, callee, access.node, name, access.args, last);
        }
        match (&of.value, of.representation) {
            (Value::Map(map), _) => {
                if !access.args.is_empty() || last.is_some() {
                    return self.fail(format!("{name} is not a method but has arguments"));
                }
                let as_interface = map.ty() != MapType::String;
                match map.get(name) {
                    Some(value) if as_interface => Ok(Slot::interface(value)),
                    Some(value) => Ok(Slot::concrete(value)),
                    None if as_interface => self.missing_entry(name, Value::Nil),
                    None => self.missing_entry(name, Value::String(Str::default())),
                }
            }
            (Value::Object(object), _) => {
                let object = Rc::clone(object);
                self.access_object_field(access, of, &object, name, last)
            }
            (_, Representation::NoValue) if self.missing_key == MissingKey::Error => {
                self.fail(format!("nil data; no entry for key {}", quote(name)))
            }
            (_, Representation::NoValue) => Ok(Slot::NO_VALUE),
            (Value::Nil, _) => self.fail(format!("nil pointer evaluating {}.{name}", of.type_name())),
            _ => self.fail(format!("can't evaluate field {name} in type {}", of.type_name())),
        }
    }

    pub(super) fn missing_entry(&self, name: &Str, zero: Value) -> Step<Slot> {
        match self.missing_key {
            MissingKey::Default => Ok(Slot::NO_VALUE),
            MissingKey::Zero => Ok(Slot::result(zero)),
            MissingKey::Error => self.fail(format!("map has no entry for key {}", quote(name))),
        }
    }

    fn access_object_field(
        &mut self,
        access: FieldAccess<'_>,
        of: &Slot,
        object: &Rc<dyn Object>,
        name: &Str,
        last: Option<Slot>,
    ) -> Step<Slot> {
        let text = name.to_str_lossy();
        if let Some(signature) = object.method(&text) {
            let callee = Callee::Method(object, signature);
            return self.call(access.dot, callee, access.node, name, access.args, last);
        }
        let has_args = !access.args.is_empty() || last.is_some();
        let is_map = object.go_kind() == GoKind::Map;
        match object.field(&text) {
            _ if is_map && has_args => self.fail(format!("{name} is not a method but has arguments")),
            Some(_) if has_args => {
                self.fail(format!("{name} has arguments but cannot be invoked as function"))
            }
            Some(value) => Ok(Slot::result(value)),
            None if is_map => self.missing_entry(name, Value::Nil),
            None => self.fail(format!("can't evaluate field {name} in type {}", of.type_name())),
        }
    }
}
