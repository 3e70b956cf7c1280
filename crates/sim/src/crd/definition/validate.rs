//! Validates a definition in the order of the real server. The server first moves parts that all versions
//! share to the top level, so paths depend on whether versions differ.

use serde_json::Value;

use super::{conversion, internal, is_condition_true, version};
use crate::field::{ErrorType, FieldErrors, Path};
use crate::show;
use crate::tree;
use crate::validation::meta::IMMUTABLE;
use crate::validation::names;

/// Validates a new or changed definition.
pub fn validate(definition: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    if old.is_none() {
        check_name(definition, errors);
    }
    check_spec(definition, errors);
    if let Some(old) = old {
        check_immutable_fields(definition, old, errors);
    }
    validate_status(definition, errors);
    check_stored_versions(definition, errors);
    check_approval(definition, old, errors);
    let preserve = ["spec", "preserveUnknownFields"];
    let before = old.is_some_and(|old| tree::flag(old, &preserve));
    if tree::flag(definition, &preserve) && !before {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.invalid(&Path::new("spec").child("preserveUnknownFields"), true, detail);
    }
}

/// Validates the status of a definition.
pub(crate) fn validate_status(definition: &Value, errors: &mut FieldErrors) {
    let names = tree::get(definition, &["status", "acceptedNames"])
        .cloned()
        .unwrap_or_default();
    check_names(&names, &Path::new("status").child("acceptedNames"), errors);
}

fn check_name(definition: &Value, errors: &mut FieldErrors) {
    let name = tree::text(definition, &["metadata", "name"]);
    let wanted = format!(
        "{}.{}",
        tree::text(definition, &["spec", "names", "plural"]),
        tree::text(definition, &["spec", "group"])
    );
    if name != wanted {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.invalid(&Path::new("metadata").child("name"), name, detail);
    }
}

fn check_group_and_scope(definition: &Value, path: &Path, errors: &mut FieldErrors) {
    let group = tree::text(definition, &["spec", "group"]);
    let wrong = names::subdomain(group, false);
    if group.is_empty() {
        errors.required(&path.child("group"), "");
    } else if !wrong.is_empty() {
        errors.invalid(&path.child("group"), group, wrong.join(","));
    } else if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        errors.invalid(&path.child("group"), group, detail);
    }
    match tree::text(definition, &["spec", "scope"]) {
        "" => errors.required(&path.child("scope"), ""),
        "Cluster" | "Namespaced" => {}
        other => errors.not_supported(&path.child("scope"), other, &["Cluster", "Namespaced"]),
    }
}

fn check_spec(definition: &Value, errors: &mut FieldErrors) {
    let path = Path::new("spec");
    check_group_and_scope(definition, &path, errors);
    let versions = tree::list(definition, &["spec", "versions"]);
    let parts = version::SharedParts::new(versions);
    let versions_path = path.child("versions");
    if !parts.has_top_schema() {
        for (at, one) in versions.iter().enumerate() {
            if version::root_schema(one).is_none() {
                let location = versions_path.index(at).child("schema").child("openAPIV3Schema");
                errors.required(&location, "");
            }
        }
    }
    for (at, one) in versions.iter().enumerate() {
        let location = versions_path.index(at);
        let name = tree::text(one, &["name"]);
        let wrong = names::label_1035(name, false);
        if !wrong.is_empty() {
            errors.invalid(&location.child("name"), name, wrong.join(","));
        }
        version::check_deprecation(one, &location, errors);
        parts.check_version(one, &location, errors);
    }
    check_version_list(versions, &parts, &path, errors);
    check_required_names(definition, &path.child("names"), errors);
    let names = tree::get(definition, &["spec", "names"])
        .cloned()
        .unwrap_or_default();
    check_names(&names, &path.child("names"), errors);
    parts.check_shared(versions, &path, errors);
    if let Some(conversion) = tree::get(definition, &["spec", "conversion"]) {
        conversion::check(conversion, &path.child("conversion"), errors);
    }
}

fn check_version_list(
    versions: &[Value],
    parts: &version::SharedParts,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let names: Vec<&str> = versions
        .iter()
        .map(|version| tree::text(version, &["name"]))
        .collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    let shown = || Some(internal::format_versions(versions, &|key| parts.is_shared(key)));
    let location = path.child("versions");
    if unique.len() != names.len() {
        errors.push_shown(
            ErrorType::Invalid,
            &location,
            shown(),
            "must contain unique version names",
        );
    }
    let stored = versions
        .iter()
        .filter(|version| tree::flag(version, &["storage"]))
        .count();
    if stored != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push_shown(ErrorType::Invalid, &location, shown(), detail);
    }
    if let Some(first) = names.first() {
        let wrong = names::label_1035(first, false);
        if !first.is_empty() && !wrong.is_empty() {
            errors.invalid(&path.child("version"), *first, wrong.join(","));
        }
    }
}

