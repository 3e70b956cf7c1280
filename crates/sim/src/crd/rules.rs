//! Rules of a schema (`x-kubernetes-validations`): takes a value and its predecessor, gives what the rules say against it. Compiled once,
//! when the definition changes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::correlate::{Old, item_by_keys};
use super::paths;
use super::schema::{Additional, Node, text};
use super::show;
use crate::cel::{self, CALL_COST, Failure, Given, Program, Type, Val};
use crate::field::{ErrorType, FieldErrors, Path};

/// What all rules of an object may cost together.
const BUDGET: u64 = 10_000_000;
/// How long a computed message may be.
const MESSAGE: usize = 5 * 1024;

/// The rules of a place and of those below it.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    own: Vec<Rule>,
    properties: BTreeMap<String, Rules>,
    items: Option<Box<Rules>>,
    additional: Option<Box<Rules>>,
}

/// One rule.
#[derive(Debug)]
pub(crate) struct Rule {
    program: Option<Program>,
    message_program: Option<Program>,
    source: String,
    message: String,
    reason: String,
    field: String,
    optional_old: bool,
    pub uses_old: bool,
    /// What the compiler says against the rule.
    pub error: Option<String>,
    /// What the compiler says against the expression of its message.
    pub message_error: Option<String>,
}

impl Rule {
    /// Compiles a rule of a place.
    pub(crate) fn compile(node: &Node, whole: bool, rule: &Value) -> Self {
        let kind = Type::of(node, whole).unwrap_or(Type::Dyn);
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
            field: paths::normal(text(rule, "fieldPath"), node),
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

    /// What it is called in messages.
    fn shown(&self) -> &str {
        if self.message.is_empty() {
            self.source.trim()
        } else {
            self.message.trim()
        }
    }

    fn detail<'a>(&'a self, names: &Given<'a>, cost: &mut u64) -> String {
        let computed = self.message_program.as_ref().and_then(|program| {
            let mut left = CALL_COST.min(*cost);
            let result = program.run(names, &mut left);
            match result {
                Ok(Val::Text(text)) => Some(text.trim().to_owned()),
                _ => None,
            }
        });
        let usable =
            computed.filter(|text| !text.is_empty() && text.len() <= MESSAGE && !text.contains('\n'));
        usable.unwrap_or_else(|| {
            if self.message.is_empty() {
                format!("failed rule: {}", self.shown())
            } else {
                self.message.trim().to_owned()
            }
        })
    }
}

impl Rules {
    /// Compiles all rules of a schema; none when there are none.
    pub(crate) fn compile(schema: &Value, node: &Node, whole: bool) -> Option<Self> {
        let whole = whole || node.embedded;
        let own = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let properties = schema.get("properties").and_then(Value::as_object);
        let below = |name: &str, node: &Node| {
            let schema = properties?.get(name)?;
            Some((name.to_owned(), Self::compile(schema, node, false)?))
        };
        let rules = Self {
            own: own
                .into_iter()
                .flatten()
                .map(|rule| Rule::compile(node, whole, rule))
                .collect(),
            properties: node
                .properties
                .iter()
                .filter_map(|(name, node)| below(name, node))
                .collect(),
            items: match (schema.get("items"), &node.items) {
                (Some(schema), Some(node)) => Self::compile(schema, node, false).map(Box::new),
                _ => None,
            },
            additional: match (schema.get("additionalProperties"), &node.additional) {
                (Some(schema), Some(Additional::Like(node))) => {
                    Self::compile(schema, node, false).map(Box::new)
                }
                _ => None,
            },
        };
        let empty = rules.own.is_empty()
            && rules.properties.is_empty()
            && rules.items.is_none()
            && rules.additional.is_none();
        (!empty).then_some(rules)
    }

    /// Judges a value; `place` stands before all paths. Rules that an unchanged value already broke only warn.
    pub(crate) fn validate(
        &self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        place: &Path,
        findings: &mut Findings<'_>,
    ) {
        let current = old.map(|value| Old { value, schema: node });
        let ratchet = Ratchet {
            current,
            parent: None,
        };
        self.judge(
            &Spot {
                node,
                value,
                old,
                ratchet,
            },
            place,
            findings,
        );
    }

    /// The same, and nothing is forgiven.
    pub(crate) fn validate_strictly(
        &self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        place: &Path,
        findings: &mut Findings<'_>,
    ) {
        let ratchet = Ratchet {
            current: None,
            parent: None,
        };
        self.judge(
            &Spot {
                node,
                value,
                old,
                ratchet,
            },
            place,
            findings,
        );
    }

    fn judge(&self, spot: &Spot<'_>, place: &Path, findings: &mut Findings<'_>) {
        let mut judge = Judge {
            findings,
            budget: BUDGET,
        };
        // Stopping early is reported where it happens.
        let _ = judge.at(self, spot, place);
    }
}

/// Where findings go.
pub(crate) struct Findings<'f> {
    pub errors: &'f mut FieldErrors,
    pub warnings: &'f mut Vec<String>,
}

/// Who is unchanged: the value itself, or the nearest above whose predecessor is known.
#[derive(Clone, Copy)]
struct Ratchet<'v> {
    current: Option<Old<'v>>,
    parent: Option<(Old<'v>, &'v Value)>,
}

impl<'v> Ratchet<'v> {
    fn forgives(&self, value: &Value) -> bool {
        match (self.current, self.parent) {
            (Some(current), _) => current.equals(value),
            (None, Some((parent, new))) => parent.equals(new),
            (None, None) => false,
        }
    }

    fn below(self, value: &'v Value, next: impl FnOnce(Old<'v>) -> Option<Old<'v>>) -> Self {
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
        self.below(value, |old| old.field(name))
    }
}

