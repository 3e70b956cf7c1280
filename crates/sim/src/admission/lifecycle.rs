//! Namespace lifecycle: rejects new objects in a missing or terminating namespace, and the deletion of
//! protected namespaces.

use serde_json::Value;

use super::{Attributes, Operation};
use crate::state::State;
use crate::status::{Qualified, Result, Status};
use crate::tree;

const NAMESPACES: Qualified<'static> = Qualified {
    group: "",
    name: "namespaces",
};
/// Namespaces that cannot be deleted.
const PROTECTED_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Rejects a new object whose namespace is missing or terminating.
pub(super) fn check(state: &State, attributes: &Attributes<'_>, value: &Value) -> Result<()> {
    let target = attributes.target;
    if target.namespace.is_empty() || !target.resource.namespaced {
        return Ok(());
    }
    let Some(namespace) = state.store.get("namespaces", target.namespace) else {
        return Err(Status::not_found(NAMESPACES, target.namespace));
    };
    if attributes.operation != Operation::Create || !namespace.meta().deleting {
        return Ok(());
    }
    let namespace = target.namespace;
    let name = tree::text(value, &["metadata", "name"]);
    let reason =
        format!("unable to create new content in namespace {namespace} because it is being terminated");
    Err(
        Status::forbidden(target.resource.qualified(), name, &reason).cause(
            "NamespaceTerminating",
            &format!("namespace {namespace} is being terminated"),
            "metadata.namespace",
        ),
    )
}

/// Rejects the deletion of a protected namespace.
pub(super) fn check_delete(attributes: &Attributes<'_>) -> Result<()> {
    let target = attributes.target;
    let protected = target.resource.is("", "namespaces") && PROTECTED_NAMESPACES.contains(&target.name);
    if attributes.operation == Operation::Delete && protected {
        return Err(Status::forbidden(
            target.resource.qualified(),
            target.name,
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}
