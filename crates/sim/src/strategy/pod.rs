//! Pods: phase and `QoS` class of a new pod.

use serde_json::{Value, json};

use crate::schema::quantity_millis;
use crate::tree;

/// Sets the status of a new pod: the phase `Pending` and the `QoS` class.
pub(super) fn prepare_create(value: &mut Value) {
    let class = qos_class(value);
    tree::set(value, &["status"], json!({"phase": "Pending", "qosClass": class}));
}

/// Restores everything that a write to a subresource cannot change. `ephemeralcontainers` can change the
/// ephemeral containers, `resize` the resources of all other containers.
pub(super) fn prepare_subresource(new: &mut Value, old: &Value, subresource: &str) {
    let mut restored = old.clone();
    tree::copy(new, &mut restored, &["metadata", "managedFields"]);
    if subresource == "ephemeralcontainers" {
        tree::copy(new, &mut restored, &["spec", "ephemeralContainers"]);
    } else {
        for kind in ["containers", "initContainers"] {
            let sent = tree::list(new, &["spec", kind]);
            let containers = tree::list_mut(&mut restored, &["spec", kind]);
            for (container, sent) in containers.into_iter().flatten().zip(sent) {
                for field in ["resources", "resizePolicy"] {
                    tree::copy(sent, container, &[field]);
                }
            }
        }
    }
    *new = restored;
}

/// Returns the `QoS` class of a pod: `Guaranteed` if the limits of every container equal its requests for cpu
/// and memory, `BestEffort` if no container has limits or requests, and `Burstable` otherwise.
#[must_use]
pub fn qos_class(pod: &Value) -> &'static str {
    let mut any = false;
    let mut guaranteed = true;
    let kinds = [["spec", "containers"], ["spec", "initContainers"]];
    for container in kinds.iter().flat_map(|path| tree::list(pod, path)) {
        for name in ["cpu", "memory"] {
            let amount = |kind: &str| {
                let text = tree::text(container, &["resources", kind, name]);
                quantity_millis(text).filter(|amount| *amount > 0)
            };
            let (requests, limits) = (amount("requests"), amount("limits"));
            any |= requests.is_some() || limits.is_some();
            guaranteed &= limits.is_some() && (requests.is_none() || requests == limits);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
