//! What a rehearsal is held against: measures how long pods take, takes a snapshot, upgrades with one workload held, and writes down what happened.
//!
//! The rehearsal itself is another program's: `cargo xtask prove traffic` gives it the snapshot and compares.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mainstay_testkit::repository_root;
use serde_json::{Value, json};

use crate::made::{GATEWAY, NEW, NEW_VERSION, OLD, SHOPS};
use crate::town::{ISTIO, Town};
use crate::upgrade::{under_load, until_all_on};

/// What a snapshot holds.
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
/// How often is looked: what is told to the tenth of a second must be seen in less.
const GLANCE: Duration = Duration::from_millis(40);
const MARK: &str = "sailoperator.io/migration";

pub async fn what_a_rehearsal_must_foretell() {
    let mut town = Town::open().await;
    until_all_on(&mut town, OLD).await;
    let held = &SHOPS[1];
    let (_, observed) = under_load(&mut town, async |town| {
        let readiness = measure(town, &format!("{}/{}", held.namespace, held.name)).await;
        let annotations = json!({"metadata": {"annotations": {"sailoperator.io/readiness-timeout": "8s"}}});
        town.merge(&deployment(held.namespace, held.name), &annotations)
            .await;
        std::fs::write(town.hold(held.name), "").unwrap();
        keep("before.json", &snapshot(town).await);
        keep("readiness.json", &readiness);
        town.change_version(NEW_VERSION).await;
        watch(town).await
    })
    .await;
    println!("rehearsal: {observed}");
    keep("observed.json", &observed);
}

fn keep(name: &str, value: &Value) {
    let folder = repository_root().join("target/prove/traffic");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), serde_json::to_vec_pretty(value).unwrap()).unwrap();
}

fn deployment(namespace: &str, name: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
}

/// Restarts every workload as the migration will, two at a time, and sees how long its pods take; the one that will be held takes for ever.
async fn measure(town: &mut Town, held: &str) -> Value {
    let mut times: BTreeMap<String, Value> = BTreeMap::new();
    let all: Vec<_> = SHOPS.iter().chain([&GATEWAY]).collect();
    for pair in all.chunks(2) {
        for shop in pair {
            let restart = json!({"spec": {"template": {"metadata": {"annotations": {"restarted": "once"}}}}});
            town.merge(&deployment(shop.namespace, shop.name), &restart).await;
        }
        let mut births: Vec<Births> = pair.iter().map(|_| Births::default()).collect();
        loop {
            let mut settled = true;
            for (shop, births) in pair.iter().zip(&mut births) {
                settled &= is_settled(town, shop.namespace, shop.name, 2).await;
                births.look(
                    &town
                        .list(&format!("/api/v1/namespaces/{}/pods", shop.namespace))
                        .await,
                );
            }
            if settled {
                break;
            }
            tokio::time::sleep(GLANCE).await;
        }
        for (shop, births) in pair.iter().zip(births) {
            let name = format!("{}/{}", shop.namespace, shop.name);
            times.insert(name, json!(format!("{}ms", births.mean().as_millis())));
        }
    }
    times.insert(held.to_owned(), json!("never"));
    town.note(&format!("readiness: {times:?}"));
    json!(times)
}

/// From the first sight of a pod to its being ready.
#[derive(Default)]
struct Births {
    seen: BTreeMap<String, (Instant, Option<Instant>)>,
}

impl Births {
    fn look(&mut self, pods: &[Value]) {
        for pod in pods {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let conditions = pod["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let ready = conditions
                .iter()
                .any(|one| one["type"] == "Ready" && one["status"] == "True");
            let known = self.seen.contains_key(&name);
            // Whoever was ready when first seen was there before.
            if !known && ready {
                continue;
            }
            let entry = self.seen.entry(name).or_insert((Instant::now(), None));
            if ready && entry.1.is_none() {
                entry.1 = Some(Instant::now());
            }
        }
    }

    fn mean(&self) -> Duration {
        let times = self
            .seen
            .values()
            .filter_map(|(born, ready)| Some((*ready)? - *born));
        let times: Vec<Duration> = times.collect();
        times.iter().sum::<Duration>() / u32::try_from(times.len().max(1)).unwrap()
    }
}

/// Whether a rollout is over; `at_least` is the generation it began with.
async fn is_settled(town: &Town, namespace: &str, name: &str, at_least: i64) -> bool {
    let Some(deployment) = town.get(&deployment(namespace, name)).await else {
        return false;
    };
    deployment["metadata"]["generation"].as_i64() >= Some(at_least) && has_rolled(&deployment)
}

fn has_rolled(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let wanted = deployment["spec"]["replicas"].as_i64();
    let counts = [
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ];
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && counts.iter().all(|field| status[*field].as_i64() == wanted)
}

async fn snapshot(town: &Town) -> Value {
    let mut items = Vec::new();
    for path in KINDS {
        let list = town.get(path).await.unwrap();
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

/// When each workload was sent and when it came up or failed, in milliseconds since the change.
async fn watch(town: &mut Town) -> Value {
    let begin = Instant::now();
    let now = |begin: Instant| u64::try_from(begin.elapsed().as_millis()).unwrap();
    let mut spans: BTreeMap<String, (i64, u64, Option<u64>)> = BTreeMap::new();
    let migration = loop {
        for deployment in town.list("/apis/apps/v1/deployments").await {
            let metadata = &deployment["metadata"];
            let Some(mark) = metadata["annotations"][MARK].as_str() else {
                continue;
            };
            let mark: Value = serde_json::from_str(mark).unwrap();
            if mark["revision"] != NEW {
                continue;
            }
            let name = [&metadata["namespace"], &metadata["name"]].map(|word| word.as_str().unwrap());
            let batch = mark["batch"].as_i64().unwrap();
            let span = spans.entry(name.join("/")).or_insert((batch, now(begin), None));
            if span.2.is_none() && has_rolled(&deployment) {
                span.2 = Some(now(begin));
            }
        }
        let migration = town.get(ISTIO).await.unwrap_or_default()["status"]["workloadMigration"].clone();
        if migration["state"] == "Failed" {
            break migration;
        }
        assert!(begin.elapsed() < Duration::from_mins(3), "{}", town.story().await);
        tokio::time::sleep(GLANCE).await;
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
    let workloads: Vec<Value> = spans
        .iter()
        .map(|(name, (batch, start, came_up))| {
            let failed = failed(name);
            let end = if failed { end } else { came_up.unwrap_or(end) };
            json!({"name": name, "batch": batch, "start": start, "end": end, "failed": failed})
        })
        .collect();
    let first = spans.values().map(|span| span.1).min().unwrap_or_default();
    json!({"workloads": workloads, "moving": end - first, "controlPlane": first})
}
