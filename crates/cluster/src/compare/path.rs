//! Paths in an object, in the notation of `managedFields`, in human-readable form, and in that of the
//! table of defaults. Paths are borrowed during traversal; only reported ones are allocated.

use std::fmt;

use serde_json::Value;

use super::fields::Element;

/// A path in the notation of `managedFields`: `f:spec`, `f:ports`, `k:{"port":443}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<String>);

impl fmt::Display for Path {
    /// Formats the path in human-readable form: `.spec.ports[port=443].name`.
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

/// A borrowed path, used during traversal.
#[derive(Clone, Copy)]
pub(super) struct PathRef<'a> {
    kind: &'a str,
    parent: Option<&'a PathRef<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Entry(&'a str),
}

impl<'a> PathRef<'a> {
    /// Returns the path of the root of an object.
    pub(super) fn root(object: &'a Value) -> Self {
        Self {
            kind: object.get("kind").and_then(Value::as_str).unwrap_or_default(),
            parent: None,
            step: Step::Root,
        }
    }

    /// Returns the path of a field.
    pub(super) fn field(&'a self, name: &'a str) -> PathRef<'a> {
        self.child(Step::Field(name))
    }

    /// Returns the path of a list element by its key in `managedFields`.
    pub(super) fn entry(&'a self, key: &'a str) -> PathRef<'a> {
        self.child(Step::Entry(key))
    }

    fn child(&'a self, step: Step<'a>) -> PathRef<'a> {
        PathRef {
            kind: self.kind,
            parent: Some(self),
            step,
        }
    }

    /// Returns the kind of the object.
    pub(super) fn kind(&self) -> &'a str {
        self.kind
    }

    fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }

    /// Whether this is the path of the object's `metadata`.
    pub(super) fn is_metadata(&self) -> bool {
        matches!(self.step, Step::Field("metadata")) && self.parent.is_some_and(PathRef::is_root)
    }

    /// Whether the field `name` at this path is part of the object's identity.
    pub(super) fn is_identity(&self, name: &str) -> bool {
        (self.is_root() && matches!(name, "apiVersion" | "kind"))
            || (self.is_metadata() && matches!(name, "name" | "namespace"))
    }

    /// Returns the path in owned form.
    pub(super) fn path(&self) -> Path {
        let mut steps: Vec<String> = self
            .ancestors()
            .filter_map(|at| match at.step {
                Step::Root => None,
                Step::Field(name) => Some(format!("f:{name}")),
                Step::Entry(key) => Some(key.to_owned()),
            })
            .collect();
        steps.reverse();
        Path(steps)
    }

    /// Returns the field names separated by dots, without list elements: `spec.ports.name`.
    pub(super) fn dotted(&self) -> String {
        let mut names: Vec<&str> = self
            .ancestors()
            .filter_map(|at| match at.step {
                Step::Field(name) => Some(name),
                _ => None,
            })
            .collect();
        names.reverse();
        names.join(".")
    }

    fn ancestors(&self) -> impl Iterator<Item = &PathRef<'a>> {
        std::iter::successors(Some(self), |at| at.parent)
    }
}

impl Path {
    /// Creates the path of a field from the names of its parents and its own.
    pub(crate) fn for_fields(names: &[&str]) -> Self {
        Self(names.iter().map(|name| format!("f:{name}")).collect())
    }

    /// Returns the value at this path of an object, or `None` if there is none.
    #[must_use]
    pub fn find<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, key| {
            if let Some(name) = key.strip_prefix("f:") {
                return value.get(name);
            }
            let element = Element::parse(key)?;
            value.as_array()?.iter().rfind(|entry| element.matches(entry))
        })
    }

    /// Returns the steps in the notation of `managedFields`.
    pub(super) fn steps(&self) -> &[String] {
        &self.0
    }
}
