//! Validates an `IstioOperator` in the same way as `mainstay manifest validate`.

use mainstay_api::istio_operator::{ISTIO_VERSION, IstioOperator};
use mainstay_catalog::Catalog;
use mainstay_manifest::controller::{describe_errors, plan_operator};
use mainstay_manifest::{CatalogPackage, Diagnostics, Package, Severity};
use serde_json::{Value, json};

use crate::istio_operator::planning::{VersionError, resolve_version};

/// Reason why an `IstioOperator` is rejected.
#[derive(Debug, thiserror::Error)]
enum ReviewError {
    #[error("cannot read the IstioOperator: {0}")]
    Decode(#[from] serde_json::Error),
    #[error(transparent)]
    Version(#[from] VersionError),
    #[error("{}", describe_errors(.0))]
    Invalid(Diagnostics),
}

/// Maximum length of a warning in characters. The API server truncates longer ones.
const MAX_WARNING: usize = 240;
const MAX_WARNINGS: usize = 10;

/// Returns the `AdmissionReview` with the response to the request in `body`.
#[must_use]
pub fn review(catalog: &Catalog, body: &Value) -> Value {
    let request = body.get("request").unwrap_or(&Value::Null);
    let uid = request.get("uid").cloned().unwrap_or_default();
    let mut response = match validate(catalog, request) {
        Ok(warnings) => json!({"allowed": true, "warnings": warnings}),
        Err(error) => json!({
            "allowed": false,
            "status": {"code": 422, "reason": "Invalid", "message": error.to_string()},
        }),
    };
    if let Value::Object(response) = &mut response {
        response.insert("uid".into(), uid);
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

/// Returns the warnings, or the reason of the rejection.
fn validate(catalog: &Catalog, request: &Value) -> Result<Vec<String>, ReviewError> {
    let object = request.get("object").unwrap_or(&Value::Null);
    let operator: IstioOperator = serde_json::from_value(object.clone())?;
    if operator.metadata.is_deleting() || !is_changed(request, &operator) {
        return Ok(Vec::new());
    }
    let version = resolve_version(catalog, &operator)?;
    let source = CatalogPackage::new(catalog, version.clone());
    let package = Package {
        charts: &source,
        profiles: &source,
    };
    let planned = plan_operator(&operator, package, &version, "");
    let (_, warnings) = planned.map_err(ReviewError::Invalid)?;
    Ok(describe_warnings(&warnings))
}

fn describe_warnings(diagnostics: &Diagnostics) -> Vec<String> {
    let all = diagnostics.list().iter();
    all.filter(|one| one.severity == Severity::Warning)
        .take(MAX_WARNINGS)
        .map(|one| format!("{}: {}", one.path, one.message))
        .map(|text| text.chars().take(MAX_WARNING).collect())
        .collect()
}

/// Whether the configuration differs from the stored one. An unchanged configuration is not validated, so
/// that a stored resource stays writable.
fn is_changed(request: &Value, operator: &IstioOperator) -> bool {
    let old = request.get("oldObject").filter(|old| !old.is_null());
    let old = old.and_then(|old| serde_json::from_value::<IstioOperator>(old.clone()).ok());
    let version = |one: &IstioOperator| one.metadata.annotations.get(ISTIO_VERSION).cloned();
    old.is_none_or(|old| old.spec != operator.spec || version(&old) != version(operator))
}
