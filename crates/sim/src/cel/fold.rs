//! Macros over lists and maps.

use std::rc::Rc;

use super::ast::{Fold, Macro};
use super::eval::{Evaluator, Failure, NO_OVERLOAD, Outcome};
use super::value::Val;

/// Values of the two variables of a macro in one iteration. Most macros have only the first one.
#[derive(Clone)]
struct Iteration<'a> {
    first: Val<'a>,
    second: Val<'a>,
}

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn eval_optional(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let inner = match self.eval(&fold.range)? {
            Val::Optional(None) => return Ok(Val::Optional(None)),
            Val::Optional(Some(inner)) => (*inner).clone(),
            _ => return Failure::error(NO_OVERLOAD),
        };
        self.local.push((&fold.name, inner));
        let body = self.eval(&fold.body);
        self.local.pop();
        match (fold.kind, body?) {
            (Macro::OptFlatMap, body @ Val::Optional(_)) => Ok(body),
            (Macro::OptFlatMap, _) => Failure::error(NO_OVERLOAD),
            (_, body) => Ok(Val::Optional(Some(Rc::new(body)))),
        }
    }

    pub(super) fn eval_fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.eval(&fold.range)?;
        let steps = iterations(&range, fold.second.is_some());
        let Some(steps) = steps else {
            return Failure::error(NO_OVERLOAD);
        };
        self.charge(steps.len())?;
        match fold.kind {
            Macro::All => self.eval_quantifier(fold, steps, false),
            Macro::Exists => self.eval_quantifier(fold, steps, true),
            _ => self.eval_elements(fold, steps),
        }
    }

    /// Evaluates the body or the filter of a macro for one iteration.
    fn eval_step(&mut self, fold: &'a Fold, step: Iteration<'a>, filter: bool) -> Outcome<'a> {
        let body = match &fold.filter {
            Some(condition) if filter => condition,
            _ => &fold.body,
        };
        let before = self.local.len();
        self.local.push((&fold.name, step.first));
        if let Some(second) = &fold.second {
            self.local.push((second, step.second));
        }
        let result = self.eval(body);
        self.local.truncate(before);
        result
    }

    /// Evaluates `all` (`decides` is false) or `exists` (`decides` is true). Stops at the first element
    /// with the value `decides`. Errors are returned only if there is no such element.
    fn eval_quantifier(&mut self, fold: &'a Fold, steps: Vec<Iteration<'a>>, decides: bool) -> Outcome<'a> {
        let mut failure = None;
        for step in steps {
            match self.eval_step(fold, step, false) {
                Ok(Val::Bool(flag)) if flag == decides => return Ok(Val::Bool(flag)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => failure = failure.or(Some(Failure::Error(NO_OVERLOAD.into()))),
                Err(Failure::Cost) => return Err(Failure::Cost),
                Err(other) => failure = failure.or(Some(other)),
            }
        }
        failure.map_or(Ok(Val::Bool(!decides)), Err)
    }

    fn eval_elements(&mut self, fold: &'a Fold, steps: Vec<Iteration<'a>>) -> Outcome<'a> {
        let (mut items, mut entries, mut count) = (Vec::new(), Vec::new(), 0);
        for step in steps {
            if fold.filter.is_some() && !as_bool(&self.eval_step(fold, step.clone(), true)?)? {
                continue;
            }
            let first = step.first.clone();
            let body = self.eval_step(fold, step, false)?;
            match fold.kind {
                Macro::Filter if as_bool(&body)? => items.push(first),
                Macro::Filter => {}
                Macro::ExistsOne => count += usize::from(as_bool(&body)?),
                Macro::TransformMap => entries.push((first, body)),
                Macro::TransformMapEntry => entries.extend(body.entries().unwrap_or_default()),
                Macro::SortBy => entries.push((body, first)),
                _ => items.push(body),
            }
        }
        Ok(match fold.kind {
            Macro::ExistsOne => Val::Bool(count == 1),
            Macro::TransformMap | Macro::TransformMapEntry => Val::Map(Rc::new(entries)),
            Macro::SortBy => {
                entries.sort_by(|(a, _), (b, _)| {
                    let less = |a, b| super::eval::evaluate_comparison("_<_", a, b).unwrap_or(false);
                    less(b, a).cmp(&less(a, b))
                });
                Val::List(Rc::new(entries.into_iter().map(|(_, item)| item).collect()))
            }
            _ => Val::List(Rc::new(items)),
        })
    }
}

fn as_bool(value: &Val<'_>) -> Result<bool, Failure> {
    match value {
        Val::Bool(flag) => Ok(*flag),
        _ => Failure::error(NO_OVERLOAD),
    }
}

/// Returns the values of the variables for each iteration; `None` if the range is neither a list nor a map.
fn iterations<'a>(range: &Val<'a>, has_two_variables: bool) -> Option<Vec<Iteration<'a>>> {
    let Some(items) = range.items() else {
        let entries = range.entries()?.into_iter();
        return Some(
            entries
                .map(|(first, second)| Iteration { first, second })
                .collect(),
        );
    };
    let numbered = items.into_iter().enumerate().map(|(at, item)| {
        if has_two_variables {
            Iteration {
                first: Val::Int(at as i64),
                second: item,
            }
        } else {
            Iteration {
                first: item,
                second: Val::Null,
            }
        }
    });
    Some(numbered.collect())
}
