//! Tests for events and snapshots of the index, without an async runtime.

use mainstay_api::Reason;
use mainstay_api::delivery::{API_VERSION, DEPLOYMENT_LABEL, MANIFEST_HASH, Provider};
use serde_json::json;

use super::*;
use crate::delivery::names::ObjectType;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn object(kind: &str, name: &str, version: u64, spec: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": kind, "spec": spec,
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("{kind}-{name}"),
            "resourceVersion": version.to_string(), "generation": 1,
        },
    })
}

fn workload(version: u64, deployment: Option<&str>, hash: &str) -> Value {
    let mut object = json!({
        "metadata": {
            "name": "app-v1-web", "namespace": "shop", "uid": "w", "resourceVersion": version.to_string(),
            "annotations": {MANIFEST_HASH: hash},
        },
        "spec": {"replicas": 2},
    });
    if let Some(deployment) = deployment {
        object["metadata"]["labels"] = json!({DEPLOYMENT_LABEL: deployment});
    }
    object
}

fn deployments() -> ObjectType {
    ObjectType::new("apps/v1", "Deployment")
}

/// Returns an index with a deployment and a Cluster, in which all kinds of all clusters were listed.
fn settled_index() -> Index {
    let mut index = Index::default();
    index.observe_host(
        HostKind::Deployment,
        object("ApplicationDeployment", "app", 5, &json!({"appRevisions": []})),
    );
    let cluster = json!({"kubeconfigSecretRef": {"name": "s"}});
    index.observe_host(HostKind::Cluster, object("Cluster", "east", 6, &cluster));
    for kind in HostKind::ALL {
        let names = match kind {
            HostKind::Deployment => BTreeSet::from([Name::new("shop", "app")]),
            HostKind::Cluster => BTreeSet::from([Name::new("shop", "east")]),
            _ => BTreeSet::new(),
        };
        index.finish_host_list(kind, &names, "10");
    }
    for key in [ClusterKey::Host, east()] {
        list_all(&mut index, &key);
        index.set_link(&key, up());
    }
    drain(&mut index);
    index
}

fn east() -> ClusterKey {
    ClusterKey::for_name("shop", "east")
}

fn up() -> Link {
    Link::Up {
        version: "v1.36.0".into(),
        providers: BTreeSet::from([Provider::Ingress]),
    }
}

fn down(second: i64) -> Link {
    Link::Down(Outage {
        since: Timestamp::from_second(second).unwrap(),
        retry_at: now(),
        reason: Reason::ClusterUnreachable,
        message: "m".into(),
    })
}

fn list_all(index: &mut Index, key: &ClusterKey) {
    let types: Vec<ObjectType> = index.cluster_mut(key).types().cloned().collect();
    for kind in types {
        index.finish_list(key, &kind, &BTreeSet::new(), "10");
    }
}

/// Starts and completes all due subjects, and returns them.
fn drain(index: &mut Index) -> Vec<String> {
    let mut subjects = Vec::new();
    while let Some(subject) = index.queue.start_next(now()) {
        index.queue.succeed(&subject);
        subjects.push(subject.to_string());
    }
    subjects
}

const APP: &str = "ApplicationDeployment shop/app";

fn view(index: &mut Index, cluster: &str) -> mainstay_rollout::snapshot::ClusterView {
    let mut snapshot = index.snapshot(&Name::new("shop", "app"), now()).unwrap();
    snapshot.clusters.remove(cluster).unwrap()
}

#[test]
fn an_object_enqueues_the_deployment_of_its_label() {
    let mut index = settled_index();
    index.observe_object(&east(), &deployments(), workload(20, Some("app"), "h"));
    assert_eq!(drain(&mut index), [APP]);
    index.observe_object(&east(), &deployments(), workload(20, Some("app"), "h"));
    assert_eq!(drain(&mut index), [""; 0], "an event that changes nothing");
    index.observe_object(&east(), &deployments(), workload(19, Some("app"), "old"));
    assert_eq!(drain(&mut index), [""; 0], "an older version");
    index.observe_object(&east(), &deployments(), workload(21, Some("other"), "h"));
    assert_eq!(drain(&mut index), [""; 0], "the label of another deployment");
}

#[test]
fn late_events_do_not_revive_a_deleted_object() {
    let mut index = settled_index();
    index.observe_object(&east(), &deployments(), workload(20, Some("app"), "h"));
    let key = object_key(&deployments(), &workload(20, None, ""));
    index.remove_object(&east(), &key, "w");
    index.observe_object(&east(), &deployments(), workload(22, Some("app"), "h"));
    assert!(view(&mut index, "east").objects.is_empty());
}

#[test]
fn a_list_removes_missing_objects_except_newer_ones() {
    let mut index = settled_index();
    index.observe_object(&east(), &deployments(), workload(20, Some("app"), "h"));
    index.finish_list(&east(), &deployments(), &BTreeSet::new(), "19");
    assert_eq!(
        view(&mut index, "east").objects.len(),
        1,
        "created after the list"
    );
    index.finish_list(&east(), &deployments(), &BTreeSet::new(), "21");
    assert_eq!(view(&mut index, "east").objects.len(), 0);
}

