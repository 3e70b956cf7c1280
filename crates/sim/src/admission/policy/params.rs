//! Parameters of a policy: resolves `paramRef` to objects.

use serde_json::Value;

use super::Policy;
use crate::selector::LabelSelector;
use crate::state::State;
use crate::tree;

/// Returns the parameter objects to evaluate the policy with: a single `None` if it has no parameters, an
/// empty list if it need not be evaluated.
pub(super) fn collect(
    state: &State,
    policy: &Policy,
    binding: &Value,
    namespace: &str,
) -> Result<Vec<Option<Value>>, String> {
    let reference = tree::get(binding, &["paramRef"]).filter(|reference| reference.is_object());
    let (Some((version, kind)), Some(reference)) = (&policy.param_kind, reference) else {
        return Ok(vec![None]);
    };
    let Some(resource) = state.resources.find_kind(version, kind).cloned() else {
        return Err(format!("paramKind kind `{version}, Kind={kind}` not known"));
    };
    let asked = tree::text(reference, &["namespace"]);
    let place = match (resource.namespaced, asked) {
        (false, "") => "",
        (false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into());
        }
        (true, "") if namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .into(),
            );
        }
        (true, "") => namespace,
        (true, asked) => asked,
    };
    let name = tree::text(reference, &["name"]);
    let shown = |object: &std::sync::Arc<crate::object::Object>| {
        Some(crate::convert::from_stored(&resource, object.value()))
    };
    let found: Vec<Option<Value>> = if name.is_empty() {
        let selector = LabelSelector::from_object(reference.get("selector"));
        state
            .store
            .range(&resource.table, place, None)
            .map(|(_, object)| shown(object))
            .filter(|object| {
                let labels = object
                    .as_ref()
                    .and_then(|object| tree::get(object, &["metadata", "labels"]));
                selector.matches_map(labels)
            })
            .collect()
    } else {
        let key = crate::object::key(place, name);
        state
            .store
            .get(&resource.table, &key)
            .map(shown)
            .into_iter()
            .collect()
    };
    if found.is_empty() && tree::text(reference, &["parameterNotFoundAction"]) == "Deny" {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
    }
    Ok(found)
}
