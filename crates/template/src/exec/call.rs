//! Function calls: arguments are counted, evaluated and converted to the signature before the function
//! runs.

use std::rc::Rc;

use super::eval::ArgumentType;
use super::{Callback, Run, Step};
use crate::ast::{Node, NodeId};
use crate::builtin::{self, Builtin};
use crate::function::{Call, Failure, Function, Type};
use crate::object::{Method, Object, Signature};
use crate::set::Callable;
use crate::slot::Slot;
use crate::value::Value;

/// Maximum number of arguments of a built-in function that are stored without a heap allocation.
const INLINE_ARGS: usize = 3;

/// The called function or method.
#[derive(Clone, Copy)]
pub(super) enum Callee<'c> {
    Builtin(Builtin),
    Function(&'c Function),
    Method(&'c Rc<dyn Object>, Signature),
    /// A method of a named map or slice, and its receiver.
    Named(&'static Method, &'c Value),
}

impl Callee<'_> {
    /// Returns the number of parameters without the variadic one, and whether there is a variadic one.
    fn arity(self) -> (usize, bool) {
        let (params, variadic) = match self {
            Self::Builtin(builtin) => return builtin.arity(),
            Self::Function(function) => (function.params.len(), function.variadic),
            Self::Method(_, signature) => (signature.params.len(), signature.variadic),
            Self::Named(method, _) => (method.signature.params.len(), method.signature.variadic),
        };
        (params - usize::from(variadic && params > 0), variadic)
    }

    fn argument_type(self, index: usize) -> ArgumentType {
        let params = match self {
            Self::Builtin(builtin) => {
                return builtin
                    .argument_type(index)
                    .map_or(ArgumentType::Any, ArgumentType::Type);
            }
            Self::Function(function) => function.params,
            Self::Method(_, signature) => signature.params,
            Self::Named(method, _) => method.signature.params,
        };
        ArgumentType::Type(params.get(index).or(params.last()).copied().unwrap_or(Type::Any))
    }
}

impl<'a> Run<'a> {
    /// Calls the function that `identifier` names. Errors of the function itself are reported at `node`.
    pub(super) fn call_function(
        &mut self,
        dot: &Slot,
        identifier: NodeId,
        node: NodeId,
        args: &[NodeId],
        last: Option<Slot>,
    ) -> Step<Slot> {
        self.at = Some(identifier);
        let source: &'a _ = self.source;
        let Node::Identifier { name, function } = source.node(identifier) else {
            return Ok(Slot::NO_VALUE);
        };
        let set: &'a _ = self.scope.set;
        let name = source.name(name);
        match set.registry().row(function) {
            Some(Callable::Builtin(Builtin::And)) => self.short_circuit(dot, name, args, last, false),
            Some(Callable::Builtin(Builtin::Or)) => self.short_circuit(dot, name, args, last, true),
            Some(Callable::Builtin(builtin)) => {
                self.call(dot, Callee::Builtin(*builtin), node, name, args, last)
            }
            Some(Callable::Function(row)) => self.call(dot, Callee::Function(row), node, name, args, last),
            None => {
                let name = mainstay_gostd::quote::quote(name);
                self.fail(format!("{name} is not a defined function"))
            }
        }
    }

