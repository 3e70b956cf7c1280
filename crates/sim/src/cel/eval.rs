//! Evaluates expressions. The cost of every step is subtracted from the budget.

use std::borrow::Cow;
use std::rc::Rc;

use super::ast::{Expr, Kind};
use super::library::{self, Patterns};
use super::number;
use super::value::Val;

/// Failure of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An evaluation error, with the text of cel-go.
    Error(String),
    /// The cost budget is exhausted.
    Cost,
}

impl Failure {
    pub(super) fn error<T>(message: impl Into<String>) -> Result<T, Self> {
        Err(Self::Error(message.into()))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error(message) => f.write_str(message),
            Self::Cost => f.write_str("operation cancelled: actual cost limit exceeded"),
        }
    }
}

pub(super) const NO_OVERLOAD: &str = "no such overload";

pub(super) type Outcome<'a> = Result<Val<'a>, Failure>;

/// Resolves names to values.
pub(crate) trait Names<'a> {
    /// Returns the value of a name, which may be evaluated first; `None` if the name is unknown.
    fn get(&self, name: &str, cost: &mut u64) -> Option<Outcome<'a>>;
}

/// Names with values that are known before the evaluation.
#[derive(Debug, Default)]
pub(crate) struct KnownNames<'a>(pub Vec<(&'static str, Val<'a>)>);

impl<'a> Names<'a> for KnownNames<'a> {
    fn get(&self, name: &str, _: &mut u64) -> Option<Outcome<'a>> {
        let found = self.0.iter().find(|(known, _)| *known == name)?;
        Some(Ok(found.1.clone()))
    }
}

pub(super) fn evaluate<'a>(
    expr: &'a Expr,
    patterns: &'a Patterns,
    names: &dyn Names<'a>,
    cost: &mut u64,
) -> Outcome<'a> {
    Evaluator {
        patterns,
        names,
        cost,
        local: Vec::new(),
    }
    .eval(expr)
}