#[test]
fn nothing_is_planned_before_everything_was_read() {
    let mut index = settled_index();
    let name = Name::new("shop", "app");
    assert!(index.snapshot(&name, now()).is_some());
    let inventory = json!({
        "deploymentName": "app", "clusterName": "east",
        "objects": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "names": ["c"]}],
    });
    index.observe_host(
        HostKind::Inventory,
        object("ResourceInventory", "app.east", 30, &inventory),
    );
    assert!(
        index.snapshot(&name, now()).is_none(),
        "the kind of an inventoried object was not listed"
    );
    index.finish_list(
        &east(),
        &ObjectType::new("v1", "ConfigMap"),
        &BTreeSet::new(),
        "31",
    );
    assert!(index.snapshot(&name, now()).is_some());
}

#[test]
fn an_unreachable_cluster_does_not_delay_the_snapshot() {
    let mut index = settled_index();
    index.set_link(&east(), down(100));
    let queued = drain(&mut index);
    assert_eq!(queued, ["Cluster shop/east", APP]);
    index.set_link(&east(), down(200));
    let east = view(&mut index, "east");
    assert_eq!(
        east.unreachable_since,
        Timestamp::from_second(100).ok(),
        "since the first failure"
    );
    assert_eq!(view(&mut index, "").unreachable_since, None);
}

#[test]
fn a_deleted_cluster_with_an_inventory_stays_in_the_snapshot() {
    let mut index = settled_index();
    let inventory = json!({"deploymentName": "app", "clusterName": "east", "objects": []});
    index.observe_host(
        HostKind::Inventory,
        object("ResourceInventory", "app.east", 30, &inventory),
    );
    index.remove_host(HostKind::Cluster, &object("Cluster", "east", 31, &json!({})));
    index.drop_link(&east());
    let east = view(&mut index, "east");
    assert!(east.is_deleted && east.unreachable_since.is_some());
}

#[test]
fn failed_steps_back_off_per_cluster_and_are_shown() {
    let mut index = settled_index();
    let name = Name::new("shop", "app");
    index.record_step_result(&name, "east", Some("forbidden".into()), now());
    let mut plan = plan_for_clusters(["", "east"]);
    // An event during the back-off must not cancel the retry.
    index.enqueue(Subject::Deployment(name.clone()));
    assert_eq!(drain(&mut index), [APP]);
    index.drop_waiting_steps(&name, &mut plan, now());
    assert!(
        plan.clusters.contains_key("") && !plan.clusters.contains_key("east"),
        "others continue"
    );
    assert!(index.queue.next_due().is_some_and(|due| due > now()));
    assert_eq!(view(&mut index, "east").last_error.as_deref(), Some("forbidden"));
    index.record_step_result(&name, "east", None, now());
    let mut plan = plan_for_clusters(["east"]);
    index.drop_waiting_steps(&name, &mut plan, now());
    assert!(plan.clusters.contains_key("east"));
}

/// Returns an index in which the steps of the deployment have failed in "east" for minutes.
fn index_in_backoff() -> Index {
    let mut index = settled_index();
    let name = Name::new("shop", "app");
    for _ in 0..12 {
        index.record_step_result(&name, "east", Some("forbidden".into()), now());
        index.queue.fail(&Subject::Deployment(name.clone()), now());
    }
    assert!(is_held(&mut index));
    index
}

/// Whether the steps in "east" wait for the end of a back-off.
fn is_held(index: &mut Index) -> bool {
    let mut plan = plan_for_clusters(["east"]);
    index.drop_waiting_steps(&Name::new("shop", "app"), &mut plan, now());
    plan.clusters.is_empty()
}

fn edited(change: impl Fn(&mut Value)) -> Value {
    let mut object = object("ApplicationDeployment", "app", 50, &json!({"appRevisions": []}));
    change(&mut object);
    object
}

#[test]
fn an_edit_or_a_deletion_ends_the_backoff() {
    let edit = edited(|object| object["metadata"]["generation"] = json!(2));
    let deletion = edited(|object| object["metadata"]["deletionTimestamp"] = json!("2027-01-15T08:00:00Z"));
    for change in [edit, deletion] {
        let mut index = index_in_backoff();
        index.observe_host(HostKind::Deployment, change.clone());
        assert!(!is_held(&mut index), "{change}");
        let started = index.queue.start_next(now()).unwrap();
        assert_eq!(started.to_string(), APP, "{change}");
        index.queue.fail(&started, now());
        let pause = index.queue.next_due().unwrap().duration_since(now());
        assert_eq!(pause.as_millis(), 500, "the count of failures starts again");
    }
}

#[test]
fn a_change_of_the_status_does_not_end_the_backoff() {
    let mut index = index_in_backoff();
    let status = edited(|object| object["status"] = json!({"phase": "Progressing"}));
    index.observe_host(HostKind::Deployment, status);
    assert!(is_held(&mut index));
}

#[test]
fn an_action_ends_the_backoff() {
    let mut index = index_in_backoff();
    let spec = json!({"deploymentName": "app"});
    index.observe_host(HostKind::Action, object("DeploymentAction", "abort", 51, &spec));
    assert!(!is_held(&mut index));
}

#[test]
fn a_deleted_deployment_leaves_no_failures() {
    let mut index = index_in_backoff();
    index.remove_host(HostKind::Deployment, &edited(|_| {}));
    assert!(index.failures.is_empty());
}

/// Returns a plan that has an entry for each of these clusters.
fn plan_for_clusters<const N: usize>(clusters: [&str; N]) -> Plan {
    Plan {
        prepare: Vec::new(),
        clusters: clusters.map(|cluster| (cluster.to_owned(), Vec::new())).into(),
        finish: Vec::new(),
        desired: BTreeMap::new(),
        status: mainstay_api::delivery::DeploymentStatus::default(),
        requeue: mainstay_rollout::plan::Requeue::OnEvent,
    }
}
