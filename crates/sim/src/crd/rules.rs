//! Validation rules of a schema (`x-kubernetes-validations`), which are compiled when the definition changes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::correlate::{OldValue, item_by_keys};
use super::paths;
use super::schema::{Additional, Node, text};
use crate::cel::{self, Failure, KnownNames, PER_CALL_LIMIT, Program, Type, VALIDATION_BUDGET, Val};
use crate::field::{ErrorType, FieldErrors, Path};
use crate::show;

/// Rules of a schema node and of its children.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Rules of the node itself.
    own: Vec<Rule>,
    properties: BTreeMap<String, Rules>,
    items: Option<Box<Rules>>,
    additional: Option<Box<Rules>>,
}

/// A rule with its programs or compile errors.
#[derive(Debug)]
pub(crate) struct Rule {
    program: Option<Program>,
    message_program: Option<Program>,
    source: String,
    message: String,
    reason: String,
    field: String,
    optional_old: bool,
    /// Whether the rule refers to `oldSelf`.
    pub uses_old: bool,
    /// Compile error of the rule.
    pub error: Option<String>,
    /// Compile error of the message expression.
    pub message_error: Option<String>,
}

impl Rule {
    /// Compiles a rule of a schema node.
    pub(crate) fn compile(node: &Node, is_root: bool, rule: &Value) -> Self {
        let kind = Type::from_schema(node, is_root).unwrap_or(Type::Dyn);
        let optional_old = rule.get("optionalOldSelf").is_some_and(|flag| flag == true);
        let old = if optional_old {
            Type::Optional(std::rc::Rc::new(kind.clone()))
        } else {
            kind.clone()
        };
        let names = [("self", kind), ("oldSelf", old)];
        let source = text(rule, "rule");
        let mut compiled = Self {
            program: None,
            message_program: None,
            source: source.to_owned(),
            message: text(rule, "message").to_owned(),
            reason: text(rule, "reason").to_owned(),
            field: paths::normalize(text(rule, "fieldPath"), node),
            optional_old,
            uses_old: false,
            error: None,
            message_error: None,
        };
        if source.trim().is_empty() {
            return compiled;
        }
        match cel::compile(source, &names) {
            Err(report) => {
                compiled.error = Some(format!("compilation failed: {report}"));
            }
            Ok((_, kind)) if !matches!(kind, Type::Bool | Type::Dyn) => {
                compiled.error = Some("cel expression must evaluate to a bool".into());
            }
            Ok((program, _)) => {
                compiled.uses_old = program.uses("oldSelf");
                compiled.program = Some(program);
                compiled.compile_message(text(rule, "messageExpression"), &names);
            }
        }
        compiled
    }

    fn compile_message(&mut self, source: &str, names: &[(&str, Type<'_>)]) {
        if source.is_empty() {
            return;
        }
        match cel::compile(source, names) {
            Err(report) => {
                self.message_error = Some(format!("messageExpression compilation failed: {report}"));
            }
            Ok((_, kind)) if !matches!(kind, Type::Text) => {
                self.message_error = Some("messageExpression must evaluate to a string".into());
            }
            Ok((program, _)) => self.message_program = Some(program),
        }
    }

    /// Returns the text of the rule in messages.
    fn text(&self) -> &str {
        if self.message.is_empty() {
            self.source.trim()
        } else {
            self.message.trim()
        }
    }

    /// Returns the message of a violation: the result of the message expression if it is usable, otherwise
    /// the static or default message.
    fn violation_message<'a>(&'a self, names: &KnownNames<'a>, budget: &mut u64) -> String {
        let computed = self.message_program.as_ref().and_then(|program| {
            let limit = PER_CALL_LIMIT.min(*budget);
            let mut remaining = limit;
            let result = program.evaluate(names, &mut remaining);
            *budget -= limit - remaining;
            cel::message_text(&result.ok()?)
        });
        computed.unwrap_or_else(|| {
            if self.message.is_empty() {
                format!("failed rule: {}", self.text())
            } else {
                self.message.trim().to_owned()
            }
        })
    }
}

impl Rules {
    /// Compiles all rules of a schema. Returns `None` if there are none.
    pub(crate) fn compile(schema: &Value, node: &Node, is_root: bool) -> Option<Self> {
        let is_root = is_root || node.embedded;
        let own = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let properties = schema.get("properties").and_then(Value::as_object);
        let compile_property = |name: &str, node: &Node| {
            let schema = properties?.get(name)?;
            Some((name.to_owned(), Self::compile(schema, node, false)?))
        };
        let rules = Self {
            own: own
                .into_iter()
                .flatten()
                .map(|rule| Rule::compile(node, is_root, rule))
                .collect(),
            properties: node
                .properties
                .iter()
                .filter_map(|(name, node)| compile_property(name, node))
                .collect(),
            items: match (schema.get("items"), &node.items) {
                (Some(schema), Some(node)) => Self::compile(schema, node, false).map(Box::new),
                _ => None,
            },
            additional: match (schema.get("additionalProperties"), &node.additional) {
                (Some(schema), Some(Additional::Schema(node))) => {
                    Self::compile(schema, node, false).map(Box::new)
                }
                _ => None,
            },
        };
        let is_empty = rules.own.is_empty()
            && rules.properties.is_empty()
            && rules.items.is_none()
            && rules.additional.is_none();
        (!is_empty).then_some(rules)
    }

