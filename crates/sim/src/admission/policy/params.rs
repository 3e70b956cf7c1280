//! Parameters of a policy: resolves `paramRef` to objects.

use serde_json::Value;

use super::Policy;
use crate::selector::LabelSelector;
use crate::state::State;
use crate::tree;

/// Errors of resolving a `paramRef`, with the texts of the real API server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParamError {
    /// The cluster does not serve the `paramKind`.
    #[error("paramKind kind `{version}, Kind={kind}` not known")]
    UnknownKind {
        /// The API version.
        version: String,
        kind: String,
    },
    /// The parameter is cluster-scoped, but `paramRef` has a namespace.
    #[error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")]
    UnexpectedNamespace,
    /// The parameter is namespaced, but the written object is cluster-scoped and `paramRef` has no namespace.
    #[error("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")]
    MissingNamespace,
    /// No parameter was found and `parameterNotFoundAction` is `Deny`.
    #[error("no params found for policy binding with `Deny` parameterNotFoundAction")]
    NotFound,
}

/// Returns the parameter objects to evaluate the policy with: a single `None` if the policy has no
/// parameters, an empty list if the policy is not evaluated because no object was found.
pub(super) fn collect(
    state: &State,
    policy: &Policy,
    binding: &Value,
    namespace: &str,
) -> Result<Vec<Option<Value>>, ParamError> {
    let reference = tree::get(binding, &["paramRef"]).filter(|reference| reference.is_object());
    let (Some((version, kind)), Some(reference)) = (&policy.param_kind, reference) else {
        return Ok(vec![None]);
    };
    let Some(resource) = state.resources.find_kind(version, kind).cloned() else {
        return Err(ParamError::UnknownKind {
            version: version.clone(),
            kind: kind.clone(),
        });
    };
    let requested = tree::text(reference, &["namespace"]);
    let scope = match (resource.namespaced, requested) {
        (false, "") => "",
        (false, _) => {
            return Err(ParamError::UnexpectedNamespace);
        }
        (true, "") if namespace.is_empty() => {
            return Err(ParamError::MissingNamespace);
        }
        (true, "") => namespace,
        (true, requested) => requested,
    };
    let name = tree::text(reference, &["name"]);
    let convert = |object: &std::sync::Arc<crate::object::Object>| {
        Some(crate::convert::from_stored(&resource, object.value()))
    };
    let found: Vec<Option<Value>> = if name.is_empty() {
        let selector = LabelSelector::from_object(reference.get("selector"));
        state
            .store
            .range(&resource.table, scope, None)
            .map(|(_, object)| convert(object))
            .filter(|object| {
                let labels = object
                    .as_ref()
                    .and_then(|object| tree::get(object, &["metadata", "labels"]));
                selector.matches_map(labels)
            })
            .collect()
    } else {
        let key = crate::object::key(scope, name);
        state
            .store
            .get(&resource.table, &key)
            .map(convert)
            .into_iter()
            .collect()
    };
    if found.is_empty() && tree::text(reference, &["parameterNotFoundAction"]) == "Deny" {
        return Err(ParamError::NotFound);
    }
    Ok(found)
}
