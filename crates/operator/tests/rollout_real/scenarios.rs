//! Scenarios: the proposal's example, an outage, a rotated credential and a deleted Cluster.

use std::time::Duration;

use serde_json::{Value, json};

use crate::golden::{check_golden, golden_text, golden_text_in_any_namespace};
use crate::is_whole;
use crate::objects::{self, APEX_SERVICE, DEPLOYMENT, INGRESS_STEPS, deployment_of, with_traffic};
use crate::servers::{HOST, MEMBERS};
use crate::test_namespace::{DEPLOYMENTS, TestNamespace, V1, V2, cluster};

/// Name of the member cluster in the proposal's example.
const MEMBER: &str = "prod-cluster-1";
/// Server of the member cluster.
const MEMBER_SERVER: &str = "east";

/// Duration of the steady state in seconds, by default and in the complete proof, in which all kinds are
/// listed again.
const STEADY_SECONDS: [u64; 2] = [10, 200];

/// Runs the proposal's example: two revisions, two clusters, an even split, a shift, and the removal of the
/// first revision. Services and routes must equal those on the simulator.
pub(crate) async fn the_proposal_end_to_end() {
    let test = TestNamespace::new("default").await;
    test.add_cluster(MEMBER, MEMBER_SERVER).await;
    test.start_operator();
    test.record_two_revisions().await;
    let mut deployment = objects::deployment();
    test.create(DEPLOYMENTS, deployment.clone()).await;
    test.until_phase("Healthy").await;
    for cluster in [HOST, MEMBER_SERVER] {
        for revision in [V1, V2] {
            assert_eq!(
                test.replicas(cluster, revision).await,
                Some((5, 5)),
                "{cluster:?}"
            );
        }
        let even = [(V1.to_owned(), 50), (V2.to_owned(), 50)];
        assert_eq!(test.weights(cluster).await, even, "{cluster:?}");
        check_selectors(&test, cluster).await;
    }
    check_golden("proposal-even", &routed_objects(&test).await);

    let targets = &mut deployment["spec"]["traffic"]["http"][0]["weightedTargets"];
    (targets[0]["weight"], targets[1]["weight"]) = (json!(10), json!(90));
    test.set_spec(DEPLOYMENTS, &deployment).await;
    test.until_phase("Healthy").await;
    check_golden("proposal-shifted", &routed_objects(&test).await);

    let spec = &mut deployment["spec"];
    let targets = &mut spec["traffic"]["http"][0]["weightedTargets"];
    targets.as_array_mut().unwrap().remove(0);
    targets[0]["weight"] = json!(100);
    // The default of 30 s only makes the test longer.
    spec["traffic"]["drainSeconds"] = json!(1);
    spec["appRevisions"].as_array_mut().unwrap().remove(0);
    test.set_spec(DEPLOYMENTS, &deployment).await;
    test.until_phase("Healthy").await;
    test.until_idle().await;
    for cluster in [HOST, MEMBER_SERVER] {
        assert_eq!(test.replicas(cluster, V1).await, None, "{cluster:?}");
        assert_eq!(test.object(cluster, "api/v1", "services", V1).await, None);
    }
    check_golden("proposal-replaced", &routed_objects(&test).await);
    let steady = check_steady_state(&test).await;
    check_deletion(&test).await;
    test.end().await;
    println!("servers proposal: 50/50, 10/90 and v2 alone as on the simulator, 0 writes in {steady} s");
}

/// Returns Services and routes of both clusters in the format of the golden files.
async fn routed_objects(test: &TestNamespace) -> String {
    let mut yaml = String::new();
    for (cluster, shown) in [(HOST, "host"), (MEMBER_SERVER, MEMBER)] {
        for (root, plural, name) in [
            ("api/v1", "services", V1),
            ("api/v1", "services", V2),
            ("apis/networking.istio.io/v1", "virtualservices", DEPLOYMENT),
        ] {
            if let Some(object) = test.object(cluster, root, plural, name).await {
                yaml.push_str(&golden_text(shown, object));
            }
        }
    }
    yaml
}

