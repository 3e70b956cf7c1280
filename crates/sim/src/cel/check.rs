//! Type checker.

use std::rc::Rc;

use super::CompileError;
use super::ast::{Expr, Fold, Kind, Macro};
use super::library::type_name;
use super::overloads;
use super::source::report;
use super::types::Type;

/// Returns the type of an expression, or a report of all type errors.
pub(super) fn check_types<'t>(
    source: &str,
    expr: &Expr,
    names: &[(&str, Type<'t>)],
) -> Result<Type<'t>, CompileError> {
    let mut checker = Checker {
        names: names
            .iter()
            .map(|(name, kind)| ((*name).to_owned(), kind.clone()))
            .collect(),
        errors: Vec::new(),
    };
    let kind = checker.type_of(expr);
    if checker.errors.is_empty() {
        return Ok(kind);
    }
    checker.errors.sort_by_key(|(at, _)| *at);
    let reports: Vec<String> = checker
        .errors
        .iter()
        .map(|(at, message)| report(source, *at, message))
        .collect();
    Err(CompileError::new(reports.join("\n")))
}

struct Checker<'t> {
    names: Vec<(String, Type<'t>)>,
    errors: Vec<(usize, String)>,
}

/// Namespaces of library functions.
const NAMESPACES: [&str; 7] = ["optional", "sets", "lists", "ip", "format", "strings", "math"];

