//! Custom resources: takes a `CustomResourceDefinition`, gives the resources it serves; takes custom objects, gives them pruned, defaulted
//! and judged by their schema. Everything that can be compiled is, when the definition changes.

use std::sync::Arc;

use serde_json::Value;

mod correlate;
pub(crate) mod definition;
mod embedded;
mod format;
mod lists;
mod object;
mod paths;
pub(crate) mod pattern;
mod prune;
mod rules;
pub(crate) mod schema;
mod serve;
pub(crate) mod show;
mod validate;

pub use definition::{defaults, prepare, validate as validate_definition};
pub use object::{decode, default, validate, warn};
pub(crate) use object::{from_stored, to_stored};
pub use serve::{serve, stop_serving};

/// What a definition says about one version.
#[derive(Debug)]
pub struct Custom {
    /// `openAPIV3Schema`.
    pub schema: Value,
    /// Additional printer columns.
    pub columns: Vec<Value>,
    /// Paths that field selectors may ask for, without the leading dot.
    pub selectable: Vec<String>,
    /// `subresources.scale`.
    pub scale: Option<Value>,
    /// How many versions there are.
    pub versions: usize,
    /// The kind of lists.
    pub list_kind: String,
    /// What every request is warned about.
    pub warning: Option<String>,
    /// The definition is being deleted: nothing new may be made.
    pub terminating: bool,
    /// Stored objects have the form that is served.
    pub as_stored: bool,
    identity: Arc<Value>,
    pub(crate) node: Arc<schema::Node>,
    pub(crate) stored: Arc<schema::Node>,
    pub(crate) rules: Option<rules::Rules>,
}

impl Custom {
    /// Whether the definition is still what it was: otherwise its watches end.
    #[must_use]
    pub fn is_unchanged(&self, now: &Self) -> bool {
        Arc::ptr_eq(&self.identity, &now.identity)
    }
}

/// Orders versions as Kubernetes does: `v2` before `v1` before `v1beta1` before `v1alpha1` before the rest.
#[must_use]
pub fn version_priority(name: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let parsed = name.strip_prefix('v').and_then(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, stage) = rest.split_at_checked(digits)?;
        let major = major.parse().ok()?;
        let (rank, minor) = match stage {
            "" => (3, "0"),
            _ => match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
                (Some(minor), _) => (2, minor),
                (_, Some(minor)) => (1, minor),
                _ => return None,
            },
        };
        Some((rank, major, minor.parse().ok()?))
    });
    let (rank, major, minor) = parsed.unwrap_or((0, 0, 0));
    (rank, major, minor, std::cmp::Reverse(name.to_owned()))
}
