//! Stored `IstioOperator`s: resources of the in-cluster operator, and the records of `istioctl install`.
//! Pure.

use mainstay_api::istio_operator::OWNER_LABEL;
use mainstay_api::{Values, names};
use mainstay_catalog::{Catalog, Version};
use mainstay_cluster::deploy::document;
use mainstay_cluster::installer::{label, text};
use mainstay_manifest::{CatalogPackage, InputFile, Request, translated_configuration};
use serde_json::{Value, json};

/// Label with the namespace of the `IstioOperator` from which an object was rendered.
const OWNER_NAMESPACE_LABEL: &str = "install.operator.istio.io/owning-resource-namespace";
/// Prefix of the names of records: `installed-state`, `installed-state-REVISION`,
/// `installed-state-NAME-REVISION`.
const RECORD: &str = "installed-state";

/// Whether a stored `IstioOperator` is a record of `istioctl install`, which no controller reconciles.
pub(crate) fn is_record(operator: &Value) -> bool {
    let rest = text(operator, "/metadata/name").strip_prefix(RECORD);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns the stored `IstioOperator` from which a control plane was rendered: that of its labels, or
/// else the record of its revision.
pub(crate) fn find_operator<'a>(operators: &'a [Value], plane: &Value, revision: &str) -> Option<&'a Value> {
    let (name, namespace) = (label(plane, OWNER_LABEL), label(plane, OWNER_NAMESPACE_LABEL));
    let is_owner = |operator: &&Value| {
        text(operator, "/metadata/name") == name
            && (namespace.is_empty() || text(operator, "/metadata/namespace") == namespace)
    };
    let is_own_record = |operator: &&Value| {
        is_record(operator)
            && text(operator, "/metadata/namespace") == text(plane, "/metadata/namespace")
            && record_revision(operator) == revision
    };
    let mut operators = operators.iter();
    let owner = operators.clone().find(is_owner);
    owner.or_else(|| operators.find(is_own_record))
}

fn record_revision(operator: &Value) -> &str {
    match text(operator, "/spec/revision") {
        "" => names::DEFAULT_REVISION,
        revision => revision,
    }
}

/// Returns the values of the charts that an `IstioOperator` sets, including those of its profile; `None`
/// if the profile does not exist in this version.
pub(crate) fn operator_values(operator: &Value, catalog: &Catalog, version: &Version) -> Option<Values> {
    let spec = json!({
        "apiVersion": operator.get("apiVersion").cloned().unwrap_or_else(|| "install.istio.io/v1alpha1".into()),
        "kind": "IstioOperator",
        "spec": operator.get("spec"),
    });
    let package = CatalogPackage::new(catalog, version.clone());
    let mut request = Request::new(&package);
    request.files = vec![InputFile {
        name: describe(operator),
        text: document(&spec).ok()?.into_bytes(),
    }];
    let operator = translated_configuration(&request).ok()?;
    let operator = Value::from(mainstay_yaml::Value::Map(operator));
    operator.pointer("/spec/values")?.as_object().cloned()
}

/// Returns kind, namespace and name of a stored `IstioOperator`.
pub(crate) fn describe(operator: &Value) -> String {
    let (namespace, name) = (
        text(operator, "/metadata/namespace"),
        text(operator, "/metadata/name"),
    );
    format!("IstioOperator {namespace}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(namespace: &str, name: &str, revision: &str) -> Value {
        json!({"metadata": {"namespace": namespace, "name": name}, "spec": {"revision": revision}})
    }

    #[track_caller]
    fn check(labels: &Value, revision: &str, expected: Option<&str>) {
        let operators = [
            operator("istio-system", "installed-state", ""),
            operator("istio-system", "installed-state-mesh-canary", "canary"),
            operator("other", "installed-state-prod", "prod"),
            operator("istio-operator", "mesh", ""),
            operator("other", "mesh", ""),
        ];
        let plane = json!({"metadata": {"namespace": "istio-system", "labels": labels}});
        let found = find_operator(&operators, &plane, revision).map(describe);
        assert_eq!(found.as_deref(), expected, "{labels} {revision}");
    }

    #[test]
    fn an_operator_is_found_by_its_labels_or_as_a_record() {
        let owner = json!({OWNER_LABEL: "mesh", OWNER_NAMESPACE_LABEL: "other"});
        check(&owner, "default", Some("IstioOperator other/mesh"));
        check(
            &json!({OWNER_LABEL: "mesh"}),
            "default",
            Some("IstioOperator istio-operator/mesh"),
        );
        let unknown = json!({OWNER_LABEL: "unknown"});
        check(
            &unknown,
            "default",
            Some("IstioOperator istio-system/installed-state"),
        );
        check(
            &json!({}),
            "canary",
            Some("IstioOperator istio-system/installed-state-mesh-canary"),
        );
        check(&json!({}), "prod", None);
    }

    #[test]
    fn only_records_have_the_prefix() {
        assert!(is_record(&operator("a", "installed-state", "")));
        assert!(is_record(&operator("a", "installed-state-canary", "")));
        assert!(!is_record(&operator("a", "installed-states", "")));
    }

    #[test]
    fn values_contain_fields_and_the_profile() {
        let catalog = Catalog::embedded().unwrap();
        let version: Version = "1.29.1".parse().unwrap();
        let mut stored = operator("istio-system", "installed-state", "canary");
        stored["spec"]["profile"] = "ambient".into();
        stored["spec"]["tag"] = "1.29.1-debug".into();
        stored["spec"]["meshConfig"] = json!({"accessLogFile": "/dev/stdout"});
        let values = operator_values(&stored, &catalog, &version).unwrap();
        assert_eq!(values["profile"], "ambient");
        assert_eq!(values["revision"], "canary");
        assert_eq!(values["global"]["tag"], "1.29.1-debug");
        assert_eq!(values["meshConfig"]["accessLogFile"], "/dev/stdout");
        stored["spec"]["profile"] = "missing".into();
        assert_eq!(operator_values(&stored, &catalog, &version), None);
    }
}