/// A value under judgement.
struct Spot<'v> {
    node: &'v Node,
    value: &'v Value,
    old: Option<&'v Value>,
    ratchet: Ratchet<'v>,
}

/// Nothing more is to be judged.
struct Stop;

struct Judge<'j, 'f> {
    findings: &'j mut Findings<'f>,
    budget: u64,
}

impl Judge<'_, '_> {
    fn at(&mut self, rules: &Rules, spot: &Spot<'_>, path: &Path) -> Result<(), Stop> {
        if spot.value.is_null() {
            return Ok(());
        }
        self.own(rules, spot, path)?;
        match spot.value {
            Value::Object(map) => {
                for (key, value) in map {
                    let old = spot.old.and_then(|old| old.get(key));
                    let ratchet = spot.ratchet.field(spot.value, key);
                    let named = rules.properties.get(key).zip(spot.node.properties.get(key));
                    if let Some((rules, node)) = named {
                        self.at(
                            rules,
                            &Spot {
                                node,
                                value,
                                old,
                                ratchet,
                            },
                            &path.child(key),
                        )?;
                    } else if let (Some(rules), Some(Additional::Like(node))) =
                        (&rules.additional, &spot.node.additional)
                    {
                        self.at(
                            rules,
                            &Spot {
                                node,
                                value,
                                old,
                                ratchet,
                            },
                            &path.key(key),
                        )?;
                    }
                }
            }
            Value::Array(items) => {
                if let (Some(rules), Some(node)) = (&rules.items, &spot.node.items) {
                    for (index, value) in items.iter().enumerate() {
                        let old = spot.old.and_then(|old| item_by_keys(spot.node, old, value));
                        let ratchet = spot.ratchet.below(spot.value, |old| old.item(value));
                        self.at(
                            rules,
                            &Spot {
                                node,
                                value,
                                old,
                                ratchet,
                            },
                            &path.index(index),
                        )?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn own(&mut self, rules: &Rules, spot: &Spot<'_>, path: &Path) -> Result<(), Stop> {
        let old = spot.old.filter(|old| !old.is_null());
        for rule in &rules.own {
            let Some(program) = &rule.program else {
                if let Some(error) = &rule.error {
                    self.invalid(spot, path, format!("rule compile error: {error}"));
                }
                continue;
            };
            if rule.uses_old && old.is_none() && !rule.optional_old {
                continue;
            }
            if self.budget == 0 {
                return self.exhausted(spot, path);
            }
            let mut names = Given(vec![("self", Val::of(spot.value, Some(spot.node)))]);
            match old.map(|old| Val::of(old, Some(spot.node))) {
                Some(old) if rule.optional_old => names.0.push(("oldSelf", Val::Optional(Some(old.into())))),
                Some(old) => names.0.push(("oldSelf", old)),
                None if rule.optional_old => names.0.push(("oldSelf", Val::Optional(None))),
                None => {}
            }
            let limit = CALL_COST.min(self.budget);
            let mut left = limit;
            let outcome = program.run(&names, &mut left);
            self.budget -= limit - left;
            match outcome {
                Ok(Val::Bool(true)) => {}
                Ok(_) => self.broken(rule, spot, path, &names),
                Err(Failure::Cost) if limit < CALL_COST => return self.exhausted(spot, path),
                Err(failure) => self.failed(rule, spot, path, &failure)?,
            }
        }
        Ok(())
    }

    fn exhausted(&mut self, spot: &Spot<'_>, path: &Path) -> Result<(), Stop> {
        let words =
            "validation failed due to running out of cost budget, no further validation rules will be run";
        self.invalid(spot, path, words.into());
        Err(Stop)
    }

    fn invalid(&mut self, spot: &Spot<'_>, path: &Path, words: String) {
        let kind = show::quoted(&spot.node.kind);
        self.findings
            .errors
            .push_shown(ErrorType::Invalid, path, Some(kind), words);
    }

    fn failed(&mut self, rule: &Rule, spot: &Spot<'_>, path: &Path, failure: &Failure) -> Result<(), Stop> {
        let shown = rule.shown();
        match failure {
            Failure::Cost => {
                let words = format!(
                    "'{failure}': no further validation rules will be run due to call cost exceeds limit for rule: {shown}"
                );
                self.invalid(spot, path, words);
                return Err(Stop);
            }
            Failure::Error(text) if text.starts_with("no such overload") => {
                let words = format!(
                    "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
                );
                self.invalid(spot, path, words);
            }
            Failure::Error(text) => self.invalid(spot, path, format!("{text} evaluating rule: {shown}")),
        }
        Ok(())
    }

    fn broken<'a>(&mut self, rule: &'a Rule, spot: &Spot<'_>, path: &Path, names: &Given<'a>) {
        let detail = rule.detail(names, &mut self.budget);
        let path = if rule.field.is_empty() {
            path.clone()
        } else {
            path.child(&rule.field)
        };
        let whole = matches!(spot.node.kind.as_str(), "object" | "array");
        let shown = (!whole).then(|| show::value(spot.value));
        let mut errors = FieldErrors::new();
        match rule.reason.as_str() {
            "FieldValueForbidden" => errors.forbidden(&path, detail),
            "FieldValueRequired" => errors.required(&path, detail),
            "FieldValueDuplicate" => errors.push_shown(ErrorType::Duplicate, &path, shown, ""),
            _ => errors.push_shown(ErrorType::Invalid, &path, shown, detail),
        }
        if !rule.uses_old && spot.ratchet.forgives(spot.value) {
            self.findings
                .warnings
                .extend(errors.iter().map(ToString::to_string));
        } else {
            self.findings.errors.append(errors);
        }
    }
}
