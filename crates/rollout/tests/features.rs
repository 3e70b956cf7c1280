//! Tests features of deployments on the model of clusters: previews, mirroring, waves, failover,
//! autoscalers, several routes, and unsupported changes.

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

use mainstay_api::delivery::{ActionVerb, DeploymentPhase, Provider};
use mainstay_api::{ConditionType, Reason};
use model::World;
use serde_json::{Value, json};
use shop::{deployed, in_clusters, objects, replicas, seconds_until, spec};

/// Header routes and mirroring to the new revision exist only during their steps.
#[test]
fn previews_and_mirroring_end_with_the_rollout() {
    let strategy = json!({"type": "Canary", "steps": [
        {"headerRoute": {"name": "testers", "match": [{"headerName": "x-preview", "exact": "true"}]}},
        {"mirror": {"percent": 20}},
        {"pause": {}},
    ]});
    let cases = [
        (
            Provider::Istio,
            "VirtualService",
            "\"mirrorPercentage\":{\"value\":20}",
        ),
        (Provider::GatewayApi, "HTTPRoute", "\"RequestMirror\""),
    ];
    for (provider, kind, mirror) in cases {
        let placement = in_clusters(&[("", 4)]);
        let mut world = World::new(11, spec("shop-v1", &placement, &strategy), &[""]);
        world.set_provider(provider);
        assert!(world.run_until_idle(600));
        world.set_spec(spec("shop-v2", &placement, &strategy));
        assert!(world.run_until_idle(600));
        assert_eq!(world.deployment.status.phase, DeploymentPhase::Paused);
        let route = objects(&world, "", kind).concat();
        assert!(route.contains("x-preview") && route.contains(mirror), "{route}");
        let weights = &world.deployment.status.traffic[0].routes[0].shares;
        assert_eq!(weights[0].revision_name, "shop-v1", "all other requests stay");
        assert_eq!(weights[0].weight, Some(100));
        assert!(replicas(&world, "", "shop-v2") >= 1);
        world.request(ActionVerb::Promote);
        assert!(world.run_until_idle(600));
        assert_eq!(world.deployment.status.phase, DeploymentPhase::Healthy);
        let route = objects(&world, "", kind).concat();
        assert!(!route.contains("x-preview") && !route.contains(mirror), "{route}");
        assert!(world.violations.is_empty(), "{:#?}", world.violations);
    }
}

/// The next wave starts when the first one is complete and its soak time has passed.
#[test]
fn a_wave_soaks_before_the_next_one_starts() {
    let soak = 90;
    let strategy = json!({"type": "Rolling", "waves": [
        {"name": "pilot", "clusterSelector": {"labels": {"stage": "pilot"}}, "soakSeconds": soak},
        {"name": "rest"},
    ]});
    let placement = in_clusters(&[("a", 3), ("b", 3)]);
    let mut world = World::new(11, spec("shop-v1", &placement, &strategy), &["", "a", "b"]);
    let labels = &mut world.clusters.get_mut("a").unwrap().labels;
    labels.insert("stage".to_owned(), "pilot".to_owned());
    assert!(world.run_until_idle(900));
    world.set_spec(spec("shop-v2", &placement, &strategy));
    let is_moved = |world: &World, cluster: &str| {
        replicas(world, cluster, "shop-v2") == 3 && replicas(world, cluster, "shop-v1") == 0
    };
    seconds_until(&mut world, 300, |world| {
        assert_eq!(replicas(world, "b", "shop-v2"), 0, "the second wave waits");
        is_moved(world, "a")
    })
    .unwrap();
    let soaked = seconds_until(&mut world, 400, |world| replicas(world, "b", "shop-v2") > 0).unwrap();
    assert!(soaked >= soak - 1, "the second wave started after {soaked} s");
    assert!(soaked <= soak + 30, "the second wave started after {soaked} s");
    seconds_until(&mut world, 300, |world| is_moved(world, "b")).unwrap();
    assert!(world.violations.is_empty(), "{:#?}", world.violations);
}

