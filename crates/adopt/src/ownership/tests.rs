//! Tests ownership changes of a Deployment: ownership labels, preserved labels, and restoring the
//! original.

use super::*;

fn live() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "istiod", "namespace": "istio-system", "resourceVersion": "7",
            "labels": {"app": "istiod", "release": "istiod", "operator.istio.io/version": "1.29.1"},
            "managedFields": [{
                "manager": "helm", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:template": {"f:metadata": {"f:labels": {
                    "f:app.kubernetes.io/instance": {},
                }}}}},
            }],
        },
        "spec": {"template": {"metadata": {"labels": {"app.kubernetes.io/instance": "istiod"}}}},
    })
}

fn wanted() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "istiod", "namespace": "istio-system",
            "labels": {"app": "istiod", "release": "default-istiod", "managed-by": "sail-operator"},
            "annotations": {HELM_NAME: "default-istiod", HELM_NAMESPACE: "istio-system"},
            "ownerReferences": [{"kind": "IstioRevision", "name": "default", "uid": "u1"}],
        },
        "spec": {"template": {"metadata": {"labels": {"app.kubernetes.io/instance": "default-istiod"}}}},
    })
}

fn adopted() -> OwnershipChange {
    adopt(&ObjectId::from_object(&live()).unwrap(), &live(), &wanted())
}

#[test]
fn only_metadata_changes() {
    let owned = adopted();
    assert_eq!(owned.object["spec"], live()["spec"]);
    let labels = json!({"app": "istiod", "release": "default-istiod", "managed-by": "sail-operator"});
    assert_eq!(owned.object["metadata"]["labels"], labels);
    let paths: Vec<String> = owned
        .patch
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["path"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        paths.iter().all(|path| path.starts_with("/metadata/")),
        "{paths:?}"
    );
}

#[test]
fn ownership_of_a_kept_label_moves_to_the_adoption() {
    let owned = adopted();
    let entries = owned.object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["manager"], ADOPTED_MANAGER);
}

#[test]
fn a_second_adoption_changes_nothing() {
    let once = adopted().object;
    let again = adopt(&ObjectId::from_object(&once).unwrap(), &once, &wanted());
    assert_eq!(again.patch, None);
}

/// Returns a copy of the object with a JSON patch of its metadata applied.
fn patched(object: &Value, patch: Option<Value>) -> Value {
    let mut object = object.clone();
    for change in patch.unwrap().as_array().unwrap() {
        let name = change["path"].as_str().unwrap().trim_start_matches("/metadata/");
        let metadata = object["metadata"].as_object_mut().unwrap();
        match change["op"].as_str().unwrap() {
            "remove" => metadata.remove(name),
            _ => metadata.insert(name.to_owned(), change["value"].clone()),
        };
    }
    object
}

#[test]
fn restore_returns_the_original_object() {
    let owned = adopted();
    let object = patched(
        &owned.object,
        restore(&owned.object, &owned.original, &["u1".to_owned()]),
    );
    assert_ne!(object, live());
    assert_eq!(
        patched(&object, restore_records(&object, &owned.original)),
        live()
    );
}

#[test]
fn annotations_of_a_deployment_are_not_changed() {
    let annotations = &adopted().object["metadata"]["annotations"];
    assert!(annotations.is_null(), "{annotations}");
    let service = |object: Value| {
        let mut object = object;
        object["kind"] = "Service".into();
        object
    };
    let live = service(live());
    let owned = adopt(&ObjectId::from_object(&live).unwrap(), &live, &service(wanted()));
    assert_eq!(
        owned.object["metadata"]["annotations"][HELM_NAME],
        "default-istiod"
    );
}

#[test]
fn managed_fields_of_other_managers_and_the_label_are_kept() {
    let mut object = live();
    object["metadata"]["managedFields"][0]["manager"] = "kubectl".into();
    let owned = adopt(&ObjectId::from_object(&object).unwrap(), &object, &wanted());
    let entries = owned.object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries[0], object["metadata"]["managedFields"][0]);
    assert_eq!(entries[1]["manager"], ADOPTED_MANAGER);
}

#[test]
fn helm_becomes_the_manager_of_transferred_fields() {
    let mut object = live();
    let entry = |manager: &str, operation: &str, field: &str| {
        json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {field: {}}}})
    };
    let status = json!({"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {}}, "subresource": "status"});
    object["metadata"]["managedFields"] = json!([
        entry("istio-operator", "Apply", "f:replicas"),
        entry(MANAGER, "Apply", "f:strategy"),
        entry("kubectl", "Update", "f:paused"),
        status.clone(),
    ]);
    let id = ObjectId::from_object(&object).unwrap();
    let mut wanted = wanted();
    wanted["spec"] = object["spec"].clone();
    let owned = transfer_to_helm(&id, &object, &wanted);
    let mut fields = entry("helm", "Update", "f:replicas");
    fields["fieldsV1"]["f:spec"]["f:strategy"] = json!({});
    let expected = json!([entry("kubectl", "Update", "f:paused"), status, fields]);
    assert_eq!(owned.object["metadata"]["managedFields"], expected);
    let restored = restore_records(&owned.object, &owned.original).unwrap();
    let entries = &restored[0]["value"];
    assert_eq!(entries[0], object["metadata"]["managedFields"][0]);
}
