//! Macros over lists and maps.

use std::rc::Rc;

use super::ast::{Fold, Macro};
use super::eval::{Failure, NO_OVERLOAD, Outcome, Runner};
use super::value::Val;

impl<'a> Runner<'_, 'a> {
    pub(super) fn optional(&mut self, fold: &'a Fold) -> Outcome<'a> {
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

    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.eval(&fold.range)?;
        let steps = steps(&range, fold.second.is_some());
        let Some(steps) = steps else {
            return Failure::error(NO_OVERLOAD);
        };
        self.spend(steps.len())?;
        match fold.kind {
            Macro::All => self.decide(fold, steps, false),
            Macro::Exists => self.decide(fold, steps, true),
            _ => self.collect(fold, steps),
        }
    }

    fn within(&mut self, fold: &'a Fold, step: (Val<'a>, Val<'a>), filter: bool) -> Outcome<'a> {
        let body = match &fold.filter {
            Some(filtering) if filter => filtering,
            _ => &fold.body,
        };
        let before = self.local.len();
        self.local.push((&fold.name, step.0));
        if let Some(second) = &fold.second {
            self.local.push((second, step.1));
        }
        let result = self.eval(body);
        self.local.truncate(before);
        result
    }

    /// `all` ends at the first false, `exists` at the first true; an error counts only if no element decides.
    fn decide(&mut self, fold: &'a Fold, steps: Vec<(Val<'a>, Val<'a>)>, decides: bool) -> Outcome<'a> {
        let mut failure = None;
        for step in steps {
            match self.within(fold, step, false) {
                Ok(Val::Bool(flag)) if flag == decides => return Ok(Val::Bool(flag)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => failure = failure.or(Some(Failure::Error(NO_OVERLOAD.into()))),
                Err(Failure::Cost) => return Err(Failure::Cost),
                Err(other) => failure = failure.or(Some(other)),
            }
        }
        failure.map_or(Ok(Val::Bool(!decides)), Err)
    }

    fn collect(&mut self, fold: &'a Fold, steps: Vec<(Val<'a>, Val<'a>)>) -> Outcome<'a> {
        let (mut items, mut entries, mut count) = (Vec::new(), Vec::new(), 0);
        for step in steps {
            if fold.filter.is_some() && !as_bool(&self.within(fold, step.clone(), true)?)? {
                continue;
            }
            let first = step.0.clone();
            let body = self.within(fold, step, false)?;
            match fold.kind {
                Macro::Filter if as_bool(&body)? => items.push(first),
                Macro::Filter => {}
                Macro::ExistsOne => count += usize::from(as_bool(&body)?),
                Macro::TransformMap => entries.push((first, body)),
                Macro::TransformMapEntry => entries.extend(body.entries().unwrap_or_default()),
                Macro::By => entries.push((body, first)),
                _ => items.push(body),
            }
        }
        Ok(match fold.kind {
            Macro::ExistsOne => Val::Bool(count == 1),
            Macro::TransformMap | Macro::TransformMapEntry => Val::Map(Rc::new(entries)),
            Macro::By => {
                entries.sort_by(|(a, _), (b, _)| {
                    let less = |a, b| super::eval::ordered("_<_", a, b).unwrap_or(false);
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

/// Returns the values of a macro's variables for each iteration.
fn steps<'a>(range: &Val<'a>, two: bool) -> Option<Vec<(Val<'a>, Val<'a>)>> {
    if let Some(items) = range.items() {
        let numbered = items.into_iter().enumerate();
        return Some(
            numbered
                .map(|(at, item)| {
                    if two {
                        (Val::Int(at as i64), item)
                    } else {
                        (item, Val::Null)
                    }
                })
                .collect(),
        );
    }
    range.entries()
}
