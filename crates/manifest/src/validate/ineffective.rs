//! Reports fields that have no effect.

use mainstay_yaml::{Map, Value};

use super::Subject;
use super::rules::{for_each_gateway, spec_path};
use crate::addons::has_spec_field;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::path::Path;

/// Components with a field `spec`, apart from gateways.
const COMPONENTS: &[&str] = &["pilot", "cni", "ztunnel", "istiodRemote"];

/// Reports fields of `spec`, components and add-ons that have no effect.
pub(super) fn fields_without_effect(subject: &Subject<'_>, found: &mut Diagnostics) {
    if subject.spec(&["resourceSuffix"]).is_some() {
        let path = spec_path(&["resourceSuffix"]);
        found.push(warning(path).hint("use revision to run control planes side by side"));
    }
    let remote = subject.spec(&["components", "istiodRemote", "enabled"]);
    if remote.and_then(Value::as_bool) == Some(true) {
        let path = spec_path(&["components", "istiodRemote"]);
        let result = Diagnostic::error(path, "this component no longer exists");
        found.push(result.hint("use the profile \"remote\""));
    }
    for name in COMPONENTS {
        if subject.spec(&["components", name, "spec"]).is_some() {
            found.push(component_spec(&spec_path(&["components", name])));
        }
    }
    for_each_gateway(subject, |path, gateway, _| {
        if gateway.get("spec").is_some_and(|spec| !spec.is_null()) {
            found.push(component_spec(&path));
        }
    });
    let addons = subject.spec(&["addonComponents"]).and_then(Value::as_map);
    for (name, block) in addons.into_iter().flatten() {
        if let Some(block) = block.as_map() {
            addon_fields(name, block, found);
        }
    }
}

fn warning(path: Path) -> Diagnostic {
    Diagnostic::warning(path, "has no effect")
}

fn component_spec(component: &Path) -> Diagnostic {
    warning(component.key("spec")).hint("use k8s or spec.values")
}

fn addon_fields(name: &str, block: &Map, found: &mut Diagnostics) {
    let path = spec_path(&["addonComponents", name]);
    for field in ["chartPath", "schema"] {
        if block.get(field).is_some_and(|value| !value.is_null()) {
            let hint = "use k8s: add-ons are the manifests of the release, not charts";
            found.push(warning(path.key(field)).hint(hint));
        }
    }
    let spec = block.get("spec").and_then(Value::as_map);
    for (field, _) in spec.into_iter().flatten() {
        if !has_spec_field(name, field) {
            found.push(warning(path.key("spec").key(field)).hint("use k8s"));
        }
    }
}
