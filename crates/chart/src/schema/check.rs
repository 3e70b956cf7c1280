//! Validation of values against a compiled schema. Violations have the messages and order of the Go
//! library; properties are visited in the order of their names. The depth and the number of steps are
//! limited.

mod combination;
mod list;
mod object;
mod value;

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use mainstay_yaml::{Map, Value};

use super::draft::Draft;
use super::node::{Compiled, Node, NodeId};
use super::number::{compare, format_count, format_number, is_multiple};
use super::outcome::{Failure, Kind, quote, quote_all};
use value::{count_comparisons, display, enum_text, equal, has_type, missing, type_of};

/// Maximum nesting of schemas during validation.
const MAX_DEPTH: usize = 400;
/// Maximum cost of a validation in steps. A step is a comparison of two scalars or a byte of a message.
const MAX_STEPS: usize = 20_000_000;
/// Cost of evaluating a schema, in steps.
const SCHEMA_STEPS: usize = 64;
/// Cost of an item or entry, in steps, while unevaluated ones are tracked.
const TRACKED_STEPS: usize = 4;
/// Number of bytes that are matched, copied or compared in one step.
const BYTES_PER_STEP: usize = 8;

/// Reason why values are not accepted.
pub(super) enum CheckError {
    /// The values violate the schema.
    Invalid(Failure),
    /// The step or depth limit was exceeded.
    TooManySteps,
}

/// Checks `value` against the schema `root`.
pub(super) fn check(compiled: &Compiled, root: NodeId, value: &Value) -> Result<(), CheckError> {
    let checker = Checker {
        compiled,
        steps: Cell::new(0),
        limit_exceeded: Cell::new(false),
    };
    let scope = Scope {
        node: root,
        keyword: "",
        value_id: 0,
        depth: 0,
        parent: None,
    };
    let result = checker.validate(&scope, value, &[], false, false);
    if checker.limit_exceeded.get() {
        return Err(CheckError::TooManySteps);
    }
    result.map(drop).map_err(CheckError::Invalid)
}

/// State of one validation.
struct Checker<'a> {
    compiled: &'a Compiled,
    steps: Cell<usize>,
    limit_exceeded: Cell<bool>,
}

/// A schema that is being evaluated, with the enclosing evaluations.
struct Scope<'p> {
    node: NodeId,
    /// Keyword that refers to this schema, for example `$ref`. Empty if this is not the target of a
    /// reference.
    keyword: &'static str,
    /// Number of the value. Equal for schemas that are evaluated on the same value.
    value_id: usize,
    depth: usize,
    parent: Option<&'p Scope<'p>>,
}

impl<'p> Scope<'p> {
    fn child(&'p self, node: NodeId, keyword: &'static str, value_id: usize) -> Scope<'p> {
        Scope {
            node,
            keyword,
            value_id,
            depth: self.depth + 1,
            parent: Some(self),
        }
    }

    /// Returns this scope and the enclosing scopes, innermost first.
    fn chain(&self) -> impl Iterator<Item = &Scope<'p>> {
        std::iter::successors(Some(self), |scope| scope.parent)
    }
}

/// Properties and items that no schema has evaluated so far.
#[derive(Clone, Default)]
struct Unevaluated {
    properties: BTreeSet<String>,
    items: BTreeSet<usize>,
}

impl Unevaluated {
    fn new(value: &Value, node: &Node, track_unevaluated: bool) -> Self {
        match value {
            Value::Map(map) => {
                let wanted = !node.evaluates_all_properties()
                    && (track_unevaluated || node.unevaluated_properties.is_some());
                Self {
                    properties: if wanted {
                        map.keys().cloned().collect()
                    } else {
                        BTreeSet::new()
                    },
                    ..Self::default()
                }
            }
            Value::List(items) if track_unevaluated || node.unevaluated_items.is_some() => {
                let from = node.evaluated_items().unwrap_or(items.len());
                Self {
                    items: (from..items.len()).collect(),
                    ..Self::default()
                }
            }
            _ => Self::default(),
        }
    }

    fn is_empty(&self) -> bool {
        self.properties.is_empty() && self.items.is_empty()
    }

    fn intersect(&mut self, other: &Self) {
        self.properties.retain(|name| other.properties.contains(name));
        self.items.retain(|index| other.items.contains(index));
    }
}

/// Evaluation of one schema on one value.
struct Visit<'v, 's> {
    scope: &'s Scope<'s>,
    node: &'s Node,
    value: &'v Value,
    at: &'s [String],
    /// Whether messages are omitted.
    omit_messages: bool,
    unevaluated: Unevaluated,
    failures: Vec<Failure>,
}

