//! Tests the adoption of a mesh that the in-cluster operator of Istio 1.23 or older installed, with
//! labels that refer to its resource, the resource with a finalizer, and the operator's own Deployment.

use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use mainstay_api::crd::istio_operator_definition;
use mainstay_cluster::definitions::install;
use mainstay_cluster::kinds::{InstalledKind, installed_kinds};
use mainstay_testkit::CaseCounts;
use serde_json::{Value, json};

use super::support::{NAMESPACE, TestEnvironment};
use super::{check_content, check_equal, check_operator, check_restored, plan, workloads};

/// Namespace of the operator and its resource.
const OPERATOR_NAMESPACE: &str = "istio-operator";
/// Name of the resource.
const RESOURCE: &str = "example-istiocontrolplane";
/// Kind of the operator's resource.
const OPERATORS: InstalledKind = InstalledKind {
    group: "install.istio.io",
    version: "v1alpha1",
    kind: "IstioOperator",
    plural: "istiooperators",
    namespaced: true,
};
/// Kind of the operator's workload.
const DEPLOYMENTS: InstalledKind = InstalledKind {
    group: "apps",
    version: "v1",
    kind: "Deployment",
    plural: "deployments",
    namespaced: true,
};
/// Finalizer of the in-cluster operator.
const FINALIZER: &str = "istio-finalizer.install.istio.io";
/// Setting of the installation, used as a flag of istioctl and in the resource.
const AUTOSCALE_MIN: u32 = 2;
/// Another setting, which no field of a live object contains as such.
const LOG_AS_JSON: &str = "values.global.logAsJson=true";
/// Kind of the record of a chart's values.
const CONFIG_MAPS: InstalledKind = InstalledKind {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    namespaced: true,
};

/// Adopts the mesh, undoes the adoption, adopts the mesh again, and removes the old operator as the plan
/// instructs.
pub(crate) async fn installations_are_adopted_and_restored() {
    let mut counts = CaseCounts::default();
    let name = "in-cluster operator";
    let environment = TestEnvironment::start().await;
    let setting = format!("values.pilot.autoscaleMin={AUTOSCALE_MIN}");
    let sets = [
        "--set",
        "profile=default",
        "--set",
        &setting,
        "--set",
        LOG_AS_JSON,
    ];
    environment.istioctl_install(&sets);
    environment.transfer_to_in_cluster_operator().await;
    environment.blank_recorded_values().await;
    let before = environment.state().await;
    let session = environment.session().await;
    let adoption = plan(&session).await;
    check_equal(&mut counts, &adoption, name);
    let plane = &adoption.plans.first().unwrap().component;
    let from = format!("IstioOperator {OPERATOR_NAMESPACE}/{RESOURCE}");
    counts.count(plane.values_from == from, || {
        format!("values from {:?}", plane.values_from)
    });
    let resource = format!("IstioOperator {OPERATOR_NAMESPACE}/{RESOURCE}");
    let left = adoption.skipped.iter().find(|left| left.what == resource);
    counts.count(left.is_some_and(|left| left.reason.contains("finalizer")), || {
        format!("{resource} is not reported: {:#?}", adoption.skipped)
    });
    let applied = session.apply(&adoption).await;
    let applied = applied.unwrap_or_else(|error| panic!("{error}"));
    assert!(applied.objects > 10, "{applied:?}");
    check_content(&mut counts, (&before, &environment.state().await), name);
    let undone = session.undo(NAMESPACE).await;
    undone.unwrap_or_else(|error| panic!("{error}"));
    check_restored(&mut counts, (&before, &environment.state().await), name);
    let adoption = plan(&session).await;
    let applied = session.apply(&adoption).await;
    applied.unwrap_or_else(|error| panic!("{error}"));
    environment.remove_in_cluster_operator().await;
    check_operator(&mut counts, &environment, &adoption, name).await;
    check_content(
        &mut counts,
        (&workloads(&before), &environment.state().await),
        name,
    );
    let (observed, _) = session.observe().await.unwrap_or_else(|error| panic!("{error}"));
    counts.count(observed.operators.is_empty(), || {
        format!("{resource} still exists: {:#?}", observed.operators)
    });
    println!("adopted from the in-cluster operator: {counts}");
    assert!(counts.differences.is_empty(), "{}", counts.differences.join("\n"));
}