    /// Validates a value. `location` is the prefix of all paths.
    pub(crate) fn validate(&self, input: &RuleInput<'_>, location: &Path, findings: &mut Findings<'_>) {
        let &RuleInput { node, value, old, .. } = input;
        let current = old.filter(|_| input.ratcheting);
        let target = RuleTarget {
            node,
            value,
            old,
            ratchet: Ratchet {
                current: current.map(|value| OldValue { value, schema: node }),
                parent: None,
            },
        };
        let mut validation = Validation {
            findings,
            budget: VALIDATION_BUDGET,
        };
        // The reason for stopping early is already in the findings.
        let _ = validation.validate_node(self, &target, location);
    }
}

/// Value to validate with the rules of its schema.
pub(crate) struct RuleInput<'v> {
    pub node: &'v Node,
    pub value: &'v Value,
    pub old: Option<&'v Value>,
    /// Whether violations by unchanged values are only warnings.
    pub ratcheting: bool,
}

/// Lists to which errors and warnings are added.
pub(crate) struct Findings<'f> {
    pub errors: &'f mut FieldErrors,
    pub warnings: &'f mut Vec<String>,
}

/// The old value for the comparison with the current value: that of the value itself, or that of the nearest
/// parent with a known old value.
#[derive(Clone, Copy)]
struct Ratchet<'v> {
    current: Option<OldValue<'v>>,
    parent: Option<(OldValue<'v>, &'v Value)>,
}

impl<'v> Ratchet<'v> {
    /// Returns whether the value is unchanged.
    fn is_unchanged(&self, value: &Value) -> bool {
        match (self.current, self.parent) {
            (Some(current), _) => current.equals(value),
            (None, Some((parent, new))) => parent.equals(new),
            (None, None) => false,
        }
    }

    fn child(self, value: &'v Value, next: impl FnOnce(OldValue<'v>) -> Option<OldValue<'v>>) -> Self {
        match self.current {
            None => self,
            Some(current) => Self {
                current: next(current),
                parent: Some((current, value)),
            },
        }
    }

    fn field(self, value: &'v Value, name: &str) -> Self {
        if self.current.is_some() && self.parent.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self {
                current: None,
                parent: None,
            };
        }
        self.child(value, |old| old.field(name))
    }
}

/// A part of the value with its schema and its old value.
struct RuleTarget<'v> {
    node: &'v Node,
    value: &'v Value,
    old: Option<&'v Value>,
    ratchet: Ratchet<'v>,
}

/// Returned to stop the validation.
struct Stop;

struct Validation<'j, 'f> {
    findings: &'j mut Findings<'f>,
    budget: u64,
}

