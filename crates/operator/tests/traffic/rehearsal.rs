//! Records an upgrade for comparison with a rehearsal: measures readiness times, takes a snapshot, and
//! upgrades with one workload that is kept unready. `cargo xtask prove traffic` runs the rehearsal on the
//! snapshot and compares the results.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mainstay_testkit::repository_root;
use serde_json::{Value, json};

use crate::fixtures::{APPS, GATEWAY, NEW, NEW_VERSION, OLD};
use crate::test_mesh::{ISTIO, TestMesh};
use crate::upgrade::{under_load, until_all_on};

/// Collections of a snapshot.
const KINDS: [&str; 11] = [
    "/api/v1/namespaces",
    "/apis/sailoperator.io/v1/istios",
    "/apis/sailoperator.io/v1/istiorevisions",
    "/apis/sailoperator.io/v1/istiorevisiontags",
    "/api/v1/configmaps",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/api/v1/pods",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
];
/// Interval of reads, which allows a precision of 0.1 s.
const INTERVAL: Duration = Duration::from_millis(40);
const MIGRATION_RECORD: &str = "sailoperator.io/migration";

pub async fn record_for_the_rehearsal() {
    let mut mesh = TestMesh::with_apps().await;
    until_all_on(&mut mesh, OLD).await;
    let held = &APPS[1];
    let (_, observed) = under_load(&mut mesh, async |mesh| {
        let readiness = measure_readiness(mesh, &format!("{}/{}", held.namespace, held.name)).await;
        let annotations = json!({"metadata": {"annotations": {"sailoperator.io/readiness-timeout": "8s"}}});
        mesh.merge_patch(&deployment(held.namespace, held.name), &annotations)
            .await;
        std::fs::write(mesh.hold_file(held.name), "").unwrap();
        write_result("before.json", &snapshot(mesh).await);
        write_result("readiness.json", &readiness);
        mesh.change_version(NEW_VERSION).await;
        observe_migration(mesh).await
    })
    .await;
    println!("rehearsal: {observed}");
    write_result("observed.json", &observed);
}

fn write_result(name: &str, value: &Value) {
    let directory = repository_root().join("target/prove/traffic");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(name), serde_json::to_vec_pretty(value).unwrap()).unwrap();
}

fn deployment(namespace: &str, name: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
}

/// Restarts all workloads, two at a time, and returns the mean readiness time of their pods. The time of
/// the workload `held` is `never`.
async fn measure_readiness(mesh: &mut TestMesh, held: &str) -> Value {
    let mut times: BTreeMap<String, Value> = BTreeMap::new();
    let all: Vec<_> = APPS.iter().chain([&GATEWAY]).collect();
    for pair in all.chunks(2) {
        for app in pair {
            let restart = json!({"spec": {"template": {"metadata": {"annotations": {"restarted": "once"}}}}});
            mesh.merge_patch(&deployment(app.namespace, app.name), &restart)
                .await;
        }
        let mut pod_times: Vec<ReadinessTimes> = pair.iter().map(|_| ReadinessTimes::default()).collect();
        loop {
            let mut settled = true;
            for (app, pod_times) in pair.iter().zip(&mut pod_times) {
                settled &= is_generation_complete(mesh, app.namespace, app.name, 2).await;
                pod_times.observe(
                    &mesh
                        .list(&format!("/api/v1/namespaces/{}/pods", app.namespace))
                        .await,
                );
            }
            if settled {
                break;
            }
            tokio::time::sleep(INTERVAL).await;
        }
        for (app, pod_times) in pair.iter().zip(pod_times) {
            let name = format!("{}/{}", app.namespace, app.name);
            times.insert(name, json!(format!("{}ms", pod_times.mean().as_millis())));
        }
    }
    times.insert(held.to_owned(), json!("never"));
    mesh.note(&format!("readiness: {times:?}"));
    json!(times)
}

/// Time of the first observation and of the readiness of each pod.
#[derive(Default)]
struct ReadinessTimes {
    pods: BTreeMap<String, (Instant, Option<Instant>)>,
}

