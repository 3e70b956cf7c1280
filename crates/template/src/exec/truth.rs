//! Conditions of `if` and `with`. Evaluated without creating values if only their truth is needed.

use super::eval::{ArgumentType, entry_or_nil, look_up_fields};
use super::{Run, Step};
use crate::ast::{Node, NodeId};
use crate::builtin::{Builtin, quick_equal};
use crate::set::Callable;
use crate::slot::Slot;
use crate::stack;
use crate::value::{MapType, Value};

impl<'a> Run<'a> {
    /// Evaluates a pipeline and sets its variables. Returns its truth.
    pub(super) fn evaluate_truth(&mut self, dot: &Slot, pipe: NodeId) -> Step<bool> {
        if let Some((first, args)) = self.only_command(pipe) {
            if args.is_empty()
                && let Some(truth) = self.with_plain_operand(dot, first, Value::is_true)
            {
                return Ok(truth);
            }
            if let Some(truth) = self.evaluate_logic(dot, first, args) {
                return truth;
            }
        }
        Ok(self.evaluate_pipeline(dot, pipe)?.value.is_true())
    }

    /// Returns the operands of a pipeline that is a single command and sets no variable.
    fn only_command(&self, pipe: NodeId) -> Option<(NodeId, &'a [NodeId])> {
        let source: &'a _ = self.source;
        let Node::Pipe { decl, cmds, .. } = source.node(pipe) else {
            return None;
        };
        let [command] = *source.children(cmds) else {
            return None;
        };
        let Node::Command(words) = source.node(command) else {
            return None;
        };
        let (&first, args) = source.children(words).split_first()?;
        decl.is_empty().then_some((first, args))
    }

    /// Evaluates the built-in functions that are common in conditions. Returns `None` for all other
    /// functions, and in all cases that could fail.
    fn evaluate_logic(&mut self, dot: &Slot, first: NodeId, args: &[NodeId]) -> Option<Step<bool>> {
        let Node::Identifier { function, .. } = self.source.node(first) else {
            return None;
        };
        let set: &'a _ = self.scope.set;
        let Callable::Builtin(builtin) = set.registry().row(function)? else {
            return None;
        };
        match (builtin, args) {
            (Builtin::Not, &[arg]) => Some(self.argument_truth(dot, arg).map(|truth| !truth)),
            (Builtin::And, [_, ..]) => Some(self.all_until(dot, args, false)),
            (Builtin::Or, [_, ..]) => Some(self.all_until(dot, args, true)),
            (Builtin::Eq, &[a, b]) => self.quick_compare(dot, a, b).map(Ok),
            (Builtin::Ne, &[a, b]) => self.quick_compare(dot, a, b).map(|equal| Ok(!equal)),
            _ => None,
        }
    }

    /// Returns `until` if an argument has this truth, and the opposite otherwise. Stops at the first such
    /// argument.
    fn all_until(&mut self, dot: &Slot, args: &[NodeId], until: bool) -> Step<bool> {
        for &arg in args {
            if self.argument_truth(dot, arg)? == until {
                return Ok(until);
            }
        }
        Ok(!until)
    }

    fn argument_truth(&mut self, dot: &Slot, arg: NodeId) -> Step<bool> {
        if let Some(truth) = self.with_plain_operand(dot, arg, Value::is_true) {
            return Ok(truth);
        }
        if let Node::Pipe { .. } = self.source.node(arg) {
            return stack::ensure_stack(|| self.evaluate_truth(dot, arg));
        }
        Ok(self
            .evaluate_argument(dot, ArgumentType::Any, arg)?
            .value
            .is_true())
    }

    fn quick_compare(&self, dot: &Slot, a: NodeId, b: NodeId) -> Option<bool> {
        self.with_plain_operand(dot, a, |a| self.with_plain_operand(dot, b, |b| quick_equal(a, b)))??
    }

    /// Calls `then` with the value of a plain operand, without copying it. Returns `None` for any other
    /// operand and for a missing key.
    fn with_plain_operand<R>(&self, dot: &Slot, id: NodeId, then: impl FnOnce(&Value) -> R) -> Option<R> {
        let source: &'a _ = self.source;
        let nil = Value::Nil;
        let entry = |value: Option<&Value>, ty| Some(then(entry_or_nil(value, ty, self.missing_key, &nil)?));
        match source.node(id) {
            Node::Field(fields) => look_up_fields(&dot.value, source.names(fields), entry)?,
            Node::Dot => entry(Some(&dot.value), MapType::Any),
            Node::Bool(value) => entry(Some(&Value::Bool(value)), MapType::Any),
            Node::String { value, .. } => entry(Some(&Value::String(source.string(value))), MapType::Any),
            Node::Variable { name, fields } => {
                let scope = self.vars.get(self.frame..).unwrap_or_default();
                let (_, slot) = scope.iter().rev().find(|(known, _)| *known == name)?;
                if fields.is_empty() {
                    return entry(Some(&slot.value), MapType::Any);
                }
                look_up_fields(&slot.value, source.names(fields), entry)?
            }
            _ => None,
        }
    }
}
