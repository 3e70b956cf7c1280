//! Keywords that combine schemas: `allOf`, `anyOf`, `oneOf`, `not`, `if`.

use super::{Checker, Visit};
use crate::schema::number::format_count;

impl Checker<'_> {
    pub(super) fn combinations(&self, visit: &mut Visit<'_, '_>) {
        let node = visit.node;
        if let Some(schema) = node.not
            && self.evaluate_same_value(visit, schema, "", true).is_ok()
        {
            visit.fail("'not' failed".into());
        }
        self.all_of(visit);
        self.any_of(visit);
        self.one_of(visit);
        if let Some(condition) = node.condition {
            let branch = if self.evaluate_same_value(visit, condition, "", true).is_ok() {
                node.then
            } else {
                node.otherwise
            };
            if let Some(schema) = branch {
                let result = self.evaluate_same_value(visit, schema, "", false);
                visit.failures.extend(result.err());
            }
        }
    }

    pub(super) fn all_of(&self, visit: &mut Visit<'_, '_>) {
        let mut failures = Vec::new();
        for schema in &visit.node.all_of {
            failures.extend(self.evaluate_same_value(visit, *schema, "", false).err());
            if visit.omit_messages && !failures.is_empty() {
                break;
            }
        }
        if !failures.is_empty() {
            visit.fail_because("'allOf' failed".into(), failures);
        }
    }

    pub(super) fn any_of(&self, visit: &mut Visit<'_, '_>) {
        let mut failures = Vec::new();
        let mut matched = visit.node.any_of.is_empty();
        for schema in &visit.node.any_of {
            if let Err(failure) = self.evaluate_same_value(visit, *schema, "", false) {
                failures.push(failure);
                continue;
            }
            matched = true;
            // Unevaluated properties and items depend on every branch, so all of them are evaluated.
            if visit.unevaluated.is_empty() {
                break;
            }
        }
        if !matched {
            visit.fail_because("'anyOf' failed".into(), failures);
        }
    }

    pub(super) fn one_of(&self, visit: &mut Visit<'_, '_>) {
        let mut failures = Vec::new();
        let mut matched = None;
        for (index, schema) in visit.node.one_of.iter().enumerate() {
            match (
                self.evaluate_same_value(visit, *schema, "", matched.is_some()),
                matched,
            ) {
                (Err(failure), None) => failures.push(failure),
                (Err(_), Some(_)) => {}
                (Ok(()), None) => matched = Some(index),
                (Ok(()), Some(first)) => {
                    let (first, second) = (format_count(first as i64), format_count(index as i64));
                    visit.fail(format!("'oneOf' failed, subschemas {first}, {second} matched"));
                    break;
                }
            }
        }
        if matched.is_none() && !visit.node.one_of.is_empty() {
            visit.fail_because("'oneOf' failed, none matched".into(), failures);
        }
    }
}
