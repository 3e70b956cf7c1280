//! Evaluation of pipelines, commands and operands.

use super::{Run, Step};
use crate::ast::{Node, NodeId};
use crate::function::Type;
use crate::limit::Meter;
use crate::set::MissingKey;
use crate::slot::{Held, Slot};
use crate::stack;
use crate::string::Str;
use crate::value::{MapType, UintKind, Value};

/// Maximum length of a field chain on the fast path, which keeps its stack frame small.
const MAX_FAST_FIELDS: usize = 8;

/// Calls `then` with the entry that a chain of names leads to and the type of its map, if the chain leads
/// through maps only. Copies nothing on the way. `None` is a missing entry at the end of the chain.
pub(super) fn dig<R>(
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
        dig(value?, rest, then)
    }
}

/// Returns the value of an entry, or of a missing entry where that is nil.
pub(super) fn or_nil<'v>(
    value: Option<&'v Value>,
    ty: MapType,
    missing: MissingKey,
    nil: &'v Value,
) -> Option<&'v Value> {
    value.or_else(|| (missing != MissingKey::Error && ty != MapType::String).then_some(nil))
}

/// The type that an argument must have.
#[derive(Clone, Copy)]
pub(super) enum Want {
    /// Any type: `reflect.Value`.
    Reflection,
    /// A Go type.
    Type(Type),
    /// Not an argument: the start of a field chain.
    Unasked,
}

