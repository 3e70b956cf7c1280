//! Custom resources: serves the resources of a `CustomResourceDefinition`, and prunes, defaults and validates
//! custom objects. Schemas, patterns and rules are compiled when a definition changes.

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
mod validate;

pub use definition::{defaults, prepare, validate as validate_definition};
pub use object::{apply_defaults, decode, validate, warn};
pub(crate) use object::{from_stored, to_stored};
pub use serve::{serve, stop_serving};

/// One version of a definition.
#[derive(Debug)]
pub struct Custom {
    /// Schema of the version (`openAPIV3Schema`).
    pub schema: Value,
    /// Additional printer columns.
    pub columns: Vec<Value>,
    /// Paths for field selectors, without the leading dot.
    pub selectable: Vec<String>,
    /// Paths of the scale subresource (`subresources.scale`).
    pub scale: Option<Value>,
    /// Number of versions of the definition.
    pub versions: usize,
    /// Kind of a list of objects, such as `ThingList`.
    pub list_kind: String,
    /// Deprecation warning that is returned for every request.
    pub warning: Option<String>,
    /// Whether the definition is terminating. New objects cannot be created then.
    pub terminating: bool,
    /// Whether stored objects can be returned without conversion.
    pub as_stored: bool,
    /// Parts of the definition that determine how objects are served.
    identity: Arc<Value>,
    pub(crate) node: Arc<schema::Node>,
    /// Schema of the stored version.
    pub(crate) stored: Arc<schema::Node>,
    pub(crate) rules: Option<rules::Rules>,
}

impl Custom {
    /// Returns whether `new` serves objects in the same way. If not, watches of the resource end.
    #[must_use]
    pub fn is_unchanged(&self, new: &Self) -> bool {
        Arc::ptr_eq(&self.identity, &new.identity)
    }
}

/// Returns a sort key for versions. The highest key has the highest priority, as in Kubernetes: `v2`, `v1`,
/// `v1beta1`, `v1alpha1`, then all other names.
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