type Checked = Result<Unevaluated, Failure>;

impl Checker<'_> {
    fn validate(
        &self,
        scope: &Scope<'_>,
        value: &Value,
        at: &[String],
        omit_messages: bool,
        track_unevaluated: bool,
    ) -> Checked {
        let path: usize = at.iter().map(String::len).sum();
        let children = child_count(value) * if track_unevaluated { TRACKED_STEPS } else { 1 };
        self.add_steps(SCHEMA_STEPS + children + path / BYTES_PER_STEP);
        if scope.depth > MAX_DEPTH {
            self.limit_exceeded.set(true);
        }
        if self.limit_exceeded.get() {
            return Ok(Unevaluated::default());
        }
        let result = self.evaluate(scope, value, at, omit_messages, track_unevaluated);
        if let Err(failure) = &result {
            self.add_steps(failure.message_bytes());
        }
        result
    }

    /// Adds `steps` to the cost of the validation. If the limit is exceeded, the values are rejected.
    fn add_steps(&self, steps: usize) {
        let spent = self.steps.get().saturating_add(steps);
        self.steps.set(spent);
        if spent > MAX_STEPS {
            self.limit_exceeded.set(true);
        }
    }

    fn evaluate(
        &self,
        scope: &Scope<'_>,
        value: &Value,
        at: &[String],
        omit_messages: bool,
        track_unevaluated: bool,
    ) -> Checked {
        let Some(node) = self.compiled.nodes.get(scope.node) else {
            return Ok(Unevaluated::default());
        };
        let unevaluated = Unevaluated::new(value, node, track_unevaluated);
        let mut visit = Visit {
            scope,
            node,
            value,
            at,
            omit_messages,
            unevaluated,
            failures: Vec::new(),
        };
        if let Some(always) = node.always {
            return if always {
                Ok(visit.unevaluated)
            } else {
                Err(visit.failure("false schema"))
            };
        }
        if let Some(failure) = self.first_failure(&visit) {
            return Err(failure);
        }
        if let Some(target) = node.reference {
            let result = self.reference(&mut visit, target, "$ref");
            if node.draft < Draft::D2019 {
                return result.map(|()| visit.unevaluated);
            }
            visit.failures.extend(result.err());
        }
        match value {
            Value::Map(map) => self.object(&mut visit, map),
            Value::List(items) => self.list(&mut visit, items),
            Value::String(text) => {
                self.add_steps(text.len() / BYTES_PER_STEP);
                check_string(&mut visit, text);
            }
            Value::Int(_) | Value::Uint(_) | Value::Float(_) => check_number(&mut visit),
            Value::Null | Value::Bool(_) => {}
        }
        if visit.failures.is_empty() || !omit_messages {
            if node.draft >= Draft::D2019 {
                self.dynamic_references(&mut visit);
            }
            self.combinations(&mut visit);
            if node.draft >= Draft::D2019 {
                self.unevaluated(&mut visit);
            }
        }
        visit.into_result()
    }

    /// Returns the first of the violations that are reported alone: a reference cycle, `type`, `const`,
    /// `enum`, `format`.
    fn first_failure(&self, visit: &Visit<'_, '_>) -> Option<Failure> {
        let (node, value) = (visit.node, visit.value);
        if let Some(other) = find_cycle(visit.scope) {
            let text = format!(
                "both {} and {} resolve to {} causing reference cycle",
                self.keyword_path(visit.scope),
                self.keyword_path(other),
                mainstay_gostd::quote::quote(&node.location)
            );
            return Some(visit.failure(text));
        }
        if !node.types.is_empty() && !has_type(value, &node.types) {
            return Some(visit.failure(format!(
                "got {}, want {}",
                type_of(value),
                node.types.join(" or ")
            )));
        }
        if let Some(wanted) = &node.constant
            && !equal(value, wanted)
        {
            let text = match wanted {
                Value::List(_) | Value::Map(_) => "'const' failed".into(),
                primitive => format!("value must be {}", display(primitive)),
            };
            return Some(visit.failure(text));
        }
        if let Some(allowed) = &node.allowed
            && !self.is_allowed(value, allowed)
        {
            return Some(visit.failure(enum_text(allowed)));
        }
        let format = node.format.as_ref()?;
        self.add_steps(format_steps(format.name(), value));
        let (result, compiled_bytes) = format.check(value);
        self.add_steps(compiled_bytes / BYTES_PER_STEP);
        let error = result.err()?;
        Some(visit.failure(format!(
            "{} is not valid {}: {error}",
            display(value),
            format.name()
        )))
    }

    fn is_allowed(&self, value: &Value, allowed: &[Value]) -> bool {
        allowed.iter().any(|item| {
            self.add_steps(count_comparisons(value, item));
            !self.limit_exceeded.get() && equal(value, item)
        })
    }

    fn keyword_path(&self, scope: &Scope<'_>) -> String {
        let mut path = String::new();
        for scope in scope.chain() {
            let Some(parent) = scope.parent else { break };
            let step = if scope.keyword.is_empty() {
                let location = |node| {
                    self.compiled
                        .nodes
                        .get(node)
                        .map_or("", |node: &Node| node.location.as_str())
                };
                let (here, above) = (location(scope.node), location(parent.node));
                here.get(above.len()..).unwrap_or_default().to_owned()
            } else {
                format!("/{}", scope.keyword)
            };
            path = step + &path;
        }
        path
    }

    /// Evaluates another schema on the same value.
    fn evaluate_same_value(
        &self,
        visit: &mut Visit<'_, '_>,
        node: NodeId,
        keyword: &'static str,
        omit_messages: bool,
    ) -> Result<(), Failure> {
        let scope = visit.scope.child(node, keyword, visit.scope.value_id);
        let track_unevaluated = !visit.unevaluated.is_empty();
        let unevaluated = self.validate(
            &scope,
            visit.value,
            visit.at,
            visit.omit_messages || omit_messages,
            track_unevaluated,
        )?;
        visit.unevaluated.intersect(&unevaluated);
        Ok(())
    }

    /// Evaluates a schema on a part of the value.
    fn evaluate_part(
        &self,
        visit: &Visit<'_, '_>,
        node: NodeId,
        value: &Value,
        token: String,
    ) -> Result<(), Failure> {
        let scope = visit.scope.child(node, "", visit.scope.value_id + 1);
        let mut at = visit.at.to_vec();
        at.push(token);
        self.validate(&scope, value, &at, visit.omit_messages, false)
            .map(drop)
    }

    fn reference(
        &self,
        visit: &mut Visit<'_, '_>,
        node: NodeId,
        keyword: &'static str,
    ) -> Result<(), Failure> {
        self.evaluate_same_value(visit, node, keyword, false)
            .map_err(|failure| {
                let causes = if matches!(failure.kind, Kind::Group) {
                    failure.causes
                } else {
                    vec![failure]
                };
                Failure {
                    at: visit.at.to_vec(),
                    kind: Kind::Reference,
                    causes,
                }
            })
    }

    fn dynamic_references(&self, visit: &mut Visit<'_, '_>) {
        let nodes = &self.compiled.nodes;
        if let Some(target) = visit.node.recursive_ref {
            let anchored = |id: NodeId| nodes.get(id).is_some_and(|node| node.recursive_anchor);
            let outermost =
                |scope: &&Scope<'_>| nodes.get(scope.node).is_some_and(|node| anchored(node.resource));
            let chosen = if anchored(target) {
                visit
                    .scope
                    .chain()
                    .filter(outermost)
                    .last()
                    .map_or(target, |scope| scope.node)
            } else {
                target
            };
            let result = self.reference(visit, chosen, "$recursiveRef");
            visit.failures.extend(result.err());
        }
        if let Some((target, anchor)) = &visit.node.dynamic_ref {
            let matches = !anchor.is_empty()
                && nodes
                    .get(*target)
                    .is_some_and(|node| node.dynamic_anchor == *anchor);
            let named = |scope: &Scope<'_>| {
                let resource = nodes.get(scope.node).and_then(|node| nodes.get(node.resource))?;
                resource.dynamic_anchors.get(anchor).copied()
            };
            let chosen = visit
                .scope
                .chain()
                .filter_map(named)
                .last()
                .filter(|_| matches)
                .unwrap_or(*target);
            let result = self.reference(visit, chosen, "$dynamicRef");
            visit.failures.extend(result.err());
        }
    }

    fn unevaluated(&self, visit: &mut Visit<'_, '_>) {
        match (
            visit.value,
            visit.node.unevaluated_properties,
            visit.node.unevaluated_items,
        ) {
            (Value::Map(map), Some(schema), _) => {
                for name in std::mem::take(&mut visit.unevaluated.properties) {
                    if let Some(value) = map.get(&name) {
                        let result = self.evaluate_part(visit, schema, value, name);
                        visit.failures.extend(result.err());
                    }
                }
            }
            (Value::List(items), _, Some(schema)) => {
                for index in std::mem::take(&mut visit.unevaluated.items) {
                    if let Some(value) = items.get(index) {
                        let result = self.evaluate_part(visit, schema, value, index.to_string());
                        visit.failures.extend(result.err());
                    }
                }
            }
            _ => {}
        }
    }
}