fn check_required_names(definition: &Value, path: &Path, errors: &mut FieldErrors) {
    for key in ["plural", "singular", "kind", "listKind"] {
        if tree::text(definition, &["spec", "names", key]).is_empty() {
            errors.required(&path.child(key), "");
        }
    }
}

fn check_names(named: &Value, path: &Path, errors: &mut FieldErrors) {
    for key in ["plural", "singular"] {
        let name = tree::text(named, &[key]);
        let wrong = names::label_1035(name, false);
        if !name.is_empty() && !wrong.is_empty() {
            errors.invalid(&path.child(key), name, wrong.join(","));
        }
    }
    for key in ["kind", "listKind"] {
        let name = tree::text(named, &[key]);
        let wrong = names::label_1035(&name.to_lowercase(), false);
        if !name.is_empty() && !wrong.is_empty() {
            let detail = format!(
                "may have mixed case, but should otherwise match: {}",
                wrong.join(",")
            );
            errors.invalid(&path.child(key), name, detail);
        }
    }
    check_labels(named, "shortNames", path, errors);
    let (kind, list) = (tree::text(named, &["kind"]), tree::text(named, &["listKind"]));
    if !kind.is_empty() && kind == list {
        errors.invalid(
            &path.child("listKind"),
            list,
            "kind and listKind may not be the same",
        );
    }
    check_labels(named, "categories", path, errors);
}

fn check_labels(named: &Value, key: &str, path: &Path, errors: &mut FieldErrors) {
    for (at, name) in tree::list(named, &[key]).iter().enumerate() {
        let name = name.as_str().unwrap_or("");
        let wrong = names::label_1035(name, false);
        if !wrong.is_empty() {
            errors.invalid(&path.child(key).index(at), name, wrong.join(","));
        }
    }
}

/// Rejects changes of immutable fields: of group and plural name always, of scope and kind after the
/// resource has been established.
fn check_immutable_fields(new: &Value, old: &Value, errors: &mut FieldErrors) {
    let established: &[&[&str]] = if is_condition_true(old, "Established") {
        &[&["scope"], &["names", "kind"]]
    } else {
        &[]
    };
    let always: &[&[&str]] = &[&["group"], &["names", "plural"]];
    for keys in established.iter().chain(always) {
        let location: Vec<&str> = ["spec"].into_iter().chain(keys.iter().copied()).collect();
        let now = tree::text(new, &location);
        if now != tree::text(old, &location) {
            errors.invalid(&Path::new(&location.join(".")), now, IMMUTABLE);
        }
    }
}

fn check_stored_versions(definition: &Value, errors: &mut FieldErrors) {
    let path = Path::new("status").child("storedVersions");
    let stored = tree::list(definition, &["status", "storedVersions"]);
    if stored.is_empty() {
        errors.push_shown(
            ErrorType::Invalid,
            &path,
            Some("null".into()),
            "must have at least one stored version",
        );
        return;
    }
    let versions = tree::list(definition, &["spec", "versions"]);
    for version in versions
        .iter()
        .filter(|version| tree::flag(version, &["storage"]))
    {
        let name = version.get("name").cloned().unwrap_or_default();
        if !stored.contains(&name) {
            let detail = format!("must have the storage version {}", name.as_str().unwrap_or(""));
            errors.push_shown(
                ErrorType::Invalid,
                &path,
                Some(show::json(&stored.to_vec().into())),
                detail,
            );
        }
    }
    for (at, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version.get("name") == Some(name)) {
            let name = name.as_str().unwrap_or("");
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.invalid(&path.index(at), name, detail);
        }
    }
}

const APPROVAL_ANNOTATION: &str = "api-approved.kubernetes.io";

/// Checks the approval annotation, which is required in the API groups of the Kubernetes project.
fn check_approval(definition: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let group = tree::text(definition, &["spec", "group"]);
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    let text =
        |value: &Value| tree::text(value, &["metadata", "annotations", APPROVAL_ANNOTATION]).to_owned();
    let approval_kind = |text: &str| match text {
        "" => 0,
        text if text.starts_with("unapproved") => 1,
        text if text
            .split_once("://")
            .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty()) =>
        {
            2
        }
        _ => 3,
    };
    let now = text(definition);
    if !is_protected || old.is_some_and(|old| approval_kind(&text(old)) == approval_kind(&now)) {
        return;
    }
    let path = Path::new("metadata")
        .child("annotations")
        .key(APPROVAL_ANNOTATION);
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match approval_kind(&now) {
        0 => errors.required(&path, format!("protected groups must have approval annotation {APPROVAL_ANNOTATION:?}, {see}")),
        3 => errors.invalid(
            &path,
            now,
            format!(
                "protected groups must have approval annotation {APPROVAL_ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", {see}"
            ),
        ),
        _ => {}
    }
}