impl ReadinessTimes {
    fn observe(&mut self, pods: &[Value]) {
        for pod in pods {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let conditions = pod["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let ready = conditions
                .iter()
                .any(|one| one["type"] == "Ready" && one["status"] == "True");
            let known = self.pods.contains_key(&name);
            // A pod that is ready at its first observation existed before the restart.
            if !known && ready {
                continue;
            }
            let entry = self.pods.entry(name).or_insert((Instant::now(), None));
            if ready && entry.1.is_none() {
                entry.1 = Some(Instant::now());
            }
        }
    }

    fn mean(&self) -> Duration {
        let times = self
            .pods
            .values()
            .filter_map(|(created, ready)| Some((*ready)? - *created));
        let times: Vec<Duration> = times.collect();
        times.iter().sum::<Duration>() / u32::try_from(times.len().max(1)).unwrap()
    }
}

/// Whether the rollout of at least this generation is complete.
async fn is_generation_complete(mesh: &TestMesh, namespace: &str, name: &str, at_least: i64) -> bool {
    let Some(deployment) = mesh.get(&deployment(namespace, name)).await else {
        return false;
    };
    deployment["metadata"]["generation"].as_i64() >= Some(at_least) && is_rollout_complete(&deployment)
}

fn is_rollout_complete(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let desired = deployment["spec"]["replicas"].as_i64();
    let counts = [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ];
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && counts.iter().all(|field| status[*field].as_i64() == desired)
}

async fn snapshot(mesh: &TestMesh) -> Value {
    let mut items = Vec::new();
    for path in KINDS {
        let list = mesh.get(path).await.unwrap();
        let kind = list["kind"].as_str().unwrap().trim_end_matches("List").to_owned();
        for item in list["items"].as_array().unwrap() {
            let mut item = item.clone();
            item["apiVersion"] = list["apiVersion"].clone();
            item["kind"] = kind.clone().into();
            items.push(item);
        }
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// Returns start and end of each workload's migration, in milliseconds since the change.
async fn observe_migration(mesh: &mut TestMesh) -> Value {
    let begin = Instant::now();
    let now = |begin: Instant| u64::try_from(begin.elapsed().as_millis()).unwrap();
    let mut migrations: BTreeMap<String, (i64, u64, Option<u64>)> = BTreeMap::new();
    let migration = loop {
        for deployment in mesh.list("/apis/apps/v1/deployments").await {
            let metadata = &deployment["metadata"];
            let Some(record) = metadata["annotations"][MIGRATION_RECORD].as_str() else {
                continue;
            };
            let record: Value = serde_json::from_str(record).unwrap();
            if record["revision"] != NEW {
                continue;
            }
            let name = [&metadata["namespace"], &metadata["name"]].map(|word| word.as_str().unwrap());
            let batch = record["batch"].as_i64().unwrap();
            let migration_times = migrations
                .entry(name.join("/"))
                .or_insert((batch, now(begin), None));
            if migration_times.2.is_none() && is_rollout_complete(&deployment) {
                migration_times.2 = Some(now(begin));
            }
        }
        let migration = mesh.get(ISTIO).await.unwrap_or_default()["status"]["workloadMigration"].clone();
        if migration["state"] == "Failed" {
            break migration;
        }
        assert!(
            begin.elapsed() < Duration::from_mins(3),
            "{}",
            mesh.description().await
        );
        tokio::time::sleep(INTERVAL).await;
    };
    let end = now(begin);
    let failed = |name: &str| {
        let failures = migration["failures"].as_array().cloned().unwrap_or_default();
        failures.iter().any(|one| {
            format!(
                "{}/{}",
                one["namespace"].as_str().unwrap(),
                one["name"].as_str().unwrap()
            ) == name
        })
    };
    let workloads: Vec<Value> = migrations
        .iter()
        .map(|(name, (batch, start, completed))| {
            let failed = failed(name);
            let end = if failed { end } else { completed.unwrap_or(end) };
            json!({"name": name, "batch": batch, "start": start, "end": end, "failed": failed})
        })
        .collect();
    let first = migrations
        .values()
        .map(|migration_times| migration_times.1)
        .min()
        .unwrap_or_default();
    json!({"workloads": workloads, "moving": end - first, "controlPlane": first})
}