#[test]
fn background_analysis_starts_with_the_first_step_or_the_second_group() {
    let run = |strategy: Value| {
        let analyzed = |revision: &str| {
            let mut spec = spec(revision, &in_clusters(&[("a", 2), ("b", 2)]), &strategy);
            spec["analysis"] = json!({"background": [{"templateName": "rate"}]});
            spec
        };
        let mut world = World::new(11, analyzed("shop-v1"), &["", "a", "b"]);
        let template = json!({"metadata": {"name": "rate"}, "spec": {"metrics": [{
            "name": "rate", "success": {"min": 0.99}, "prometheus": {"address": "http://p", "query": "rate"},
        }]}});
        let template = serde_json::from_value(template).unwrap();
        world.templates.insert("rate".into(), template);
        assert!(world.run_until_idle(600));
        world.behavior.metric = Some(0.5);
        world.set_spec(analyzed("shop-v2"));
        assert!(world.run_until_idle(600));
        world.deployment.status.phase
    };
    let waves = json!(["a", "b"].map(|name| json!({"name": name, "clusterSelector": {"name": name}})));
    let steps = json!([{"setWeight": 50}, {"setWeight": 100}]);
    let canary = json!({"type": "Canary", "onFailure": "Rollback", "steps": steps});
    assert_eq!(run(canary), DeploymentPhase::Aborted);
    let rolling = json!({"type": "Rolling", "onFailure": "Rollback"});
    assert_eq!(run(rolling), DeploymentPhase::Healthy);
    let rolling = json!({"type": "Rolling", "onFailure": "Rollback", "waves": waves});
    assert_eq!(run(rolling), DeploymentPhase::Aborted);
}

/// Without `failover`, the workloads of an unreachable cluster are never moved. With it, they are moved
/// after the configured time, except those with a placement that names the cluster.
#[test]
fn failover_is_opt_in_and_only_for_placements_by_labels() {
    let run = |failover: Value, selector: Value| {
        let placement = json!([{"clusterSelector": selector, "distribution": {"replicas": 3}}]);
        let mut spec = spec("shop-v1", &placement, &json!({"type": "Direct"}));
        if !failover.is_null() {
            spec["failover"] = failover;
        }
        let mut world = deployed(spec, &["", "a", "b"]);
        let (lost, other) = match replicas(&world, "a", "shop-v1") {
            3 => ("a", "b"),
            _ => ("b", "a"),
        };
        assert_eq!(
            (
                replicas(&world, lost, "shop-v1"),
                replicas(&world, other, "shop-v1")
            ),
            (3, 0)
        );
        world.disconnect(lost, 1_000_000);
        let moved = seconds_until(&mut world, 400, |world| replicas(world, other, "shop-v1") == 3);
        assert_eq!(
            replicas(&world, lost, "shop-v1"),
            3,
            "nothing is deleted while the cluster is unreachable"
        );
        let back = moved.map(|_| {
            world.end_faults();
            let back = seconds_until(&mut world, 400, |world| replicas(world, lost, "shop-v1") == 0);
            assert_eq!(
                replicas(&world, other, "shop-v1"),
                3,
                "workloads stay where they are"
            );
            back
        });
        assert!(world.violations.is_empty(), "{:#?}", world.violations);
        (moved, back)
    };
    let labels = json!({"labels": {"tier": "prod"}});
    assert_eq!(run(Value::Null, labels.clone()), (None, None));
    assert_eq!(
        run(json!({"afterSeconds": 60}), json!({"name": "a"})),
        (None, None)
    );
    let (moved, back) = run(json!({"afterSeconds": 60}), labels);
    assert!((60..120).contains(&moved.unwrap()), "{moved:?}");
    assert!(
        back.unwrap().is_some(),
        "the first cluster is cleaned up when it is reachable again"
    );
}

/// The previous revision remains available during the rollback window, so a rollback requires no new pods.
#[test]
fn a_rollback_within_its_window_starts_no_pod() {
    let strategy = json!({"type": "BlueGreen", "rollbackWindow": {"keepWarmSeconds": 300}});
    let placement = in_clusters(&[("", 3)]);
    let mut world = deployed(spec("shop-v1", &placement, &strategy), &[""]);
    world.set_spec(spec("shop-v2", &placement, &strategy));
    seconds_until(&mut world, 200, |world| {
        world.deployment.status.phase == DeploymentPhase::Healthy
    })
    .unwrap();
    assert_eq!(replicas(&world, "", "shop-v1"), 3, "kept warm");
    world.request(ActionVerb::Rollback);
    let all_on_v1 = |world: &World| {
        let shares = world
            .deployment
            .status
            .traffic
            .first()
            .map(|traffic| traffic.routes.clone());
        let shares = shares.into_iter().flatten().flat_map(|route| route.shares);
        shares
            .filter(|share| share.revision_name == "shop-v1")
            .any(|share| share.weight == Some(100))
    };
    let mut fewest = u32::MAX;
    let took = seconds_until(&mut world, 100, |world| {
        fewest = fewest.min(replicas(world, "", "shop-v1"));
        all_on_v1(world)
    });
    assert_eq!(fewest, 3, "no replica of v1 had to start");
    assert!(took.unwrap() <= 10, "{took:?}");

    let mut world = deployed(spec("shop-v1", &placement, &strategy), &[""]);
    world.set_spec(spec("shop-v2", &placement, &strategy));
    let gone = seconds_until(&mut world, 600, |world| replicas(world, "", "shop-v1") == 0);
    assert!((300..400).contains(&gone.unwrap()), "{gone:?}");
}