    /// Evaluates `and` and `or`. Returns the first argument whose truth is `until`, or else the last
    /// argument.
    fn short_circuit(
        &mut self,
        dot: &Slot,
        name: &[u8],
        args: &[NodeId],
        last: Option<Slot>,
        until: bool,
    ) -> Step<Slot> {
        self.check_count(Callee::Builtin(Builtin::And), name, args.len(), last.is_some())?;
        let mut value = Slot::NO_VALUE;
        for &arg in args {
            value = self.evaluate_argument(dot, ArgumentType::Any, arg)?;
            if value.value.is_true() == until {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    fn check_count(&self, callee: Callee<'_>, name: &[u8], args: usize, piped: bool) -> Step<()> {
        let (fixed, variadic) = callee.arity();
        let given = args + usize::from(piped);
        if variadic && given < fixed {
            let name = String::from_utf8_lossy(name);
            return self.fail(format!(
                "wrong number of args for {name}: want at least {fixed} got {args}"
            ));
        }
        if !variadic && given != fixed {
            let name = String::from_utf8_lossy(name);
            return self.fail(format!(
                "wrong number of args for {name}: want {fixed} got {given}"
            ));
        }
        Ok(())
    }

    pub(super) fn call(
        &mut self,
        dot: &Slot,
        callee: Callee<'_>,
        node: NodeId,
        name: &[u8],
        args: &[NodeId],
        last: Option<Slot>,
    ) -> Step<Slot> {
        self.check_count(callee, name, args.len(), last.is_some())?;
        let result = match callee {
            Callee::Builtin(builtin) => self.call_builtin(dot, builtin, args, last)?,
            Callee::Function(function) => {
                self.call_native(dot, callee, args, last, |call| (function.run)(call))?
            }
            Callee::Method(object, _) => {
                let method = String::from_utf8_lossy(name);
                self.call_native(dot, callee, args, last, |call| object.call(&method, call))?
            }
            Callee::Named(method, receiver) => {
                self.call_native(dot, callee, args, last, |call| (method.run)(receiver, call))?
            }
        };
        result.map_err(|failure| {
            self.at = Some(node);
            self.failure(name, failure)
        })
    }

    fn call_native(
        &mut self,
        dot: &Slot,
        callee: Callee<'_>,
        args: &[NodeId],
        last: Option<Slot>,
        run: impl FnOnce(&mut Call<'_>) -> Result<Value, Failure>,
    ) -> Step<Result<Slot, Failure>> {
        let mut values = self.argument_lists.pop().unwrap_or_default();
        for (index, &arg) in args.iter().enumerate() {
            values.push(
                self.evaluate_argument(dot, callee.argument_type(index), arg)?
                    .value,
            );
        }
        if let Some(last) = last {
            values.push(
                self.convert_argument(last, callee.argument_type(args.len()))?
                    .value,
            );
        }
        let mut templates = Callback { scope: self.scope };
        let mut call = Call {
            args: &values,
            meter: &mut *self.meter,
            host: &mut *self.host,
            templates: &mut templates,
        };
        let result = run(&mut call);
        values.clear();
        self.argument_lists.push(values);
        // The size of a function's values may be known only after the call.
        Ok(result.and_then(|value| {
            self.meter.allocate(0)?;
            Ok(Slot::result(value))
        }))
    }

    fn call_builtin(
        &mut self,
        dot: &Slot,
        builtin: Builtin,
        args: &[NodeId],
        last: Option<Slot>,
    ) -> Step<Result<Slot, Failure>> {
        if builtin.is_text() {
            return self.call_text(dot, builtin, args, last);
        }
        let given = args.len() + usize::from(last.is_some());
        if given <= INLINE_ARGS {
            let mut slots = [Slot::NO_VALUE; INLINE_ARGS];
            self.evaluate_arguments(dot, args, last, &mut slots)?;
            return Ok(self.finish_builtin(builtin, args, slots.get(..given).unwrap_or(&slots)));
        }
        let mut slots = vec![Slot::NO_VALUE; given];
        self.evaluate_arguments(dot, args, last, &mut slots)?;
        Ok(self.finish_builtin(builtin, args, &slots))
    }

    /// Evaluates arguments of any type into `slots`.
    fn evaluate_arguments(
        &mut self,
        dot: &Slot,
        args: &[NodeId],
        last: Option<Slot>,
        slots: &mut [Slot],
    ) -> Step<()> {
        for (slot, &arg) in slots.iter_mut().zip(args) {
            *slot = self.evaluate_argument(dot, ArgumentType::Any, arg)?;
        }
        if let (Some(last), Some(slot)) = (last, slots.get_mut(args.len())) {
            *slot = last;
        }
        Ok(())
    }

    fn finish_builtin(&mut self, builtin: Builtin, args: &[NodeId], slots: &[Slot]) -> Result<Slot, Failure> {
        if builtin == Builtin::Call {
            let name = args.first().map(|&first| self.source.show(first));
            return Err(builtin::call_error(name, slots.first()));
        }
        builtin::run(builtin, slots, self.meter)
    }

    /// Evaluates `print` and similar functions, which build a string from plain values.
    fn call_text(
        &mut self,
        dot: &Slot,
        builtin: Builtin,
        args: &[NodeId],
        last: Option<Slot>,
    ) -> Step<Result<Slot, Failure>> {
        let callee = Callee::Builtin(builtin);
        let mut values = self.argument_lists.pop().unwrap_or_default();
        for (index, &arg) in args.iter().enumerate() {
            values.push(
                self.evaluate_argument(dot, callee.argument_type(index), arg)?
                    .value,
            );
        }
        if let Some(last) = last {
            values.push(
                self.convert_argument(last, callee.argument_type(args.len()))?
                    .value,
            );
        }
        let result = builtin::build_text(builtin, &mut values, &mut self.scratch, self.meter);
        values.clear();
        self.argument_lists.push(values);
        Ok(result.map(|text| Slot::concrete(Value::String(text))))
    }
}
