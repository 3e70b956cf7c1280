//! Evaluation of pipelines, commands and operands.

use super::{Run, Step};
use crate::ast::{Node, NodeId};
use crate::function::Type;
use crate::limit::Meter;
use crate::set::MissingKey;
use crate::slot::{Representation, Slot};
use crate::stack;
use crate::string::Str;
use crate::value::{MapType, UintKind, Value};

/// Maximum length of a field chain on the fast path, which keeps its stack frame small.
const MAX_FAST_FIELDS: usize = 8;

/// Looks up a chain of names in nested maps without copying, and calls `then` with the entry and the type
/// of the map that contains it. The entry is `None` if the last name is missing. Returns `None` if
/// `of` is not a map, if an earlier entry is missing or not a map, if a name refers to a method, or if the
/// chain is too long for the fast path.
pub(super) fn look_up_fields<R>(
    of: &Value,
    names: &[Str],
    then: impl FnOnce(Option<&Value>, MapType) -> R,
) -> Option<R> {
    let Value::Map(map) = of else { return None };
    let (first, rest) = names.split_first()?;
    if of.named_method(first).is_some() {
        return None;
    }
    let entries = map.entries();
    let value = entries.get(first);
    if rest.is_empty() {
        return Some(then(value, map.ty()));
    }
    if rest.len() >= MAX_FAST_FIELDS {
        None
    } else {
        look_up_fields(value?, rest, then)
    }
}

/// Returns the entry, or `nil` for a missing entry whose value is nil. Returns `None` for any other missing
/// entry.
pub(super) fn entry_or_nil<'v>(
    value: Option<&'v Value>,
    ty: MapType,
    missing: MissingKey,
    nil: &'v Value,
) -> Option<&'v Value> {
    value.or_else(|| (missing != MissingKey::Error && ty != MapType::String).then_some(nil))
}

/// Required type of an argument.
#[derive(Clone, Copy)]
pub(super) enum ArgumentType {
    /// Any type: `reflect.Value`.
    Any,
    /// A Go type.
    Type(Type),
    /// Not an argument, but the start of a field chain.
    FieldChain,
}

impl<'a> Run<'a> {
    /// Evaluates a pipeline and sets its variables. Returns its value.
    pub(super) fn evaluate_pipeline(&mut self, dot: &Slot, id: NodeId) -> Step<Slot> {
        self.at = Some(id);
        let source: &'a _ = self.source;
        let Node::Pipe { assign, decl, cmds } = source.node(id) else {
            return Ok(Slot::NO_VALUE);
        };
        if let (true, [only]) = (decl.is_empty(), source.children(cmds)) {
            let result = self.evaluate_command(dot, *only, None)?;
            return Ok(if result.representation == Representation::Interface {
                result.unwrap_interface()
            } else {
                result
            });
        }
        let mut value = None;
        for &command in source.children(cmds) {
            let result = self.evaluate_command(dot, command, value)?;
            value = Some(if result.representation == Representation::Interface {
                result.unwrap_interface()
            } else {
                result
            });
        }
        let value = value.unwrap_or(Slot::NO_VALUE);
        for &variable in source.children(decl) {
            if assign {
                self.assign(variable, value.clone())?;
            } else if let Node::Variable { name, .. } = source.node(variable) {
                self.vars.push((name, value.clone()));
            }
        }
        Ok(value)
    }