/// Replicas that are not set are managed by another controller, such as an autoscaler.
#[test]
fn unset_replicas_are_left_to_an_autoscaler() {
    let placement = json!([{"distribution": {}}]);
    let mut world = deployed(spec("shop-v1", &placement, &json!({"type": "Direct"})), &[""]);
    let keys: Vec<_> = world.clusters[""].objects.keys().cloned().collect();
    for key in keys.into_iter().filter(|key| key.kind == "Deployment") {
        let object = world.clusters.get_mut("").unwrap().objects.get_mut(&key).unwrap();
        object.observed.replicas = 7;
    }
    let versions = |world: &World| -> Vec<_> {
        let objects = world.clusters[""].objects.iter();
        objects
            .map(|(key, object)| (key.clone(), object.observed.version.clone()))
            .collect()
    };
    let before = versions(&world);
    assert!(world.run_until_idle(300));
    assert_eq!(replicas(&world, "", "shop-v1"), 7);
    assert_eq!(
        versions(&world),
        before,
        "replicas set by the autoscaler are not overwritten"
    );
}

/// Rules may name different routes. Each route is a separate object, for every provider.
#[test]
fn several_routes_and_ingresses_per_application() {
    for (provider, kind) in [
        (Provider::Istio, "VirtualService"),
        (Provider::GatewayApi, "HTTPRoute"),
        (Provider::Ingress, "Ingress"),
    ] {
        let mut spec = spec("shop-v1", &in_clusters(&[("", 2)]), &json!({"type": "Direct"}));
        let rule = |name: &str, path: &str, route: Option<&str>| {
            let mut rule = json!({
                "name": name, "match": [{"uri": {"prefix": path}}],
                "weightedTargets": [{"revisionName": "shop-v1", "componentName": "web", "port": 80}],
            });
            if let Some(route) = route {
                rule["route"] = json!(route);
            }
            rule
        };
        spec["traffic"]["http"] = json!([
            rule("web", "/web", None),
            rule("api", "/api", Some("internal")),
            rule("admin", "/admin", Some("admin")),
        ]);
        let mut world = World::new(11, spec.clone(), &[""]);
        world.set_provider(provider);
        assert!(world.run_until_idle(600));
        assert_eq!(world.deployment.status.phase, DeploymentPhase::Healthy, "{kind}");
        let found = objects(&world, "", kind);
        assert_eq!(found.len(), 3, "{kind}: {found:#?}");
        for path in ["/web", "/api", "/admin"] {
            let holders = found
                .iter()
                .filter(|object| object.contains(&format!("\"{path}\"")));
            assert_eq!(holders.count(), 1, "{kind} {path}");
        }
        // A route that no rule names any longer is deleted.
        spec["traffic"]["http"].as_array_mut().unwrap().truncate(2);
        world.set_spec(spec);
        assert!(world.run_until_idle(600));
        assert_eq!(objects(&world, "", kind).len(), 2, "{kind}");
        world.check_inventories();
        assert!(world.violations.is_empty(), "{kind}: {:#?}", world.violations);
    }
}

/// Strategies with steps support replacing one revision by another. Other changes are reported as a
/// condition and not executed.
#[test]
fn replacing_two_revisions_at_once_is_reported_as_a_condition() {
    let rolling = json!({"type": "Rolling"});
    let both = |one: &str, two: &str| {
        let mut spec = spec(one, &in_clusters(&[("", 2)]), &rolling);
        let placement = in_clusters(&[("", 2)]);
        let second = json!({"revisionName": two, "placement": placement});
        spec["appRevisions"].as_array_mut().unwrap().push(second);
        spec.as_object_mut().unwrap().remove("traffic");
        spec
    };
    let mut world = deployed(both("shop-v1", "shop-v2"), &[""]);
    let fourth = model::revision("shop-v4", &["web", "api"]);
    world
        .revisions
        .insert("shop-v4".to_owned(), std::sync::Arc::new(fourth));
    let before = world.replicas_by_revision();
    world.set_spec(both("shop-v3", "shop-v4"));
    assert!(world.run_until_idle(300));
    let ready = world.deployment.status.conditions.get(&ConditionType::Ready);
    assert_eq!(ready.reason, Reason::PlanUnsupported, "{ready:?}");
    assert!(ready.message.contains("use strategy Direct"), "{ready:?}");
    assert_eq!(world.replicas_by_revision(), before);
}