impl Visit<'_, '_> {
    fn failure(&self, text: impl Into<String>) -> Failure {
        if self.omit_messages {
            return Failure {
                at: Vec::new(),
                kind: Kind::Text(String::new()),
                causes: Vec::new(),
            };
        }
        Failure {
            at: self.at.to_vec(),
            kind: Kind::Text(text.into()),
            causes: Vec::new(),
        }
    }

    fn fail(&mut self, text: String) {
        let failure = self.failure(text);
        self.failures.push(failure);
    }

    fn fail_because(&mut self, text: String, causes: Vec<Failure>) {
        let failure = Failure {
            causes,
            ..self.failure(text)
        };
        self.failures.push(failure);
    }

    fn fail_if_missing(&mut self, map: &Map, name: &str, names: &[String]) {
        let absent = missing(map, names);
        if !absent.is_empty() {
            self.fail(format!(
                "properties {} required, if {} exists",
                quote_all(&absent),
                quote(name)
            ));
        }
    }

    fn check_minimum(&mut self, keyword: &str, got: i64, want: Option<i64>) {
        if let Some(want) = want.filter(|want| got < *want) {
            self.fail(format!(
                "{keyword}: got {}, want {}",
                format_count(got),
                format_count(want)
            ));
        }
    }

    fn check_maximum(&mut self, keyword: &str, got: i64, want: Option<i64>) {
        if let Some(want) = want.filter(|want| got > *want) {
            self.fail(format!(
                "{keyword}: got {}, want {}",
                format_count(got),
                format_count(want)
            ));
        }
    }