impl Validation<'_, '_> {
    fn validate_node(&mut self, rules: &Rules, target: &RuleTarget<'_>, path: &Path) -> Result<(), Stop> {
        if target.value.is_null() {
            return Ok(());
        }
        self.validate_own_rules(rules, target, path)?;
        match target.value {
            Value::Object(map) => {
                for (key, value) in map {
                    let old = target.old.and_then(|old| old.get(key));
                    let ratchet = target.ratchet.field(target.value, key);
                    let property = rules.properties.get(key).zip(target.node.properties.get(key));
                    let (rules, node, path) = match (property, &rules.additional, &target.node.additional) {
                        (Some((rules, node)), ..) => (rules, node, path.child(key)),
                        (None, Some(rules), Some(Additional::Schema(node))) => {
                            (&**rules, &**node, path.key(key))
                        }
                        _ => continue,
                    };
                    let child = RuleTarget {
                        node,
                        value,
                        old,
                        ratchet,
                    };
                    self.validate_node(rules, &child, &path)?;
                }
            }
            Value::Array(items) => {
                if let (Some(rules), Some(node)) = (&rules.items, &target.node.items) {
                    for (index, value) in items.iter().enumerate() {
                        let old = target.old.and_then(|old| item_by_keys(target.node, old, value));
                        let ratchet = target.ratchet.child(target.value, |old| old.item(value));
                        let item = RuleTarget {
                            node,
                            value,
                            old,
                            ratchet,
                        };
                        self.validate_node(rules, &item, &path.index(index))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn validate_own_rules(
        &mut self,
        rules: &Rules,
        target: &RuleTarget<'_>,
        path: &Path,
    ) -> Result<(), Stop> {
        let old = target.old.filter(|old| !old.is_null());
        for rule in &rules.own {
            let Some(program) = &rule.program else {
                if let Some(error) = &rule.error {
                    self.report_invalid(target, path, format!("rule compile error: {error}"));
                }
                continue;
            };
            if rule.uses_old && old.is_none() && !rule.optional_old {
                continue;
            }
            if self.budget == 0 {
                return self.report_exhausted_budget(target, path);
            }
            let mut names = KnownNames(vec![("self", Val::from_json(target.value, Some(target.node)))]);
            match old.map(|old| Val::from_json(old, Some(target.node))) {
                Some(old) if rule.optional_old => names.0.push(("oldSelf", Val::Optional(Some(old.into())))),
                Some(old) => names.0.push(("oldSelf", old)),
                None if rule.optional_old => names.0.push(("oldSelf", Val::Optional(None))),
                None => {}
            }
            let limit = PER_CALL_LIMIT.min(self.budget);
            let mut remaining = limit;
            let outcome = program.evaluate(&names, &mut remaining);
            self.budget -= limit - remaining;
            match outcome {
                Ok(Val::Bool(true)) => {}
                Ok(_) => self.report_violation(rule, target, path, &names),
                Err(Failure::Cost) if limit < PER_CALL_LIMIT => {
                    return self.report_exhausted_budget(target, path);
                }
                Err(failure) => self.report_failure(rule, target, path, &failure)?,
            }
        }
        Ok(())
    }

    fn report_exhausted_budget(&mut self, target: &RuleTarget<'_>, path: &Path) -> Result<(), Stop> {
        let detail =
            "validation failed due to running out of cost budget, no further validation rules will be run";
        self.report_invalid(target, path, detail.into());
        Err(Stop)
    }

    fn report_invalid(&mut self, target: &RuleTarget<'_>, path: &Path, detail: String) {
        let kind = show::quoted(&target.node.kind);
        self.findings
            .errors
            .push_shown(ErrorType::Invalid, path, Some(kind), detail);
    }

    fn report_failure(
        &mut self,
        rule: &Rule,
        target: &RuleTarget<'_>,
        path: &Path,
        failure: &Failure,
    ) -> Result<(), Stop> {
        let shown = rule.text();
        match failure {
            Failure::Cost => {
                let detail = format!(
                    "'{failure}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
                );
                self.report_invalid(target, path, detail);
                return Err(Stop);
            }
            Failure::Error(text) if text.starts_with("no such overload") => {
                let detail = format!(
                    "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
                );
                self.report_invalid(target, path, detail);
            }
            Failure::Error(text) => {
                self.report_invalid(target, path, format!("{text} evaluating rule: {shown}"));
            }
        }
        Ok(())
    }

    fn report_violation<'a>(
        &mut self,
        rule: &'a Rule,
        target: &RuleTarget<'_>,
        path: &Path,
        names: &KnownNames<'a>,
    ) {
        let detail = rule.violation_message(names, &mut self.budget);
        let path = if rule.field.is_empty() {
            path.clone()
        } else {
            path.child(&rule.field)
        };
        let is_composite = matches!(target.node.kind.as_str(), "object" | "array");
        let shown = (!is_composite).then(|| show::value(target.value));
        let mut errors = FieldErrors::new();
        match rule.reason.as_str() {
            "FieldValueForbidden" => errors.forbidden(&path, detail),
            "FieldValueRequired" => errors.required(&path, detail),
            "FieldValueDuplicate" => errors.push_shown(ErrorType::Duplicate, &path, shown, ""),
            _ => errors.push_shown(ErrorType::Invalid, &path, shown, detail),
        }
        if !rule.uses_old && target.ratchet.is_unchanged(target.value) {
            self.findings
                .warnings
                .extend(errors.iter().map(ToString::to_string));
        } else {
            self.findings.errors.append(errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn message_expressions_reduce_the_budget() {
        let schema = json!({"type": "integer"});
        let rule = json!({"rule": "self > 1", "messageExpression": "'have ' + string(self)"});
        let value = json!(1);
        let node = Node::compile(&schema);
        let rule = Rule::compile(&node, false, &rule);
        let names = KnownNames(vec![("self", Val::from_json(&value, Some(&node)))]);
        let mut budget = VALIDATION_BUDGET;
        assert_eq!(rule.violation_message(&names, &mut budget), "have 1");
        assert!(budget < VALIDATION_BUDGET);
        assert_eq!(rule.violation_message(&names, &mut 0), "failed rule: self > 1");
    }
}
