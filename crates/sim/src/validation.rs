//! Which objects are acceptable: takes an object (and its predecessor), gives what is wrong with it. One function per kind, in the files
//! below; the tables here say which.

use serde_json::Value;

use crate::field::FieldErrors;
use crate::resource::{Resource, Shape};
use crate::state::State;

pub mod meta;
pub mod names;

use names::NameRule;

/// Checks a new object.
#[must_use]
pub fn create(state: &State, resource: &Resource, value: &Value) -> FieldErrors {
    if let Shape::Custom(custom) = &resource.shape {
        let mut errors = meta::object_meta(value, resource.namespaced, names::subdomain);
        errors.append(crate::crd::validate(state, custom, value, None));
        return errors;
    }
    meta::object_meta(value, resource.namespaced, name_rule(resource))
}

/// Checks a changed object.
#[must_use]
pub fn update(state: &State, resource: &Resource, new: &Value, old: &Value, _subresource: &str) -> FieldErrors {
    let mut errors = meta::object_meta_update(new, old);
    if let Shape::Custom(custom) = &resource.shape {
        errors.append(crate::crd::validate(state, custom, new, Some(old)));
    }
    errors
}

/// How names of a kind are checked.
#[must_use]
pub fn name_rule(resource: &Resource) -> NameRule {
    match (&*resource.group, &*resource.plural) {
        ("", "namespaces") => names::label,
        ("", "services") => names::label_1035,
        ("rbac.authorization.k8s.io", _) => names::path_segment,
        _ => names::subdomain,
    }
}