impl TestEnvironment {
    /// Makes the installation look like one of the operator: adds the operator's labels to every object
    /// that istioctl installed, and creates the operator's resource and Deployment.
    async fn transfer_to_in_cluster_operator(&self) {
        let definition = [istio_operator_definition()];
        install(&self.client, &definition, |_, _| {}).await.unwrap();
        self.create_namespace(OPERATOR_NAMESPACE).await;
        let patch = json!({"metadata": {"labels": {
            "install.operator.istio.io/owning-resource": RESOURCE,
            "install.operator.istio.io/owning-resource-namespace": OPERATOR_NAMESPACE,
        }}});
        let managed = ListParams::default().labels("operator.istio.io/managed");
        for kind in installed_kinds() {
            let all = self.api(kind.group, kind.version, kind.kind, kind.plural);
            let Ok(list) = all.list(&managed).await else {
                continue;
            };
            for object in list.items {
                let metadata = object.metadata;
                let api = self.api_in(&kind, metadata.namespace.as_deref());
                let parameters = PatchParams {
                    field_manager: Some("istio-operator".to_owned()),
                    ..PatchParams::default()
                };
                api.patch(&metadata.name.unwrap(), &parameters, &Patch::Merge(&patch))
                    .await
                    .unwrap();
            }
        }
        for (kind, object) in [(OPERATORS, resource()), (DEPLOYMENTS, deployment())] {
            let api = self.api_in(&kind, Some(OPERATOR_NAMESPACE));
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    }

    /// Removes the values from their record, so that only the operator's resource contains them.
    async fn blank_recorded_values(&self) {
        let records = self.api_in(&CONFIG_MAPS, Some(NAMESPACE));
        let blank = Patch::Merge(json!({"data": null}));
        let patched = records.patch("values", &PatchParams::default(), &blank).await;
        patched.unwrap();
    }

    /// Removes the operator as the plan instructs: stops it, removes the finalizer and deletes the
    /// resource.
    async fn remove_in_cluster_operator(&self) {
        let deployments = self.api_in(&DEPLOYMENTS, Some(OPERATOR_NAMESPACE));
        let scaled = Patch::Merge(json!({"spec": {"replicas": 0}}));
        let parameters = PatchParams::default();
        deployments
            .patch("istio-operator", &parameters, &scaled)
            .await
            .unwrap();
        let resources = self.api_in(&OPERATORS, Some(OPERATOR_NAMESPACE));
        let released = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        resources.patch(RESOURCE, &parameters, &released).await.unwrap();
        resources
            .delete(RESOURCE, &DeleteParams::default())
            .await
            .unwrap();
    }
}

fn resource() -> Value {
    json!({
        "apiVersion": "install.istio.io/v1alpha1",
        "kind": "IstioOperator",
        "metadata": {"name": RESOURCE, "namespace": OPERATOR_NAMESPACE, "finalizers": [FINALIZER]},
        "spec": {"profile": "default", "values": {
            "global": {"logAsJson": true},
            "pilot": {"autoscaleMin": AUTOSCALE_MIN},
        }},
    })
}

/// Returns the Deployment that `istioctl operator init` installed. No controller runs in this cluster.
fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "istio-operator", "namespace": OPERATOR_NAMESPACE},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"name": "istio-operator"}},
            "template": {
                "metadata": {"labels": {"name": "istio-operator"}},
                "spec": {"containers": [{"name": "istio-operator", "image": "docker.io/istio/operator:1.23.0"}]},
            },
        },
    })
}