/// Checks that pods of the two revisions are selected by different Services.
async fn check_selectors(test: &TestNamespace, cluster: &str) {
    for own in [V1, V2] {
        let service = test.object(cluster, "api/v1", "services", own).await.unwrap();
        let labels = service["spec"]["selector"].as_object().unwrap();
        let pairs: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}%3D{}", value.as_str().unwrap()))
            .collect();
        let selector = pairs.join("%2C").replace('/', "%2F");
        let path = format!(
            "/api/v1/namespaces/{}/pods?labelSelector={selector}",
            test.namespace
        );
        let pods = test.servers.get(cluster).get(&path).await.unwrap();
        let names: Vec<&str> = pods["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pod| pod["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names.len(), 5, "{names:?}");
        assert!(names.iter().all(|name| name.starts_with(own)), "{names:?}");
    }
}

/// Checks that the operator writes nothing in the steady state, and returns its duration in seconds.
async fn check_steady_state(test: &TestNamespace) -> u64 {
    let seconds = STEADY_SECONDS[usize::from(is_whole())];
    let before = test.servers.writes();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let after = test.servers.writes();
    assert_eq!(
        after[before.len()..],
        [] as [String; 0],
        "writes in a steady state"
    );
    seconds
}

async fn check_deletion(test: &TestNamespace) {
    test.delete(DEPLOYMENTS, DEPLOYMENT).await;
    test.until_deleted().await;
    for cluster in [HOST, MEMBER_SERVER] {
        assert_eq!(test.replicas(cluster, V2).await, None, "{cluster:?}");
        assert_eq!(test.object(cluster, "api/v1", "services", V2).await, None);
        assert_eq!(test.weights(cluster).await, []);
    }
    let left = test.ours("resourceinventories", "").await.unwrap();
    assert_eq!(left["items"].as_array().unwrap().len(), 0, "{left}");
}

/// Returns a deployment with three replicas in every cluster and the strategy `Rolling`.
fn rolling(revision: &str) -> Value {
    let places: &[(&str, u32)] = &[(HOST, 3), (MEMBERS[0], 3), (MEMBERS[1], 3)];
    let mut deployment = with_traffic(deployment_of(&[(revision, places)]), "Istio", &[(revision, 100)]);
    deployment["spec"]["traffic"]["drainSeconds"] = json!(1);
    deployment["spec"]["strategy"] = json!({"type": "Rolling", "maxSurge": 3, "maxUnavailable": 0});
    deployment
}

async fn until_rolling_in(test: &TestNamespace, cluster: &str) {
    test.until("the rollout in the member has started", async |test| {
        let (replicas, _) = test.replicas(cluster, V2).await?;
        let old = test.replicas(cluster, V1).await?;
        (replicas >= 1 && old.0 >= 1).then_some(())
    })
    .await;
}

/// Replaces the revision, and waits until the operator writes nothing.
async fn change_revision(test: &TestNamespace, revision: &str) {
    test.set_spec(DEPLOYMENTS, &rolling(revision)).await;
    test.until_phase("Healthy").await;
    test.until_idle().await;
}

/// Kills the API server of a member during a rollout. The other clusters must complete the rollout during
/// the outage, and the member after its restart. The end state must equal that of a rollout without an
/// outage.
pub(crate) async fn an_api_server_killed_halfway() {
    let test = TestNamespace::start("outage").await;
    test.record_two_revisions().await;
    test.create(DEPLOYMENTS, rolling(V1)).await;
    test.until_phase("Healthy").await;
    change_revision(&test, V2).await;
    let expected = test.end_state().await;
    change_revision(&test, V1).await;
    test.set_spec(DEPLOYMENTS, &rolling(V2)).await;
    let [other, dead] = MEMBERS;
    until_rolling_in(&test, dead).await;
    test.servers.get(dead).cluster.lock().await.stop_api_server();
    test.until_condition("clusters", dead, "False/ClusterUnreachable")
        .await;
    for cluster in [HOST, other] {
        test.until_replicas(cluster, V2, 3).await;
        let all = [(V2.to_owned(), 100)];
        test.until("traffic is on v2", async |test| {
            (test.weights(cluster).await == all).then_some(())
        })
        .await;
    }
    let status = test.ours(DEPLOYMENTS, DEPLOYMENT).await.unwrap();
    assert_ne!(status["status"]["phase"], "Healthy", "a cluster is missing");
    let begin = std::time::Instant::now();
    let mut cluster = test.servers.get(dead).cluster.lock().await;
    cluster.start_api_server().await.unwrap();
    drop(cluster);
    test.until_phase("Healthy").await;
    let took = begin.elapsed().as_secs_f64();
    test.until_idle().await;
    check_end(&expected, &test).await;
    test.end().await;
    println!(
        "servers outage: the others completed during the outage, the dead one {took:.0} s after its start; end state as without it"
    );
}

