//! Tests that a model is reconstructed from a status.

use mainstay_api::delivery::{
    ActionVerb, ClusterSpec, DeploymentPhase, Provider, RenderedComponent, RevisionSpec,
};
use mainstay_rollout::manifest::Role;
use mainstay_rollout::model::{FixedBehavior, TimelineOptions, timeline};
use serde_json::json;

use super::*;

fn revision(name: &str) -> ApplicationRevision {
    let component = RenderedComponent {
        name: "web".into(),
        manifests: vec![json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"template": {"spec": {"containers": [{"name": "web", "image": name}]}}},
        })],
    };
    let spec = RevisionSpec {
        application_name: "shop".into(),
        revision: 1,
        hash: name.into(),
        components: vec![component],
    };
    ApplicationRevision::new("default", name, spec)
}

fn spec(revision: &str) -> ApplicationDeploymentSpec {
    let in_cluster = |name: &str| json!({"clusterSelector": {"name": name}, "distribution": {"replicas": 4}});
    let waves = ["a", "b"].map(|name| json!({"name": name, "clusterSelector": {"name": name}}));
    let spec = json!({
        "traffic": {"hosts": ["shop.example.com"], "http": [{"name": "web", "weightedTargets": [
            {"revisionName": revision, "componentName": "web", "port": 80, "weight": 100},
        ]}]},
        "appRevisions": [{"revisionName": revision, "placement": [in_cluster("a"), in_cluster("b")]}],
        "strategy": {
            "type": "Canary",
            "steps": [{"setWeight": 50}, {"pause": {}}],
            "waves": waves,
        },
    });
    serde_json::from_value(spec).unwrap()
}

fn settle(model: &mut Model) {
    let options = TimelineOptions {
        limit: SignedDuration::from_hours(1),
        promotes: false,
    };
    for cluster in model.clusters.values_mut() {
        cluster.providers.insert(Provider::Istio);
    }
    timeline(model, &mut FixedBehavior::default(), options);
}

/// Returns a model in which the cluster `a` has completed the change to v2, and `b` is at the pause.
fn second_wave() -> Model {
    let deployment = ApplicationDeployment::new("default", "shop", spec("shop-v1"));
    let mut model = Model::new(Timestamp::from_second(1_800_000_000).unwrap(), deployment);
    for name in ["shop-v1", "shop-v2"] {
        model.revisions.insert(name.into(), Arc::new(revision(name)));
    }
    for name in ["", "a", "b"] {
        model.clusters.insert(name.into(), ModelCluster::default());
    }
    settle(&mut model);
    model.set_spec(spec("shop-v2"));
    settle(&mut model);
    model.request(ActionVerb::Promote);
    settle(&mut model);
    assert_eq!(model.deployment.status.phase, DeploymentPhase::Paused);
    model
}

/// Replicas of workloads and weights of routes by cluster and name.
fn state(model: &Model) -> Vec<String> {
    let clusters = model.clusters.iter();
    let objects = clusters.flat_map(|(name, cluster)| {
        cluster
            .objects
            .iter()
            .map(move |(key, object)| (name, key, object))
    });
    let shown = objects.filter_map(|(cluster, key, object)| match Role::for_kind(&key.kind) {
        Role::Workload => Some(format!("{cluster} {}: {}", key.name, object.observed.replicas)),
        Role::Route => Some(format!("{cluster} {}: {:?}", key.name, object.effective)),
        Role::Support => None,
    });
    shown.collect()
}

/// Returns the model that is reconstructed from the status of another one.
fn reconstruct(model: &Model, cluster: &ClusterSpec) -> Model {
    let stored = Stored {
        deployment: model.deployment.clone(),
        revisions: model.revisions.values().map(|one| (**one).clone()).collect(),
        clusters: ["a", "b"]
            .map(|name| Cluster::new("default", name, cluster.clone()))
            .into(),
        templates: Vec::new(),
    };
    let mut scenario = stored.scenario(None, model.now);
    assert_eq!(scenario.notes, Vec::<String>::new());
    scenario.next.take().unwrap().prepare(&mut scenario.model, settle);
    scenario.model
}

#[test]
fn clusters_with_different_weights_start_with_their_own() {
    let model = second_wave();
    let expected = [
        r#"a shop: {"shop-v2": 100}"#,
        "a shop-v2-web: 4",
        r#"b shop: {"shop-v1": 50, "shop-v2": 50}"#,
        "b shop-v1-web: 4",
        "b shop-v2-web: 2",
    ];
    assert_eq!(state(&model), expected);
    assert_eq!(state(&reconstruct(&model, &ClusterSpec::default())), expected);
}

#[test]
fn an_unschedulable_cluster_keeps_its_workloads() {
    let model = second_wave();
    let cluster = ClusterSpec {
        unschedulable: true,
        ..ClusterSpec::default()
    };
    let found = reconstruct(&model, &cluster);
    assert_eq!(state(&found), state(&model));
    assert!(found.clusters["a"].is_unschedulable);
}
