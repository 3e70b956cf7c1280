//! Reset fields: fields that a write to a resource or subresource does not change.

use super::set::Set;
use crate::resource::{Resource, Shape};

/// Resources with a status subresource that ignores metadata.
const STATUS_WITHOUT_METADATA: [&str; 10] = [
    "apiservices",
    "devicetaintrules",
    "flowschemas",
    "podgroups",
    "prioritylevelconfigurations",
    "resourceclaims",
    "resourcepoolstatusrequests",
    "servicecidrs",
    "storageversions",
    "volumeattachments",
];

/// Returns the paths that cannot be owned by a write to this subresource.
pub(super) fn reset_fields(resource: &Resource, subresource: &str) -> Set {
    let custom = matches!(resource.shape, Shape::Custom(_));
    match (&*resource.group, &*resource.plural, subresource) {
        ("certificates.k8s.io", "certificatesigningrequests", "") => {
            Set::from_field_paths(&[&["spec"], &["status"]])
        }
        ("certificates.k8s.io", "certificatesigningrequests", "status") => {
            Set::from_field_paths(&[&["spec"], &["status", "conditions"]])
        }
        ("certificates.k8s.io", "certificatesigningrequests", "approval") => {
            Set::from_field_paths(&[&["spec"], &["status", "certificate"]])
        }
        ("apps", "deployments", "status") => Set::from_field_paths(&[&["spec"], &["metadata", "labels"]]),
        ("", "pods", "status") => Set::from_field_paths(&[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ]),
        (_, plural, "status") if custom || STATUS_WITHOUT_METADATA.contains(&plural) => {
            Set::from_field_paths(&[&["spec"], &["metadata"]])
        }
        (_, _, "status") => Set::from_field_paths(&[&["spec"]]),
        _ if resource.subresource("status").is_some() => Set::from_field_paths(&[&["status"]]),
        _ => Set::default(),
    }
}
