//! Fields that a write through a path never changes: takes a resource and the subresource written to, gives their paths.

use super::set::Set;
use crate::resource::{Resource, Shape};

/// Kinds whose status leaves the metadata alone.
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

/// The paths that nobody can own by writing here.
pub(super) fn reset_fields(resource: &Resource, subresource: &str) -> Set {
    let custom = matches!(resource.shape, Shape::Custom(_));
    match (&*resource.group, &*resource.plural, subresource) {
        ("certificates.k8s.io", "certificatesigningrequests", "") => Set::of(&[&["spec"], &["status"]]),
        ("certificates.k8s.io", "certificatesigningrequests", "status") => {
            Set::of(&[&["spec"], &["status", "conditions"]])
        }
        ("certificates.k8s.io", "certificatesigningrequests", "approval") => {
            Set::of(&[&["spec"], &["status", "certificate"]])
        }
        ("apps", "deployments", "status") => Set::of(&[&["spec"], &["metadata", "labels"]]),
        ("", "pods", "status") => Set::of(&[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ]),
        (_, plural, "status") if custom || STATUS_WITHOUT_METADATA.contains(&plural) => {
            Set::of(&[&["spec"], &["metadata"]])
        }
        (_, _, "status") => Set::of(&[&["spec"]]),
        _ if resource.subresource("status").is_some() => Set::of(&[&["status"]]),
        _ => Set::default(),
    }
}