/// A revision that does not exist yet is reported as a condition. The rollout starts when the revision is
/// created.
#[test]
fn a_missing_revision_is_reported_until_it_is_created() {
    let placement = in_clusters(&[("", 2)]);
    let direct = json!({"type": "Direct"});
    let mut world = deployed(spec("shop-v1", &placement, &direct), &[""]);
    world.set_spec(spec("shop-v4", &placement, &direct));
    assert!(world.run_until_idle(300));
    let ready = world.deployment.status.conditions.get(&ConditionType::Ready);
    assert_eq!(ready.reason, Reason::RevisionNotFound, "{ready:?}");
    assert_eq!(replicas(&world, "", "shop-v1"), 2, "running workloads are kept");
    let revision = model::revision("shop-v4", &["web", "api"]);
    world
        .revisions
        .insert("shop-v4".to_owned(), std::sync::Arc::new(revision));
    assert!(world.run_until_idle(300));
    assert_eq!(replicas(&world, "", "shop-v4"), 2);
    assert_eq!(replicas(&world, "", "shop-v1"), 0);
}

/// Three revisions receive requests according to one traffic plan.
#[test]
fn three_revisions_share_the_traffic() {
    let mut spec = spec("shop-v1", &in_clusters(&[("", 4)]), &json!({"type": "Direct"}));
    let target = |revision: &str, weight: u32| json!({"revisionName": revision, "componentName": "web", "port": 80, "weight": weight});
    let rows = [("shop-v1", 60), ("shop-v2", 30), ("shop-v3", 10)];
    spec["appRevisions"] = rows
        .iter()
        .map(|(name, _)| json!({"revisionName": name, "placement": in_clusters(&[("", 4), ("a", 4)])}))
        .collect();
    spec["traffic"]["http"][0]["weightedTargets"] =
        rows.iter().map(|(name, weight)| target(name, *weight)).collect();
    let world = deployed(spec, &["", "a"]);
    assert_eq!(world.deployment.status.phase, DeploymentPhase::Healthy);
    let traffic = &world.deployment.status.traffic;
    assert_eq!(traffic.len(), 1, "equal in both clusters");
    let shares: Vec<(&str, Option<u32>)> = traffic[0].routes[0]
        .shares
        .iter()
        .map(|share| (share.revision_name.as_str(), share.weight))
        .collect();
    assert_eq!(shares, rows.map(|(name, weight)| (name, Some(weight))));
}

/// Weights are computed per cluster: the weight of a revision is 0 in clusters in which it does not run.
#[test]
fn weights_are_computed_per_cluster() {
    let mut spec = spec(
        "shop-v1",
        &in_clusters(&[("a", 2), ("b", 2)]),
        &json!({"type": "Direct"}),
    );
    let second = json!({"revisionName": "shop-v2", "placement": in_clusters(&[("b", 2)])});
    spec["appRevisions"].as_array_mut().unwrap().push(second);
    spec["traffic"]["http"][0]["weightedTargets"] = json!([
        {"revisionName": "shop-v1", "componentName": "web", "port": 80, "weight": 50},
        {"revisionName": "shop-v2", "componentName": "web", "port": 80, "weight": 50},
    ]);
    let world = deployed(spec, &["", "a", "b"]);
    let shares = |cluster: &str| -> Vec<(String, Option<u32>)> {
        let traffic = world.deployment.status.traffic.iter();
        let mut own = traffic.filter(|traffic| traffic.cluster_names.iter().any(|name| name == cluster));
        let shares = own.next().unwrap().routes[0].shares.iter();
        shares
            .map(|share| (share.revision_name.clone(), share.weight))
            .collect()
    };
    assert_eq!(shares("a"), [("shop-v1".to_owned(), Some(100))]);
    assert_eq!(
        shares("b"),
        [("shop-v1".to_owned(), Some(50)), ("shop-v2".to_owned(), Some(50))]
    );
}
