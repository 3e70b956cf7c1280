//! Type checker: returns the type of an expression or all type errors.

use std::rc::Rc;

use super::CompileError;
use super::ast::{Expr, Fold, Kind, Macro};
use super::library::type_name;
use super::overloads;
use super::source::report;
use super::types::Type;

pub(super) fn check<'t>(
    source: &str,
    expr: &Expr,
    names: &[(&str, Type<'t>)],
) -> Result<Type<'t>, CompileError> {
    let mut checker = Checker {
        names: names
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), kind.clone()))
            .collect(),
        wrong: Vec::new(),
    };
    let kind = checker.kind(expr);
    if checker.wrong.is_empty() {
        return Ok(kind);
    }
    checker.wrong.sort_by_key(|(at, _)| *at);
    let reports: Vec<String> = checker
        .wrong
        .iter()
        .map(|(at, message)| report(source, *at, message))
        .collect();
    Err(CompileError::new(reports.join("\n")))
}

struct Checker<'t> {
    names: Vec<(String, Type<'t>)>,
    wrong: Vec<(usize, String)>,
}

/// Namespaces of library functions.
const NAMESPACES: [&str; 7] = ["optional", "sets", "lists", "ip", "format", "strings", "math"];

impl<'t> Checker<'t> {
    fn fail(&mut self, at: usize, message: String) -> Type<'t> {
        self.wrong.push((at, message));
        Type::Dyn
    }

    fn kind(&mut self, expr: &Expr) -> Type<'t> {
        match &expr.kind {
            Kind::Null => Type::Null,
            Kind::Bool(_) => Type::Bool,
            Kind::Int(_) => Type::Int,
            Kind::Uint(_) => Type::Uint,
            Kind::Double(_) => Type::Double,
            Kind::Text(_) => Type::Text,
            Kind::Bytes(_) => Type::Bytes,
            Kind::Ident(name) => self.ident(expr.at, name),
            Kind::Select(below, field) => self.select(expr.at, below, field),
            Kind::Has(below, field) => {
                self.select(expr.at, below, field);
                Type::Bool
            }
            Kind::OptionalSelect(below, field) => match self.select(expr.at, below, field) {
                already @ Type::Optional(_) => already,
                kind => Type::Optional(Rc::new(kind)),
            },
            Kind::Call(name, target, arguments) => self.call(expr.at, name, target.as_deref(), arguments),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Fold(fold) => self.fold(fold),
            Kind::Optional(fold) => self.optional(expr.at, fold),
        }
    }

    fn ident(&mut self, at: usize, name: &str) -> Type<'t> {
        if let Some((_, kind)) = self.names.iter().rev().find(|(own, _)| own == name) {
            return kind.clone();
        }
        if type_name(name).is_some() || name == "dyn" {
            return Type::Kind;
        }
        self.fail(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn select(&mut self, at: usize, below: &Expr, field: &str) -> Type<'t> {
        let kind = self.kind(below);
        let (inner, optional) = match &kind {
            Type::Optional(inner) => ((**inner).clone(), true),
            kind => (kind.clone(), false),
        };
        let found = match &inner {
            Type::Dyn | Type::Map(..) | Type::Object(..) | Type::Meta => inner.field(field),
            other => {
                let name = other.name();
                return self.fail(at, format!("type '{name}' does not support field selection"));
            }
        };
        match found {
            None => self.fail(at, format!("undefined field '{field}'")),
            Some(found) if optional => Type::Optional(Rc::new(found)),
            Some(found) => found,
        }
    }

    fn call(&mut self, at: usize, name: &str, target: Option<&Expr>, arguments: &[Expr]) -> Type<'t> {
        let space = target.and_then(|target| match &target.kind {
            Kind::Ident(space) if NAMESPACES.contains(&space.as_str()) => Some(format!("{space}.{name}")),
            _ => None,
        });
        let space = space.filter(|whole| overloads::is_function(whole));
        let (name, member) = match &space {
            Some(whole) => (whole.as_str(), false),
            None => (name, target.is_some()),
        };
        let target = target.filter(|_| member);
        let kinds: Vec<Type<'t>> = target
            .into_iter()
            .chain(arguments)
            .map(|one| match &one.kind {
                // The arguments of `format` may have different types.
                Kind::List(items) if member && name == "format" => {
                    for (_, item) in items {
                        self.kind(item);
                    }
                    Type::List(Rc::new(Type::Dyn))
                }
                _ => self.kind(one),
            })
            .collect();
        if !overloads::is_function(name) {
            return self.fail(at, format!("undeclared reference to '{name}' (in container '')"));
        }
        if name == "matches"
            && let Some(Kind::Text(expression)) = arguments.last().map(|last| &last.kind)
            && crate::crd::pattern::compile(expression).is_err()
        {
            let at = arguments.last().map_or(at, |last| last.at);
            return self.fail(at, "invalid matches argument".into());
        }
        if let Some(kind) = overloads::resolve(name, member, &kinds) {
            return kind;
        }
        let shown: Vec<String> = kinds.iter().map(Type::name).collect();
        let shown = match shown.split_first() {
            Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.fail(
            at,
            format!("found no matching overload for '{name}' applied to '{shown}'"),
        )
    }

    /// Returns the common type; reports the first that differs.
    fn common(&mut self, kinds: Vec<(usize, Type<'t>)>) -> Type<'t> {
        let mut all: Option<Type<'t>> = None;
        for (at, kind) in kinds {
            match &all {
                None => all = Some(kind),
                Some(have) if !have.fits(&kind) => {
                    let message = format!("expected type '{}' but found '{}'", have.name(), kind.name());
                    self.fail(at, message);
                }
                Some(_) => {}
            }
        }
        all.unwrap_or(Type::Dyn)
    }

    fn list(&mut self, items: &[(bool, Expr)]) -> Type<'t> {
        let kinds = items
            .iter()
            .map(|(optional, item)| match (optional, self.kind(item)) {
                (true, Type::Optional(inner)) => (item.at, (*inner).clone()),
                (_, kind) => (item.at, kind),
            })
            .collect();
        Type::List(Rc::new(self.common(kinds)))
    }

    fn map(&mut self, entries: &[(bool, Expr, Expr)]) -> Type<'t> {
        let keys = entries
            .iter()
            .map(|(_, key, _)| (key.at, self.kind(key)))
            .collect();
        let values = entries
            .iter()
            .map(|(optional, _, value)| match (optional, self.kind(value)) {
                (true, Type::Optional(inner)) => (value.at, (*inner).clone()),
                (_, kind) => (value.at, kind),
            })
            .collect();
        let key = self.common(keys);
        Type::Map(Rc::new(key), Rc::new(self.common(values)))
    }

    fn within(&mut self, names: Vec<(String, Type<'t>)>, expr: &Expr) -> Type<'t> {
        let before = self.names.len();
        self.names.extend(names);
        let kind = self.kind(expr);
        self.names.truncate(before);
        kind
    }

    fn fold(&mut self, fold: &Fold) -> Type<'t> {
        let range = self.kind(&fold.range);
        let (first, second) = match &range {
            Type::Dyn => (Type::Dyn, Type::Dyn),
            Type::List(item) => match fold.second {
                Some(_) => (Type::Int, (**item).clone()),
                None => ((**item).clone(), Type::Dyn),
            },
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            other => {
                let name = other.name();
                let message = format!(
                    "expression of type '{name}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                (self.fail(fold.range.at, message), Type::Dyn)
            }
        };
        let mut names = vec![(fold.name.clone(), first.clone())];
        names.extend(fold.second.clone().map(|name| (name, second)));
        if let Some(filter) = &fold.filter {
            let kind = self.within(names.clone(), filter);
            self.expect_bool(filter.at, &kind);
        }
        let body = self.within(names, &fold.body);
        match fold.kind {
            Macro::All | Macro::Exists | Macro::ExistsOne => {
                self.expect_bool(fold.body.at, &body);
                Type::Bool
            }
            Macro::Filter => {
                self.expect_bool(fold.body.at, &body);
                Type::List(Rc::new(first))
            }
            Macro::By => range,
            Macro::TransformMap => Type::Map(Rc::new(first), Rc::new(body)),
            Macro::TransformMapEntry => body,
            _ => Type::List(Rc::new(body)),
        }
    }

    fn expect_bool(&mut self, at: usize, kind: &Type<'t>) {
        if !kind.fits(&Type::Bool) {
            let message = format!("expected type 'bool' but found '{}'", kind.name());
            self.fail(at, message);
        }
    }

    fn optional(&mut self, at: usize, fold: &Fold) -> Type<'t> {
        let inner = match self.kind(&fold.range) {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                let message = format!(
                    "found no matching overload for 'hasValue' applied to '{}.()'",
                    other.name()
                );
                self.fail(at, message)
            }
        };
        let body = self.within(vec![(fold.name.clone(), inner)], &fold.body);
        match (fold.kind, body) {
            (Macro::OptFlatMap, body) => body,
            (_, body) => Type::Optional(Rc::new(body)),
        }
    }
}