pub(super) struct Evaluator<'r, 'a> {
    patterns: &'a Patterns,
    names: &'r dyn Names<'a>,
    cost: &'r mut u64,
    /// Variables of the enclosing macros.
    pub(super) local: Vec<(&'a str, Val<'a>)>,
}

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn charge(&mut self, steps: usize) -> Result<(), Failure> {
        let steps = steps as u64;
        if steps > *self.cost {
            *self.cost = 0;
            return Err(Failure::Cost);
        }
        *self.cost -= steps;
        Ok(())
    }

    pub(super) fn eval(&mut self, expr: &'a Expr) -> Outcome<'a> {
        self.charge(1)?;
        Ok(match &expr.kind {
            Kind::Null => Val::Null,
            Kind::Bool(flag) => Val::Bool(*flag),
            Kind::Int(number) => Val::Int(*number),
            Kind::Uint(number) => Val::Uint(*number),
            Kind::Double(number) => Val::Double(*number),
            Kind::Text(text) => Val::Text(Cow::Borrowed(text)),
            Kind::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
            Kind::Ident(name) => return self.eval_ident(name),
            Kind::Select(operand, field) => {
                // Composed variables of a policy are evaluated when they are used.
                if let Kind::Ident(name) = &operand.kind
                    && name == "variables"
                    && let Some(found) = self.names.get(&format!("variables.{field}"), self.cost)
                {
                    return found;
                }
                let operand = self.eval(operand)?;
                return select_field(&operand, field);
            }
            Kind::Has(operand, field) => {
                let operand = match self.eval(operand)? {
                    Val::Optional(None) => return Ok(Val::Bool(false)),
                    Val::Optional(Some(inner)) => (*inner).clone(),
                    plain => plain,
                };
                match operand.field(field) {
                    Ok(found) => Val::Bool(found.is_some()),
                    Err(()) => return Failure::error(NO_OVERLOAD),
                }
            }
            Kind::OptionalSelect(operand, field) => {
                let operand = match self.eval(operand)? {
                    Val::Optional(None) => return Ok(Val::Optional(None)),
                    Val::Optional(Some(inner)) => (*inner).clone(),
                    plain => plain,
                };
                match operand.field(field) {
                    Ok(found) => Val::Optional(found.map(Rc::new)),
                    Err(()) => return Failure::error(NO_OVERLOAD),
                }
            }
            Kind::Call(name, target, arguments) => return self.eval_call(name, target.as_deref(), arguments),
            Kind::List(items) => self.eval_list(items)?,
            Kind::Map(entries) => self.eval_map(entries)?,
            Kind::Fold(fold) => return self.eval_fold(fold),
            Kind::Optional(fold) => return self.eval_optional(fold),
        })
    }

    fn eval_ident(&mut self, name: &'a str) -> Outcome<'a> {
        if let Some((_, value)) = self.local.iter().rev().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        match self.names.get(name, self.cost) {
            Some(found) => found,
            None => match library::type_name(name) {
                Some(name) => Ok(Val::Type(name)),
                None => Failure::error(format!("no such attribute(s): {name}")),
            },
        }
    }

    fn eval_call(&mut self, name: &'a str, target: Option<&'a Expr>, arguments: &'a [Expr]) -> Outcome<'a> {
        match (name, arguments) {
            ("_&&_", [a, b]) => return self.eval_logic(a, b, false),
            ("_||_", [a, b]) => return self.eval_logic(a, b, true),
            ("_?_:_", [condition, yes, no]) => {
                return match self.eval(condition)? {
                    Val::Bool(true) => self.eval(yes),
                    Val::Bool(false) => self.eval(no),
                    _ => Failure::error(NO_OVERLOAD),
                };
            }
            _ => {}
        }
        // The namespace of a library function looks like a target, but is not a value.
        let namespace = match target.map(|target| &target.kind) {
            Some(Kind::Ident(ident)) if library::is_namespace(ident, name) => Some(ident.as_str()),
            _ => None,
        };
        let target = target.filter(|_| namespace.is_none());
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for one in target.into_iter().chain(arguments) {
            values.push(self.eval(one)?);
        }
        let size = values.iter().filter_map(|value| match value {
            Val::Text(text) => Some(text.len() / 10),
            other => other.len(),
        });
        let size: usize = size.sum();
        if !has_constant_cost(name) {
            self.charge(size)?;
        }
        match (namespace, target.is_some()) {
            (Some(namespace), _) => library::call_qualified(namespace, name, values),
            (None, member) => library::call_function(name, member, values, self.patterns),
        }
    }

    /// Evaluates `&&` or `||`. An operand that equals `decides` determines the result even if the other
    /// fails.
    fn eval_logic(&mut self, a: &'a Expr, b: &'a Expr, decides: bool) -> Outcome<'a> {
        let left = self.eval(a);
        match left {
            Ok(Val::Bool(flag)) if flag == decides => return Ok(Val::Bool(flag)),
            Err(Failure::Cost) => return Err(Failure::Cost),
            _ => {}
        }
        match (left, self.eval(b)?) {
            (_, Val::Bool(flag)) if flag == decides => Ok(Val::Bool(flag)),
            (Ok(Val::Bool(_)), Val::Bool(flag)) => Ok(Val::Bool(flag)),
            (Err(failure), _) => Err(failure),
            _ => Failure::error(NO_OVERLOAD),
        }
    }

    fn eval_list(&mut self, items: &'a [(bool, Expr)]) -> Outcome<'a> {
        let mut all = Vec::with_capacity(items.len());
        for (optional, item) in items {
            match self.eval(item)? {
                Val::Optional(inner) if *optional => all.extend(inner.map(|inner| (*inner).clone())),
                value => all.push(value),
            }
        }
        Ok(Val::List(Rc::new(all)))
    }

    fn eval_map(&mut self, entries: &'a [(bool, Expr, Expr)]) -> Outcome<'a> {
        let mut all: Vec<(Val<'a>, Val<'a>)> = Vec::with_capacity(entries.len());
        for (optional, key, value) in entries {
            let key = self.eval(key)?;
            match self.eval(value)? {
                Val::Optional(inner) if *optional => all.extend(inner.map(|inner| (key, (*inner).clone()))),
                value => all.push((key, value)),
            }
        }
        Ok(Val::Map(Rc::new(all)))
    }
}

fn select_field<'a>(operand: &Val<'a>, field: &str) -> Outcome<'a> {
    match operand {
        Val::Optional(None) => Ok(Val::Optional(None)),
        Val::Optional(Some(inner)) => match inner.field(field) {
            Ok(found) => Ok(Val::Optional(found.map(Rc::new))),
            Err(()) => Failure::error(NO_OVERLOAD),
        },
        plain => match plain.field(field) {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Failure::error(format!("no such key: {field}")),
            Err(()) => Failure::error(NO_OVERLOAD),
        },
    }
}

/// Returns whether the cost of an operation is independent of its operands.
fn has_constant_cost(name: &str) -> bool {
    matches!(
        name,
        "_[_]" | "_[?_]" | "size" | "!_" | "-_" | "hasValue" | "value" | "orValue" | "or" | "dyn" | "type"
    )
}

/// Evaluates a comparison operator.
pub(super) fn evaluate_comparison(name: &str, a: &Val<'_>, b: &Val<'_>) -> Option<bool> {
    use std::cmp::Ordering;
    let order = match (a, b) {
        (Val::Text(a), Val::Text(b)) => Some(a.cmp(b)),
        (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
        (Val::Bytes(a), Val::Bytes(b)) => Some(a.cmp(b)),
        _ => match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => match number::compare(a, b) {
                Some(order) => Some(order),
                None => return Some(false),
            },
            _ => None,
        },
    }?;
    Some(match name {
        "_<_" => order == Ordering::Less,
        "_<=_" => order != Ordering::Greater,
        "_>_" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}
