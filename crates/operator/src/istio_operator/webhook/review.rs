//! Validates an `IstioOperator` in the same way as `mainstay manifest validate`.

use mainstay_api::istio_operator::{ISTIO_VERSION, IstioOperator};
use mainstay_catalog::Catalog;
use mainstay_manifest::controller::{describe_errors, plan_operator};
use mainstay_manifest::{CatalogPackage, Package, Severity};
use serde_json::{Value, json};

use crate::istio_operator::planning::resolve_version;

/// Maximum length of a warning in characters. The API server truncates longer ones.
const MAX_WARNING: usize = 240;
/// Maximum number of warnings.
const MAX_WARNINGS: usize = 10;

/// Returns the `AdmissionReview` with the response to the request in `body`.
#[must_use]
pub fn review(catalog: &Catalog, body: &Value) -> Value {
    let request = body.get("request").unwrap_or(&Value::Null);
    let uid = request.get("uid").cloned().unwrap_or_default();
    let mut response = match validate(catalog, request) {
        Ok(warnings) => json!({"allowed": true, "warnings": warnings}),
        Err(message) => json!({
            "allowed": false,
            "status": {"code": 422, "reason": "Invalid", "message": message},
        }),
    };
    if let Value::Object(response) = &mut response {
        response.insert("uid".into(), uid);
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// Returns the warnings, or a message with all errors.
fn validate(catalog: &Catalog, request: &Value) -> Result<Vec<String>, String> {
    let object = request.get("object").unwrap_or(&Value::Null);
    let operator: IstioOperator = match serde_json::from_value(object.clone()) {
        Ok(operator) => operator,
        Err(error) => return Err(format!("cannot read the IstioOperator: {error}")),
    };
    if operator.metadata.is_deleting() || !is_changed(request, &operator) {
        return Ok(Vec::new());
    }
    let version = resolve_version(catalog, &operator).map_err(|error| format!("{ISTIO_VERSION}: {error}"))?;
    let source = CatalogPackage::new(catalog, version.clone());
    let package = Package {
        charts: &source,
        profiles: &source,
    };
    match plan_operator(&operator, package, &version, "") {
        Err(problems) => Err(describe_errors(&problems)),
        Ok((_, warnings)) => Ok(warnings
            .list()
            .iter()
            .filter(|one| one.severity == Severity::Warning)
            .take(MAX_WARNINGS)
            .map(|one| {
                format!("{}: {}", one.path, one.message)
                    .chars()
                    .take(MAX_WARNING)
                    .collect()
            })
            .collect()),
    }
}

/// Whether the configuration differs from the stored one. An unchanged configuration is not validated, so
/// that a stored resource stays writable.
fn is_changed(request: &Value, operator: &IstioOperator) -> bool {
    let old = request.get("oldObject").filter(|old| !old.is_null());
    let old = old.and_then(|old| serde_json::from_value::<IstioOperator>(old.clone()).ok());
    let version = |one: &IstioOperator| one.metadata.annotations.get(ISTIO_VERSION).cloned();
    old.is_none_or(|old| old.spec != operator.spec || version(&old) != version(operator))
}
