//! Limit ranges: defaults for the resources of containers, and bounds of containers, pods and claims.

use serde_json::Value;

use super::{Attributes, Operation};
use crate::quota::{self, Amounts};
use crate::schema::Quantity;
use crate::state::State;
use crate::status::{Result, Status};
use crate::tree;

const TABLE: &str = "limitranges";
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// Returns the limits of the namespace if they apply to this write, otherwise an empty list.
fn applicable_limits(state: &State, attributes: &Attributes<'_>) -> Vec<Value> {
    let resource = attributes.target.resource;
    let is_pod = resource.is("", "pods") && attributes.operation == Operation::Create;
    let is_claim = resource.is("", "persistentvolumeclaims")
        && matches!(attributes.operation, Operation::Create | Operation::Update);
    if !(is_pod || is_claim) {
        return Vec::new();
    }
    state
        .store
        .range(TABLE, attributes.target.namespace, None)
        .flat_map(|(_, object)| tree::list(&object.packed(), &["spec", "limits"]).to_vec())
        .collect()
}

/// Sets the default requests and limits of the containers of a new pod.
pub(super) fn set_defaults(state: &State, attributes: &Attributes<'_>, pod: &mut Value) {
    let mut notes = Vec::new();
    for limit in applicable_limits(state, attributes) {
        if tree::text(&limit, &["type"]) == "Container" {
            for (kind, title) in [("containers", "container"), ("initContainers", "init container")] {
                for container in tree::list_mut(pod, &["spec", kind]).into_iter().flatten() {
                    notes.extend(set_container_defaults(container, &limit, title));
                }
            }
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        tree::set(pod, &["metadata", "annotations", ANNOTATION], note);
    }
}

/// Sets the defaults of `limit` in one container. Returns one note per field with the resources that were
/// set, for the annotation.
fn set_container_defaults(container: &mut Value, limit: &Value, title: &str) -> Vec<String> {
    let name = tree::text(container, &["name"]).to_owned();
    let parts = [
        ("requests", "defaultRequest", "request"),
        ("limits", "default", "limit"),
    ];
    let mut notes = Vec::new();
    for (field, source, noun) in parts {
        let defaults = tree::map(limit, &[source]).into_iter().flatten();
        let set: Vec<&str> = defaults
            .filter(|(resource, amount)| {
                let path = ["resources", field, resource.as_str()];
                tree::set_default(container, &path, (*amount).clone())
            })
            .map(|(resource, _)| resource.as_str())
            .collect();
        if !set.is_empty() {
            notes.push(format!("{} {noun} for {title} {name}", set.join(", ")));
        }
    }
    notes
}

/// Rejects an object outside the limits of its namespace.
pub(super) fn check(state: &State, attributes: &Attributes<'_>, value: &Value) -> Result<()> {
    let is_pod = attributes.target.resource.is("", "pods");
    let mut errors: Vec<String> = Vec::new();
    for limit in applicable_limits(state, attributes) {
        match (tree::text(&limit, &["type"]), is_pod) {
            ("Container", true) => {
                for kind in ["containers", "initContainers"] {
                    for container in tree::list(value, &["spec", kind]) {
                        errors.extend(Requirements::for_container(container).violations(&limit));
                    }
                }
            }
            ("Pod", true) => errors.extend(Requirements::for_pod(value).violations(&limit)),
            ("PersistentVolumeClaim", false) => {
                errors.extend(Requirements::for_claim(value).violations(&limit));
            }
            _ => {}
        }
    }
    errors.dedup();
    let reason = match errors.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let name = tree::text(value, &["metadata", "name"]);
    Err(Status::forbidden(
        attributes.target.resource.qualified(),
        name,
        &reason,
    ))
}

/// Requests and limits of one container, pod or claim.
struct Requirements {
    requests: Amounts,
    limits: Amounts,
    /// Whether the object is a claim, which has requests but no limits.
    is_claim: bool,
}

impl Requirements {
    fn for_container(container: &Value) -> Self {
        Self {
            requests: quota::parse_amounts(tree::get(container, &["resources", "requests"])),
            limits: quota::parse_amounts(tree::get(container, &["resources", "limits"])),
            is_claim: false,
        }
    }

    fn for_pod(pod: &Value) -> Self {
        Self {
            requests: quota::pod_total(pod, "requests"),
            limits: quota::pod_total(pod, "limits"),
            is_claim: false,
        }
    }

    fn for_claim(claim: &Value) -> Self {
        Self {
            requests: quota::parse_amounts(tree::get(claim, &["spec", "resources", "requests"])),
            limits: Amounts::new(),
            is_claim: true,
        }
    }

    /// Returns the error messages for the bounds of `limit` that are violated.
    fn violations(&self, limit: &Value) -> Vec<String> {
        let kind = tree::text(limit, &["type"]);
        let part = |field: &str| quota::parse_amounts(limit.get(field));
        let mut errors = Vec::new();
        for (name, bound) in part("min") {
            errors.extend(self.check_minimum(
                &format!("minimum {name} usage per {kind} is {bound}"),
                &name,
                bound,
            ));
        }
        for (name, bound) in part("max") {
            errors.extend(self.check_maximum(
                &format!("maximum {name} usage per {kind} is {bound}"),
                &name,
                bound,
            ));
        }
        if !self.is_claim {
            for (name, bound) in part("maxLimitRequestRatio") {
                let text = format!("{name} max limit to request ratio per {kind} is {bound}");
                errors.extend(self.check_ratio(&text, &name, bound));
            }
        }
        errors
    }

    fn check_minimum(&self, text: &str, name: &str, bound: Quantity) -> Option<String> {
        let Some(request) = self.requests.get(name) else {
            return Some(format!("{text}.  No request is specified"));
        };
        if request.nanos() < bound.nanos() {
            return Some(format!("{text}, but request is {request}"));
        }
        let limit = self.limits.get(name)?;
        (limit.nanos() < bound.nanos()).then(|| format!("{text}, but limit is {limit}"))
    }

    fn check_maximum(&self, text: &str, name: &str, bound: Quantity) -> Option<String> {
        if !self.is_claim {
            let Some(limit) = self.limits.get(name) else {
                return Some(format!("{text}.  No limit is specified"));
            };
            if limit.nanos() > bound.nanos() {
                return Some(format!("{text}, but limit is {limit}"));
            }
        } else if !self.requests.contains_key(name) {
            return Some(format!("{text}.  No request is specified"));
        }
        let request = self.requests.get(name)?;
        (request.nanos() > bound.nanos()).then(|| format!("{text}, but request is {request}"))
    }

    fn check_ratio(&self, text: &str, name: &str, bound: Quantity) -> Option<String> {
        let amount = |amounts: &Amounts| amounts.get(name).map_or(0, |amount| amount.nanos());
        let (request, limit) = (amount(&self.requests), amount(&self.limits));
        if request == 0 {
            return Some(format!("{text}, but no request is specified or request is 0"));
        }
        if limit == 0 {
            return Some(format!("{text}, but no limit is specified or limit is 0"));
        }
        let allowed = request.saturating_mul(bound.nanos());
        if limit.saturating_mul(NANOS_PER_UNIT) <= allowed {
            return None;
        }
        let ratio = as_float(limit) / as_float(request);
        Some(format!("{text}, but provided ratio is {ratio:.6}"))
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "the ratio is printed with six decimals"
)]
fn as_float(number: i128) -> f64 {
    number as f64
}