    /// Whether evaluation can stop, because the value is invalid and messages are omitted.
    fn can_stop(&self) -> bool {
        self.omit_messages && !self.failures.is_empty()
    }

    fn into_result(mut self) -> Checked {
        match self.failures.len() {
            0 => Ok(self.unevaluated),
            1 => Err(self.failures.remove(0)),
            _ => Err(Failure {
                at: self.at.to_vec(),
                kind: Kind::Group,
                causes: self.failures,
            }),
        }
    }
}

/// Returns the cost of checking a format in steps. A regular expression has to be compiled.
fn format_steps(name: &str, value: &Value) -> usize {
    let bytes = value.as_str().map_or(0, str::len);
    if name == "regex" {
        2_000 + 8 * bytes
    } else {
        bytes / BYTES_PER_STEP
    }
}

/// Returns the number of items or entries of a value.
fn child_count(value: &Value) -> usize {
    match value {
        Value::List(items) => items.len(),
        Value::Map(map) => map.len(),
        _ => 0,
    }
}

fn check_string(visit: &mut Visit<'_, '_>, text: &str) {
    let node = visit.node;
    if node.min_length.is_some() || node.max_length.is_some() {
        let length = text.chars().count() as i64;
        visit.check_minimum("minLength", length, node.min_length);
        visit.check_maximum("maxLength", length, node.max_length);
    }
    if let Some(pattern) = node
        .pattern
        .as_ref()
        .filter(|pattern| !pattern.regex.is_match(text))
    {
        visit.fail(format!(
            "{} does not match pattern {}",
            quote(text),
            quote(&pattern.text)
        ));
    }
}

fn check_number(visit: &mut Visit<'_, '_>) {
    let (node, value) = (visit.node, visit.value);
    let mut bound = |keyword: &str, want: &Option<Value>, broken: fn(Ordering) -> bool| {
        if let Some(want) = want
            && broken(compare(value, want))
        {
            visit.fail(format!(
                "{keyword}: got {}, want {}",
                format_number(value),
                format_number(want)
            ));
        }
    };
    bound("minimum", &node.minimum, Ordering::is_lt);
    bound("maximum", &node.maximum, Ordering::is_gt);
    bound("exclusiveMinimum", &node.exclusive_minimum, Ordering::is_le);
    bound("exclusiveMaximum", &node.exclusive_maximum, Ordering::is_ge);
    if let Some(step) = node.multiple_of.as_ref().filter(|step| !is_multiple(value, step)) {
        visit.fail(format!(
            "multipleOf: got {}, want {}",
            format_number(value),
            format_number(step)
        ));
    }
}

/// Returns the enclosing evaluation of the same schema on the same value, if there is one.
fn find_cycle<'p>(scope: &'p Scope<'p>) -> Option<&'p Scope<'p>> {
    scope
        .chain()
        .skip(1)
        .take_while(|other| other.value_id == scope.value_id)
        .find(|other| other.node == scope.node)
}