    pub(super) fn assign(&mut self, variable: NodeId, value: Slot) -> Step<()> {
        let Node::Variable { name, .. } = self.source.node(variable) else {
            return Ok(());
        };
        let scope = self.vars.get_mut(self.frame..).unwrap_or_default();
        match scope.iter_mut().rev().find(|(known, _)| *known == name) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => self.undefined(name),
        }
    }

    /// Converts a map entry to a slot. `names` is the chain that leads to it; the last name is the key.
    fn entry_slot(&self, value: Option<&Value>, ty: MapType, names: &[Str]) -> Step<Slot> {
        match (value, ty, names.last()) {
            (Some(value), MapType::String, _) => Ok(Slot::concrete(value.clone())),
            (Some(value), ..) => Ok(Slot::interface(value.clone())),
            (None, MapType::String, Some(name)) => self.missing_entry(name, Value::String(Str::default())),
            (None, _, Some(name)) => self.missing_entry(name, Value::Nil),
            (None, _, None) => Ok(Slot::NO_VALUE),
        }
    }

    /// Calls `then` with the value of a pipeline that is a single plain operand, without copying the value.
    /// Returns `None` for any other pipeline.
    pub(super) fn with_operand<R>(
        &mut self,
        dot: &Slot,
        pipe: NodeId,
        then: impl FnOnce(&Value, &mut Vec<u8>, &mut Meter) -> R,
    ) -> Option<R> {
        let source: &'a _ = self.source;
        let Node::Pipe { decl, cmds, .. } = source.node(pipe) else {
            return None;
        };
        let [command] = *source.children(cmds) else {
            return None;
        };
        let Node::Command(args) = source.node(command) else {
            return None;
        };
        let [operand] = *source.children(args) else {
            return None;
        };
        if !decl.is_empty() {
            return None;
        }
        let (out, meter, missing) = (&mut self.out, &mut *self.meter, self.missing_key);
        let nil = Value::Nil;
        let then =
            |value: Option<&Value>, ty| Some(then(entry_or_nil(value, ty, missing, &nil)?, out, meter));
        match source.node(operand) {
            Node::Field(fields) => look_up_fields(&dot.value, source.names(fields), then)?,
            Node::Dot => then(Some(&dot.value), MapType::Any),
            Node::Variable { name, fields } => {
                let scope = self.vars.get(self.frame..).unwrap_or_default();
                let (_, slot) = scope.iter().rev().find(|(known, _)| *known == name)?;
                if fields.is_empty() {
                    return then(Some(&slot.value), MapType::Any);
                }
                look_up_fields(&slot.value, source.names(fields), then)?
            }
            _ => None,
        }
    }

    fn find_variable(&self, name: u32) -> Step<&Slot> {
        let scope = self.vars.get(self.frame..).unwrap_or_default();
        match scope.iter().rev().find(|(known, _)| *known == name) {
            Some((_, slot)) => Ok(slot),
            None => self.undefined(name),
        }
    }

    #[cold]
    fn undefined<T>(&self, name: u32) -> Step<T> {
        self.fail(format!(
            "undefined variable: {}",
            String::from_utf8_lossy(self.source.name(name))
        ))
    }

    /// Evaluates a command. `last` is the value that is piped into it.
    fn evaluate_command(&mut self, dot: &Slot, id: NodeId, last: Option<Slot>) -> Step<Slot> {
        self.consume_fuel(1)?;
        let source: &'a _ = self.source;
        let Node::Command(args) = source.node(id) else {
            return Ok(Slot::NO_VALUE);
        };
        let args = source.children(args);
        let Some((&first, rest)) = args.split_first() else {
            return Ok(Slot::NO_VALUE);
        };
        match source.node(first) {
            Node::Field(_) => return self.evaluate_field(dot, first, rest, last),
            Node::Chain { .. } => return self.evaluate_chain(dot, first, rest, last),
            Node::Identifier { .. } => return self.call_function(dot, first, id, rest, last),
            Node::Pipe { .. } => {
                self.check_no_arguments(first, rest, last.as_ref())?;
                return stack::ensure_stack(|| self.evaluate_pipeline(dot, first));
            }
            Node::Variable { .. } => return self.evaluate_variable(dot, first, rest, last),
            _ => {}
        }
        self.at = Some(first);
        self.check_no_arguments(first, rest, last.as_ref())?;
        match source.node(first) {
            Node::Dot => Ok(dot.clone()),
            Node::Nil => self.fail("nil is not a command"),
            _ => self.evaluate_constant(first),
        }
    }

    fn check_no_arguments(&self, first: NodeId, rest: &[NodeId], last: Option<&Slot>) -> Step<()> {
        if rest.is_empty() && last.is_none() {
            return Ok(());
        }
        self.fail(format!(
            "can't give argument to non-function {}",
            self.source.show(first)
        ))
    }

    /// Evaluates a literal whose type is determined by its syntax.
    fn evaluate_constant(&mut self, id: NodeId) -> Step<Slot> {
        match self.source.node(id) {
            Node::Bool(value) => Ok(Slot::concrete(Value::Bool(value))),
            Node::String { value, .. } => Ok(Slot::concrete(Value::String(self.source.string(value)))),
            Node::Number { number, .. } => self.ideal_number(id, number),
            _ => self.fail(format!(
                "can't evaluate command {}",
                mainstay_gostd::quote::quote(self.source.show(id))
            )),
        }
    }

    fn ideal_number(&mut self, id: NodeId, number: u32) -> Step<Slot> {
        self.at = Some(id);
        let Some(number) = self.source.number(number) else {
            return Ok(Slot::NO_VALUE);
        };
        Ok(Slot::concrete(
            match (number.complex, number.float, number.int, number.uint) {
                (Some((real, imaginary)), ..) => Value::Complex(real, imaginary),
                (_, Some(float), ..) if number.looks_float => Value::Float(float),
                (_, _, Some(int), _) => Value::int(int),
                (_, _, _, Some(_)) => return self.fail(format!("{} overflows int", self.source.show(id))),
                _ => return Ok(Slot::NO_VALUE),
            },
        ))
    }

    fn evaluate_field(&mut self, dot: &Slot, id: NodeId, args: &[NodeId], last: Option<Slot>) -> Step<Slot> {
        self.at = Some(id);
        let source: &'a _ = self.source;
        let Node::Field(fields) = source.node(id) else {
            return Ok(Slot::NO_VALUE);
        };
        let names = source.names(fields);
        if args.is_empty()
            && last.is_none()
            && let Some(found) =
                look_up_fields(&dot.value, names, |value, ty| self.entry_slot(value, ty, names))
        {
            return found;
        }
        self.evaluate_fields(dot, dot.clone(), id, names, args, last)
    }

    fn evaluate_chain(&mut self, dot: &Slot, id: NodeId, args: &[NodeId], last: Option<Slot>) -> Step<Slot> {
        self.at = Some(id);
        let source: &'a _ = self.source;
        let Node::Chain { base, fields } = source.node(id) else {
            return Ok(Slot::NO_VALUE);
        };
        let head = self.evaluate_argument(dot, ArgumentType::FieldChain, base)?;
        self.evaluate_fields(dot, head, id, source.names(fields), args, last)
    }

    fn evaluate_variable(
        &mut self,
        dot: &Slot,
        id: NodeId,
        args: &[NodeId],
        last: Option<Slot>,
    ) -> Step<Slot> {
        self.at = Some(id);
        let source: &'a _ = self.source;
        let Node::Variable { name, fields } = source.node(id) else {
            return Ok(Slot::NO_VALUE);
        };
        let value = self.find_variable(name)?;
        if fields.is_empty() {
            self.check_no_arguments(id, args, last.as_ref())?;
            return Ok(value.clone());
        }
        let names = source.names(fields);
        if args.is_empty()
            && last.is_none()
            && let Some(found) =
                look_up_fields(&value.value, names, |value, ty| self.entry_slot(value, ty, names))
        {
            return found;
        }
        let value = value.clone();
        self.evaluate_fields(dot, value, id, names, args, last)
    }

    /// Evaluates an argument that must be of type `want`.
    pub(super) fn evaluate_argument(&mut self, dot: &Slot, want: ArgumentType, id: NodeId) -> Step<Slot> {
        self.at = Some(id);
        let value = match self.source.node(id) {
            Node::Dot => dot.clone(),
            Node::Nil => return self.evaluate_nil(want, id),
            Node::Field(_) => self.evaluate_field(dot, id, &[], None)?,
            Node::Variable { .. } => self.evaluate_variable(dot, id, &[], None)?,
            Node::Pipe { .. } => stack::ensure_stack(|| self.evaluate_pipeline(dot, id))?,
            Node::Identifier { .. } => self.call_function(dot, id, id, &[], None)?,
            Node::Chain { .. } => stack::ensure_stack(|| self.evaluate_chain(dot, id, &[], None))?,
            _ => return self.evaluate_literal(want, id),
        };
        self.convert_argument(value, want)
    }

    fn evaluate_nil(&self, want: ArgumentType, id: NodeId) -> Step<Slot> {
        match want {
            ArgumentType::Any => Ok(Slot::NO_VALUE),
            ArgumentType::Type(ty) if ty.can_be_nil() => Ok(Slot::interface(Value::Nil)),
            ArgumentType::Type(ty) => self.fail(format!("cannot assign nil to {}", ty.name())),
            ArgumentType::FieldChain => self.fail(format!(
                "indirection through explicit nil in {}",
                self.source.show(id)
            )),
        }
    }

    /// Evaluates a literal as an argument. Go's untyped constants are converted to the parameter's type.
    fn evaluate_literal(&mut self, want: ArgumentType, id: NodeId) -> Step<Slot> {
        let ArgumentType::Type(ty) = want else {
            return self.evaluate_constant(id);
        };
        let node = self.source.node(id);
        let number = match node {
            Node::Number { number, .. } => self.source.number(number),
            _ => None,
        };
        let (value, expected) = match ty {
            Type::Any => return self.evaluate_constant(id),
            Type::Bool => (
                if let Node::Bool(value) = node {
                    Some(Value::Bool(value))
                } else {
                    None
                },
                "bool",
            ),
            Type::String => match node {
                Node::String { value, .. } => (Some(Value::String(self.source.string(value))), "string"),
                _ => (None, "string"),
            },
            Type::Int => (number.and_then(|number| number.int).map(Value::int), "integer"),
            Type::Int64 => (number.and_then(|number| number.int).map(Value::int64), "integer"),
            Type::Uint32 => {
                let cut = |uint: u64| Value::Uint(u64::from(uint as u32), UintKind::Uint32);
                (number.and_then(|number| number.uint).map(cut), "unsigned integer")
            }
            Type::Float64 => (number.and_then(|number| number.float).map(Value::Float), "float"),
            _ => {
                return self.fail(format!(
                    "can't handle {} for arg of type {}",
                    self.source.show(id),
                    ty.name()
                ));
            }
        };
        match value {
            Some(value) => Ok(Slot::concrete(value)),
            None => self.fail(format!("expected {expected}; found {}", self.source.show(id))),
        }
    }

    /// Converts `value` to the type `want`, or returns Go's error.
    pub(super) fn convert_argument(&self, value: Slot, want: ArgumentType) -> Step<Slot> {
        let ArgumentType::Type(ty) = want else {
            return Ok(value);
        };
        match (value.representation, &value.value) {
            (Representation::NoValue, _) if ty.can_be_nil() => Ok(Slot::interface(Value::Nil)),
            (Representation::NoValue, _) => self.fail(format!("invalid value; expected {}", ty.name())),
            (_, Value::Nil) if ty == Type::Any => Ok(value),
            // Assigning to an unnamed map type removes the type name.
            (_, Value::Map(map)) if ty == Type::MapOfAny && matches!(map.ty(), MapType::Named(_)) => {
                Ok(Slot::concrete(Value::Map(map.retyped(MapType::Any))))
            }
            (_, inner) if !matches!(inner, Value::Nil) && ty.admits(inner) => Ok(value),
            (_, Value::Nil) => self.wrong_type(ty, "interface {}"),
            (_, inner) => self.wrong_type(ty, &inner.type_name()),
        }
    }

    #[cold]
    fn wrong_type(&self, ty: Type, found: &str) -> Step<Slot> {
        self.fail(format!(
            "wrong type for value; expected {}; got {found}",
            ty.name()
        ))
    }
}