/// Checks that the end state equals the expected one.
async fn check_end(expected: &[crate::final_state::FinalState], test: &TestNamespace) {
    let found = test.end_state().await;
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(expected.difference(found), None);
    }
}

/// Revokes a token, which must be reported, and then stores a new token in the Secret, which must be used.
pub(crate) async fn a_rotated_kubeconfig() {
    let test = TestNamespace::start("rotation").await;
    test.record_two_revisions().await;
    let [member, _] = MEMBERS;
    let places = |replicas: u32| deployment_of(&[(V1, &[(member, replicas)])]);
    test.create(DEPLOYMENTS, places(2)).await;
    test.until_phase("Healthy").await;
    test.servers
        .get(member)
        .revoke(&format!("rotation-{member}"))
        .await;
    test.until_condition("clusters", member, "False/CredentialRejected")
        .await;
    test.rotate_kubeconfig(member, "rotation-2").await;
    test.set_spec(DEPLOYMENTS, &places(4)).await;
    test.until_phase("Healthy").await;
    assert_eq!(test.replicas(member, V1).await, Some((4, 4)));
    test.until_condition("clusters", member, "True/Ready").await;
    test.end().await;
    println!("servers rotation: the revoked token was reported, the new one used");
}

/// Deletes a Cluster object. The objects in that cluster must stay, and other clusters must be reconciled.
/// The objects are removed once the Cluster object exists again.
pub(crate) async fn a_deleted_cluster() {
    let test = TestNamespace::start("deletion").await;
    test.record_two_revisions().await;
    let [kept, deleted] = MEMBERS;
    let both = deployment_of(&[(V1, &[(kept, 2), (deleted, 2)])]);
    test.create(DEPLOYMENTS, both).await;
    test.until_phase("Healthy").await;
    test.delete("clusters", deleted).await;
    test.until_condition(DEPLOYMENTS, DEPLOYMENT, "False/ClusterNotFound")
        .await;
    let one = deployment_of(&[(V1, &[(kept, 3)])]);
    test.set_spec(DEPLOYMENTS, &one).await;
    test.until_replicas(kept, V1, 3).await;
    assert_eq!(
        test.replicas(deleted, V1).await,
        Some((2, 2)),
        "the objects in the cluster are not changed"
    );
    test.create("clusters", cluster(deleted)).await;
    test.until_phase("Healthy").await;
    test.until("the objects are removed", async |test| {
        test.replicas(deleted, V1).await.is_none().then_some(())
    })
    .await;
    test.end().await;
    println!("servers deletion: left alone while the Cluster was gone, removed after its return");
}

/// Runs a rollout with an Ingress. Ingress and Services must equal those on the simulator.
pub(crate) async fn ingresses_as_on_the_simulator() {
    let test = TestNamespace::new("ingress").await;
    test.start_operator();
    test.record_two_revisions().await;
    for (step, (golden, replicas, has_match)) in INGRESS_STEPS.iter().enumerate() {
        let deployment = objects::ingress_deployment(test.namespace, replicas, *has_match);
        if step == 0 {
            test.create(DEPLOYMENTS, deployment).await;
        } else {
            test.set_spec(DEPLOYMENTS, &deployment).await;
        }
        test.until_phase("Healthy").await;
        test.until_idle().await;
        let mut yaml = String::new();
        for (root, plural, name) in [
            ("apis/networking.k8s.io/v1", "ingresses", DEPLOYMENT),
            ("api/v1", "services", APEX_SERVICE),
            ("api/v1", "services", V1),
            ("api/v1", "services", V2),
        ] {
            if let Some(object) = test.object(HOST, root, plural, name).await {
                yaml.push_str(&golden_text_in_any_namespace("host", object));
            }
        }
        check_golden(golden, &yaml);
    }
    test.end().await;
    println!(
        "servers ingress: {} steps as on the simulator",
        INGRESS_STEPS.len()
    );
}