impl<'t> Checker<'t> {
    fn add_error(&mut self, at: usize, message: String) -> Type<'t> {
        self.errors.push((at, message));
        Type::Dyn
    }

    fn type_of(&mut self, expr: &Expr) -> Type<'t> {
        match &expr.kind {
            Kind::Null => Type::Null,
            Kind::Bool(_) => Type::Bool,
            Kind::Int(_) => Type::Int,
            Kind::Uint(_) => Type::Uint,
            Kind::Double(_) => Type::Double,
            Kind::Text(_) => Type::Text,
            Kind::Bytes(_) => Type::Bytes,
            Kind::Ident(name) => self.type_of_ident(expr.at, name),
            Kind::Select(operand, field) => self.type_of_field(expr.at, operand, field),
            Kind::Has(operand, field) => {
                self.type_of_field(expr.at, operand, field);
                Type::Bool
            }
            Kind::OptionalSelect(operand, field) => match self.type_of_field(expr.at, operand, field) {
                optional @ Type::Optional(_) => optional,
                kind => Type::Optional(Rc::new(kind)),
            },
            Kind::Call(name, target, arguments) => {
                self.type_of_call(expr.at, name, target.as_deref(), arguments)
            }
            Kind::List(items) => self.type_of_list(items),
            Kind::Map(entries) => self.type_of_map(entries),
            Kind::Fold(fold) => self.type_of_fold(fold),
            Kind::Optional(fold) => self.type_of_optional(expr.at, fold),
        }
    }

    fn type_of_ident(&mut self, at: usize, name: &str) -> Type<'t> {
        if let Some((_, kind)) = self.names.iter().rev().find(|(known, _)| known == name) {
            return kind.clone();
        }
        if type_name(name).is_some() || name == "dyn" {
            return Type::Kind;
        }
        self.add_error(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn type_of_field(&mut self, at: usize, operand: &Expr, field: &str) -> Type<'t> {
        let kind = self.type_of(operand);
        let (inner, optional) = match &kind {
            Type::Optional(inner) => ((**inner).clone(), true),
            kind => (kind.clone(), false),
        };
        let found = match &inner {
            Type::Dyn | Type::Map(..) | Type::Object(..) | Type::Meta => inner.field(field),
            other => {
                let name = other.name();
                return self.add_error(at, format!("type '{name}' does not support field selection"));
            }
        };
        match found {
            None => self.add_error(at, format!("undefined field '{field}'")),
            Some(found) if optional => Type::Optional(Rc::new(found)),
            Some(found) => found,
        }
    }

    fn type_of_call(&mut self, at: usize, name: &str, target: Option<&Expr>, arguments: &[Expr]) -> Type<'t> {
        let qualified = target.and_then(|target| match &target.kind {
            Kind::Ident(namespace) if NAMESPACES.contains(&namespace.as_str()) => {
                Some(format!("{namespace}.{name}"))
            }
            _ => None,
        });
        let qualified = qualified.filter(|name| overloads::is_function(name));
        let (name, member) = match &qualified {
            Some(qualified) => (qualified.as_str(), false),
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
                        self.type_of(item);
                    }
                    Type::List(Rc::new(Type::Dyn))
                }
                _ => self.type_of(one),
            })
            .collect();
        if !overloads::is_function(name) {
            return self.add_error(at, format!("undeclared reference to '{name}' (in container '')"));
        }
        if name == "matches"
            && let Some(Kind::Text(expression)) = arguments.last().map(|last| &last.kind)
            && crate::crd::pattern::compile(expression).is_err()
        {
            let at = arguments.last().map_or(at, |last| last.at);
            return self.add_error(at, "invalid matches argument".into());
        }
        if let Some(kind) = overloads::resolve(name, member, &kinds) {
            return kind;
        }
        let shown: Vec<String> = kinds.iter().map(Type::name).collect();
        let shown = match shown.split_first() {
            Some((target, rest)) if member => format!("{target}.({})", rest.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.add_error(
            at,
            format!("found no matching overload for '{name}' applied to '{shown}'"),
        )
    }

    /// Returns the type of the first expression. Reports the others that have a different type.
    fn common_type(&mut self, kinds: Vec<(usize, Type<'t>)>) -> Type<'t> {
        let mut first: Option<Type<'t>> = None;
        for (at, kind) in kinds {
            match &first {
                None => first = Some(kind),
                Some(common) if !common.is_assignable(&kind) => {
                    let message = format!("expected type '{}' but found '{}'", common.name(), kind.name());
                    self.add_error(at, message);
                }
                Some(_) => {}
            }
        }
        first.unwrap_or(Type::Dyn)
    }

    fn type_of_list(&mut self, items: &[(bool, Expr)]) -> Type<'t> {
        let kinds = items
            .iter()
            .map(|(optional, item)| match (optional, self.type_of(item)) {
                (true, Type::Optional(inner)) => (item.at, (*inner).clone()),
                (_, kind) => (item.at, kind),
            })
            .collect();
        Type::List(Rc::new(self.common_type(kinds)))
    }

    fn type_of_map(&mut self, entries: &[(bool, Expr, Expr)]) -> Type<'t> {
        let keys = entries
            .iter()
            .map(|(_, key, _)| (key.at, self.type_of(key)))
            .collect();
        let values = entries
            .iter()
            .map(|(optional, _, value)| match (optional, self.type_of(value)) {
                (true, Type::Optional(inner)) => (value.at, (*inner).clone()),
                (_, kind) => (value.at, kind),
            })
            .collect();
        let key = self.common_type(keys);
        Type::Map(Rc::new(key), Rc::new(self.common_type(values)))
    }

    /// Returns the type of an expression that may use additional names.
    fn type_of_with(&mut self, names: Vec<(String, Type<'t>)>, expr: &Expr) -> Type<'t> {
        let before = self.names.len();
        self.names.extend(names);
        let kind = self.type_of(expr);
        self.names.truncate(before);
        kind
    }

    fn type_of_fold(&mut self, fold: &Fold) -> Type<'t> {
        let range = self.type_of(&fold.range);
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
                (self.add_error(fold.range.at, message), Type::Dyn)
            }
        };
        let mut names = vec![(fold.name.clone(), first.clone())];
        names.extend(fold.second.clone().map(|name| (name, second)));
        if let Some(filter) = &fold.filter {
            let kind = self.type_of_with(names.clone(), filter);
            self.expect_bool(filter.at, &kind);
        }
        let body = self.type_of_with(names, &fold.body);
        match fold.kind {
            Macro::All | Macro::Exists | Macro::ExistsOne => {
                self.expect_bool(fold.body.at, &body);
                Type::Bool
            }
            Macro::Filter => {
                self.expect_bool(fold.body.at, &body);
                Type::List(Rc::new(first))
            }
            Macro::SortBy => range,
            Macro::TransformMap => Type::Map(Rc::new(first), Rc::new(body)),
            Macro::TransformMapEntry => body,
            _ => Type::List(Rc::new(body)),
        }
    }

    fn expect_bool(&mut self, at: usize, kind: &Type<'t>) {
        if !kind.is_assignable(&Type::Bool) {
            let message = format!("expected type 'bool' but found '{}'", kind.name());
            self.add_error(at, message);
        }
    }

    fn type_of_optional(&mut self, at: usize, fold: &Fold) -> Type<'t> {
        let inner = match self.type_of(&fold.range) {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                let message = format!(
                    "found no matching overload for 'hasValue' applied to '{}.()'",
                    other.name()
                );
                self.add_error(at, message)
            }
        };
        let body = self.type_of_with(vec![(fold.name.clone(), inner)], &fold.body);
        match (fold.kind, body) {
            (Macro::OptFlatMap, body) => body,
            (_, body) => Type::Optional(Rc::new(body)),
        }
    }
}