impl<'a> Run<'a> {
    /// Returns the value of a pipeline, after setting its variables.
    pub(super) fn pipeline(&mut self, dot: &Slot, id: NodeId) -> Step<Slot> {
        self.at = Some(id);
        let source: &'a _ = self.source;
        let Node::Pipe { assign, decl, cmds } = source.node(id) else {
            return Ok(Slot::NOTHING);
        };
        if let (true, [only]) = (decl.is_empty(), source.children(cmds)) {
            let result = self.command(dot, *only, None)?;
            return Ok(if result.held == Held::Boxed {
                result.unboxed()
            } else {
                result
            });
        }
        let mut value = None;
        for &command in source.children(cmds) {
            let result = self.command(dot, command, value)?;
            value = Some(if result.held == Held::Boxed {
                result.unboxed()
            } else {
                result
            });
        }
        let value = value.unwrap_or(Slot::NOTHING);
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

    /// Returns the value of a map for the last of `names`.
    fn entry(&self, value: Option<&Value>, ty: MapType, names: &[Str]) -> Step<Slot> {
        match (value, ty, names.last()) {
            (Some(value), MapType::String, _) => Ok(Slot::bare(value.clone())),
            (Some(value), ..) => Ok(Slot::boxed(value.clone())),
            (None, MapType::String, Some(name)) => self.missing(name, Value::String(Str::default())),
            (None, _, Some(name)) => self.missing(name, Value::Nil),
            (None, _, None) => Ok(Slot::NOTHING),
        }
    }

    /// Calls `then` with the value of a pipeline that is one plain operand, without copying it; `None` for
    /// any other pipeline.
    pub(super) fn peek<R>(
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
        let then = |value: Option<&Value>, ty| Some(then(or_nil(value, ty, missing, &nil)?, out, meter));
        match source.node(operand) {
            Node::Field(fields) => dig(&dot.value, source.names(fields), then)?,
            Node::Dot => then(Some(&dot.value), MapType::Any),
            Node::Variable { name, fields } => {
                let scope = self.vars.get(self.frame..).unwrap_or_default();
                let (_, slot) = scope.iter().rev().find(|(known, _)| *known == name)?;
                if fields.is_empty() {
                    return then(Some(&slot.value), MapType::Any);
                }
                dig(&slot.value, source.names(fields), then)?
            }
            _ => None,
        }
    }

    fn variable(&self, name: u32) -> Step<&Slot> {
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

    /// Evaluates a command; `last` is the value piped into it.
    fn command(&mut self, dot: &Slot, id: NodeId, last: Option<Slot>) -> Step<Slot> {
        self.consume_fuel(1)?;
        let source: &'a _ = self.source;
        let Node::Command(args) = source.node(id) else {
            return Ok(Slot::NOTHING);
        };
        let args = source.children(args);
        let Some((&first, rest)) = args.split_first() else {
            return Ok(Slot::NOTHING);
        };
        match source.node(first) {
            Node::Field(_) => return self.field_node(dot, first, rest, last),
            Node::Chain { .. } => return self.chain_node(dot, first, rest, last),
            Node::Identifier { .. } => return self.function(dot, first, id, rest, last),
            Node::Pipe { .. } => {
                self.not_a_function(first, rest, last.as_ref())?;
                return stack::ensure_stack(|| self.pipeline(dot, first));
            }
            Node::Variable { .. } => return self.variable_node(dot, first, rest, last),
            _ => {}
        }
        self.at = Some(first);
        self.not_a_function(first, rest, last.as_ref())?;
        match source.node(first) {
            Node::Dot => Ok(dot.clone()),
            Node::Nil => self.fail("nil is not a command"),
            _ => self.constant(first),
        }
    }

    fn not_a_function(&self, first: NodeId, rest: &[NodeId], last: Option<&Slot>) -> Step<()> {
        if rest.is_empty() && last.is_none() {
            return Ok(());
        }
        self.fail(format!(
            "can't give argument to non-function {}",
            self.source.show(first)
        ))
    }

    /// Evaluates a literal whose type is determined by its syntax.
    fn constant(&mut self, id: NodeId) -> Step<Slot> {
        match self.source.node(id) {
            Node::Bool(value) => Ok(Slot::bare(Value::Bool(value))),
            Node::String { value, .. } => Ok(Slot::bare(Value::String(self.source.string(value)))),
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
            return Ok(Slot::NOTHING);
        };
        Ok(Slot::bare(
            match (number.complex, number.float, number.int, number.uint) {
                (Some((real, imaginary)), ..) => Value::Complex(real, imaginary),
                (_, Some(float), ..) if number.looks_float => Value::Float(float),
                (_, _, Some(int), _) => Value::int(int),
                (_, _, _, Some(_)) => return self.fail(format!("{} overflows int", self.source.show(id))),
                _ => return Ok(Slot::NOTHING),
            },
        ))
    }

    fn field_node(&mut self, dot: &Slot, id: NodeId, args: &[NodeId], last: Option<Slot>) -> Step<Slot> {
        self.at = Some(id);
        let source: &'a _ = self.source;
        let Node::Field(fields) = source.node(id) else {
            return Ok(Slot::NOTHING);
        };
        let names = source.names(fields);
        if args.is_empty()
            && last.is_none()
            && let Some(found) = dig(&dot.value, names, |value, ty| self.entry(value, ty, names))
        {
            return found;
        }
        self.fields(dot, dot.clone(), id, names, args, last)
    }

    fn chain_node(&mut self, dot: &Slot, id: NodeId, args: &[NodeId], last: Option<Slot>) -> Step<Slot> {
        self.at = Some(id);
        let source: &'a _ = self.source;
        let Node::Chain { of, fields } = source.node(id) else {
            return Ok(Slot::NOTHING);
        };
        let head = self.argument(dot, Want::Unasked, of)?;
        self.fields(dot, head, id, source.names(fields), args, last)
    }

    fn variable_node(&mut self, dot: &Slot, id: NodeId, args: &[NodeId], last: Option<Slot>) -> Step<Slot> {
        self.at = Some(id);
        let source: &'a _ = self.source;
        let Node::Variable { name, fields } = source.node(id) else {
            return Ok(Slot::NOTHING);
        };
        let value = self.variable(name)?;
        if fields.is_empty() {
            self.not_a_function(id, args, last.as_ref())?;
            return Ok(value.clone());
        }
        let names = source.names(fields);
        if args.is_empty()
            && last.is_none()
            && let Some(found) = dig(&value.value, names, |value, ty| self.entry(value, ty, names))
        {
            return found;
        }
        let value = value.clone();
        self.fields(dot, value, id, names, args, last)
    }

    /// Evaluates an argument that must be of type `want`.
    pub(super) fn argument(&mut self, dot: &Slot, want: Want, id: NodeId) -> Step<Slot> {
        self.at = Some(id);
        let value = match self.source.node(id) {
            Node::Dot => dot.clone(),
            Node::Nil => return self.nil(want, id),
            Node::Field(_) => self.field_node(dot, id, &[], None)?,
            Node::Variable { .. } => self.variable_node(dot, id, &[], None)?,
            Node::Pipe { .. } => stack::ensure_stack(|| self.pipeline(dot, id))?,
            Node::Identifier { .. } => self.function(dot, id, id, &[], None)?,
            Node::Chain { .. } => stack::ensure_stack(|| self.chain_node(dot, id, &[], None))?,
            _ => return self.literal(want, id),
        };
        self.fit(value, want)
    }

    fn nil(&self, want: Want, id: NodeId) -> Step<Slot> {
        match want {
            Want::Reflection => Ok(Slot::NOTHING),
            Want::Type(ty) if ty.can_be_nil() => Ok(Slot::boxed(Value::Nil)),
            Want::Type(ty) => self.fail(format!("cannot assign nil to {}", ty.name())),
            Want::Unasked => self.fail(format!(
                "indirection through explicit nil in {}",
                self.source.show(id)
            )),
        }
    }

    /// Evaluates a literal as an argument: Go's untyped constants take the parameter's type.
    fn literal(&mut self, want: Want, id: NodeId) -> Step<Slot> {
        let Want::Type(ty) = want else {
            return self.constant(id);
        };
        let node = self.source.node(id);
        let number = match node {
            Node::Number { number, .. } => self.source.number(number),
            _ => None,
        };
        let (value, expected) = match ty {
            Type::Any => return self.constant(id),
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
            Some(value) => Ok(Slot::bare(value)),
            None => self.fail(format!("expected {expected}; found {}", self.source.show(id))),
        }
    }

    /// Converts the value to `want`, or returns Go's error.
    pub(super) fn fit(&self, value: Slot, want: Want) -> Step<Slot> {
        let Want::Type(ty) = want else { return Ok(value) };
        match (value.held, &value.value) {
            (Held::Nowhere, _) if ty.can_be_nil() => Ok(Slot::boxed(Value::Nil)),
            (Held::Nowhere, _) => self.fail(format!("invalid value; expected {}", ty.name())),
            (_, Value::Nil) if ty == Type::Any => Ok(value),
            // An assignment to an unnamed map type drops the name.
            (_, Value::Map(map)) if ty == Type::MapOfAny && matches!(map.ty(), MapType::Named(_)) => {
                Ok(Slot::bare(Value::Map(map.retyped(MapType::Any))))
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
