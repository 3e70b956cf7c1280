//! Paths in an object, as the server records them, as people write them, and as the table of defaults has
//! them. Paths are borrowed during traversal; only reported ones are allocated.

use std::fmt;

use serde_json::Value;

use super::fields::Element;

/// A path as the server records it: `f:spec`, `f:ports`, `k:{"port":443}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<String>);

impl fmt::Display for Path {
    /// In human-readable form: `.spec.ports[port=443].name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|key| match key.strip_prefix("f:") {
            Some(name) => write!(f, ".{name}"),
            None => match Element::parse(key) {
                Some(element) => write!(f, "[{element}]"),
                None => write!(f, "[{key}]"),
            },
        })
    }
}

/// A borrowed path during traversal.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    kind: &'a str,
    above: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Entry(&'a str),
}

impl<'a> At<'a> {
    /// The root.
    pub(super) fn root(object: &'a Value) -> Self {
        Self {
            kind: object.get("kind").and_then(Value::as_str).unwrap_or_default(),
            above: None,
            step: Step::Root,
        }
    }

    /// The path of a field.
    pub(super) fn field(&'a self, name: &'a str) -> At<'a> {
        self.below(Step::Field(name))
    }

    /// The path of a list element, by its key in the record.
    pub(super) fn entry(&'a self, key: &'a str) -> At<'a> {
        self.below(Step::Entry(key))
    }

    fn below(&'a self, step: Step<'a>) -> At<'a> {
        At {
            kind: self.kind,
            above: Some(self),
            step,
        }
    }

    /// The kind of the object.
    pub(super) fn kind(&self) -> &'a str {
        self.kind
    }

    fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    /// Whether this is the object's `metadata`.
    pub(super) fn is_metadata(&self) -> bool {
        matches!(self.step, Step::Field("metadata")) && self.above.is_some_and(At::is_root)
    }

    /// Whether a field here is part of the object's identity.
    pub(super) fn is_identity(&self, name: &str) -> bool {
        (self.is_root() && matches!(name, "apiVersion" | "kind"))
            || (self.is_metadata() && matches!(name, "name" | "namespace"))
    }

    /// The owned path.
    pub(super) fn path(&self) -> Path {
        let mut steps: Vec<String> = self
            .upwards()
            .filter_map(|at| match at.step {
                Step::Root => None,
                Step::Field(name) => Some(format!("f:{name}")),
                Step::Entry(key) => Some(key.to_owned()),
            })
            .collect();
        steps.reverse();
        Path(steps)
    }

    /// The path with dots and without list elements: `spec.ports.name`.
    pub(super) fn dotted(&self) -> String {
        let mut names: Vec<&str> = self
            .upwards()
            .filter_map(|at| match at.step {
                Step::Field(name) => Some(name),
                _ => None,
            })
            .collect();
        names.reverse();
        names.join(".")
    }

    fn upwards(&self) -> impl Iterator<Item = &At<'a>> {
        std::iter::successors(Some(self), |at| at.above)
    }
}

impl Path {
    /// The path of a field by the names above it and its own.
    pub(crate) fn for_fields(names: &[&str]) -> Self {
        Self(names.iter().map(|name| format!("f:{name}")).collect())
    }

    /// Returns the value at this path of an object, if there is one.
    #[must_use]
    pub fn find<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, key| {
            if let Some(name) = key.strip_prefix("f:") {
                return value.get(name);
            }
            let element = Element::parse(key)?;
            value.as_array()?.iter().rfind(|entry| element.is(entry))
        })
    }

    /// The steps as recorded.
    pub(super) fn steps(&self) -> &[String] {
        &self.0
    }
}
