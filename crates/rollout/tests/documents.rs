//! Tests documents in forms other than ours, and errors with their positions.

use mainstay_api::delivery::{ApplicationDeployment, Cluster, Provider};
use mainstay_rollout::documents::parse_documents;

/// Both YAML documents of the proposal, byte for byte.
const PROPOSAL: &str = include_str!("documents/proposal.yaml");
/// A document that `KubeVela` 1.1 accepts.
const APP_DEPLOYMENT: &str = include_str!("documents/appdeployment.yaml");

#[test]
fn documents_of_the_proposal_are_parsed_unchanged() {
    let objects = parse_documents(PROPOSAL).unwrap();
    let [deployment, cluster] = objects.as_slice() else {
        panic!("{objects:?}");
    };
    assert_eq!(deployment.changes.len(), 2, "{:?}", deployment.changes);
    let typed: ApplicationDeployment = serde_json::from_value(deployment.object.clone()).unwrap();
    assert_eq!(typed.name(), "example-app-deploy");
    // A round trip through our types does not change the spec, so all its fields are known.
    assert_eq!(
        serde_json::to_value(&typed.spec).unwrap(),
        deployment.object["spec"]
    );
    let typed: Cluster = serde_json::from_value(cluster.object.clone()).unwrap();
    assert_eq!(typed.name(), "prod-cluster-1");
    assert_eq!(typed.metadata.labels["usage"], "production");
    assert_eq!(typed.spec.kubeconfig_secret_ref.name, "kubeconfig-cluster-1");
}

#[test]
fn kinds_of_kubevela_are_converted() {
    let objects = parse_documents(APP_DEPLOYMENT).unwrap();
    let deployment: ApplicationDeployment = serde_json::from_value(objects[0].object.clone()).unwrap();
    let traffic = deployment.spec.traffic.unwrap();
    assert_eq!(traffic.gateways, ["edge/public"]);
    assert_eq!(traffic.provider, None::<Provider>);
    let weights: Vec<Option<u32>> = traffic.http[0]
        .weighted_targets
        .iter()
        .map(|target| target.weight)
        .collect();
    assert_eq!(weights, [Some(100), Some(0)]);
    assert_eq!(
        objects[0].changes,
        [
            "core.oam.dev/v1beta1 AppDeployment is converted",
            "status is removed",
            "a missing weight is set to 0"
        ]
    );
    assert_eq!(objects[1].object["apiVersion"], "delivery.mainstay.dev/v1alpha1");
}

#[test]
fn errors_name_the_line_and_the_remedy() {
    let check = |text: &str, expected: &str| {
        assert_eq!(parse_documents(text).unwrap_err().to_string(), expected);
    };
    check(
        "a: b\n",
        "line 1, column 1: the document has no kind; add `kind: ApplicationDeployment`",
    );
    check(
        "---\nkind: Cluster\nspec: {}\n",
        "line 2, column 1: the object has no name; add `metadata.name`",
    );
    check(
        "metadata: {name: a}\nkind: Pod\napiVersion: v1\n",
        "line 2, column 7: v1 Pod is not known; use a kind of delivery.mainstay.dev/v1alpha1 or AppDeployment of core.oam.dev/v1beta1",
    );
    assert!(parse_documents("a: [").is_err());
    assert!(parse_documents(&" ".repeat(5 << 20)).is_err());
    assert!(parse_documents("---\n---\n").unwrap().is_empty());
}
