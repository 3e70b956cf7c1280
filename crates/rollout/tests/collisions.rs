//! Tests names that several components or revisions of one deployment need.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    dead_code,
    reason = "helpers of tests"
)]

#[path = "simulation/model.rs"]
mod model;
#[path = "simulation/shop.rs"]
mod shop;

use std::sync::Arc;

use mainstay_api::delivery::{
    ApplicationRevision, DeploymentPhase, Provider, RenderedComponent, RevisionSpec,
};
use mainstay_api::{ConditionType, Reason};
use model::World;
use serde_json::{Value, json};
use shop::{objects, replicas};

/// Returns a spec without traffic.
fn placed(revisions: &[&str]) -> Value {
    let entry = |name: &&str| json!({"revisionName": name, "placement": [{"distribution": {"replicas": 2}}]});
    let revisions: Value = revisions.iter().map(entry).collect();
    json!({"appRevisions": revisions})
}

/// A component and its Deployments.
type Component<'a> = (&'a str, &'a [&'a str]);
/// A revision and its components.
type Revision<'a> = (&'a str, &'a [Component<'a>]);

/// Returns a world with revisions.
fn world(spec: Value, revisions: &[Revision<'_>]) -> World {
    let deployment = |name: &&str| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry/main"}]}}},
        })
    };
    let component = |(name, deployments): &(&str, &[&str])| RenderedComponent {
        name: (*name).to_owned(),
        manifests: deployments.iter().map(deployment).collect(),
    };
    let mut world = World::new(11, spec, &[""]);
    world.components = 1;
    for (name, components) in revisions {
        let spec = RevisionSpec {
            application_name: "shop".into(),
            components: components.iter().map(component).collect(),
            ..RevisionSpec::default()
        };
        let revision = Arc::new(ApplicationRevision::new("default", name, spec));
        world.revisions.insert((*name).to_owned(), revision);
    }
    world
}

/// Runs until nothing is left to do and returns the message of the reported conflict.
fn conflict(world: &mut World) -> String {
    assert!(world.run_until_idle(300));
    let ready = world.deployment.status.conditions.get(&ConditionType::Ready);
    assert_eq!(ready.reason, Reason::NameConflict, "{ready:?}");
    ready.message.clone()
}

const REVISIONS: &[Revision<'_>] = &[
    ("a", &[("b-c", &["main"])]),
    ("a-b", &[("c", &["main"])]),
    ("x", &[("c", &["main"])]),
];

#[test]
fn revisions_with_equal_names_are_reported_and_not_applied() {
    let mut world = world(placed(&["a", "a-b"]), REVISIONS);
    assert_eq!(
        conflict(&mut world),
        "component \"b-c\" of revision \"a\" and component \"c\" of revision \"a-b\" both need \
         Deployment default/a-b-c: rename a revision, a component or an object"
    );
    assert!(world.clusters[""].objects.is_empty());
    assert!(world.clusters[""].inventory.objects.is_empty());
}

/// A revision does not take over the objects of a running one. It can replace it if another revision runs
/// in between.
#[test]
fn a_revision_with_the_names_of_a_running_one_is_not_applied() {
    let mut world = world(placed(&["a"]), REVISIONS);
    assert!(world.run_until_idle(300));
    let before = objects(&world, "", "Deployment");
    world.set_spec(placed(&["a-b"]));
    assert!(conflict(&mut world).contains("Deployment default/a-b-c"));
    assert_eq!(objects(&world, "", "Deployment"), before);
    for name in ["x", "a-b"] {
        world.set_spec(placed(&[name]));
        assert!(world.run_until_idle(300));
        assert_eq!(world.deployment.status.phase, DeploymentPhase::Healthy, "{name}");
        assert_eq!(replicas(&world, "", name), 2);
    }
    world.check_inventories();
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
}

#[test]
fn components_with_equal_names_are_reported_and_not_applied() {
    let components: &[(&str, &[&str])] = &[("web", &["web", "api"]), ("web-api", &["web-api"])];
    let mut world = world(placed(&["r"]), &[("r", components)]);
    assert_eq!(
        conflict(&mut world),
        "component \"web\" of revision \"r\" and component \"web-api\" of revision \"r\" both need \
         Deployment default/r-web-api: rename a revision, a component or an object"
    );
    assert!(world.clusters[""].objects.is_empty());
}

#[test]
fn equal_names_in_one_component_are_reported() {
    let mut world = world(placed(&["r"]), &[("r", &[("web", &["web", "web"])])]);
    assert_eq!(
        conflict(&mut world),
        "component \"web\" of revision \"r\" needs Deployment default/r-web-web twice: rename an object"
    );
    assert!(world.clusters[""].objects.is_empty());
}

fn with_traffic(mut spec: Value, hosts: &[&str], targets: &[(&str, &str)]) -> Value {
    let target = |(revision, component): &(&str, &str)| json!({"revisionName": revision, "componentName": component, "port": 80});
    let targets: Value = targets.iter().map(target).collect();
    spec["traffic"] = json!({"hosts": hosts, "http": [{"weightedTargets": targets}]});
    spec
}

/// Services exist for components with traffic only, so two revisions can run until both get traffic.
#[test]
fn services_with_equal_names_are_reported_and_not_applied() {
    let revisions: &[Revision<'_>] = &[
        ("a", &[("b", &["main"]), ("x", &["main"])]),
        ("a-b", &[("c", &["main"])]),
    ];
    let spec = placed(&["a", "a-b"]);
    let mut world = world(spec.clone(), revisions);
    assert!(world.run_until_idle(300));
    assert_eq!(world.deployment.status.phase, DeploymentPhase::Healthy);
    let before = objects(&world, "", "Deployment");
    assert_eq!(before.len(), 3);
    world.set_spec(with_traffic(
        spec,
        &["shop.example.com"],
        &[("a", "b"), ("a-b", "c")],
    ));
    assert_eq!(
        conflict(&mut world),
        "component \"b\" of revision \"a\" and component \"c\" of revision \"a-b\" both need \
         Service default/a-b: rename a revision, a component or an object"
    );
    assert_eq!(objects(&world, "", "Service"), [""; 0]);
    assert_eq!(objects(&world, "", "Deployment"), before);
}

/// The Service for all revisions of component `web` is named `shop-web`, like that of revision `shop-web`.
/// It is needed when the first pod is available.
#[test]
fn a_service_of_the_routes_does_not_replace_that_of_a_revision() {
    let spec = with_traffic(placed(&["shop-web"]), &[], &[("shop-web", "web")]);
    let mut world = world(spec, &[("shop-web", &[("web", &["main"])])]);
    world.set_provider(Provider::Istio);
    assert_eq!(
        conflict(&mut world),
        "component \"web\" of revision \"shop-web\" and the traffic of the deployment both need \
         Service default/shop-web: rename a revision, a component or an object"
    );
    let services = objects(&world, "", "Service");
    assert_eq!(services.len(), 1);
    assert!(
        services[0].contains("\"delivery.mainstay.dev/revision\":\"shop-web\"}}}"),
        "{services:?}"
    );
    assert_eq!(objects(&world, "", "VirtualService"), [""; 0]);
}
