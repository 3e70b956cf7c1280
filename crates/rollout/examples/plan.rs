//! Measures planning of one deployment with 100 clusters, 20 components and 3 revisions.
//!
//! Prints a line per state with the median time of several plans and the number of steps, followed by the
//! memory of the process.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "an example that measures time and memory"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use mainstay_api::delivery::{
    ApplicationDeployment, ApplicationRevision, DEPLOYMENT_LABEL, FINALIZER, Provider, REVISION_LABEL,
    RenderedComponent, RevisionSpec,
};
use mainstay_rollout::plan;
use mainstay_rollout::plan::{Action, Plan};
use mainstay_rollout::snapshot::{ClusterView, Inventory, Snapshot, Version};
use mainstay_rollout::traffic::{WEIGHTS, parse_weights};
use serde_json::{Value, json};

const CLUSTERS: usize = 100;
const COMPONENTS: usize = 20;
const REPLICAS: u32 = 3;
const RUNS: usize = 20;

fn revision(name: &str) -> ApplicationRevision {
    let component = |number: usize| {
        let container = json!({
            "name": "main", "image": format!("registry.example.com/shop/{number}:{name}"),
            "ports": [{"containerPort": 8080}],
            "env": [{"name": "REVISION", "value": name}, {"name": "NUMBER", "value": number.to_string()}],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
        });
        RenderedComponent {
            name: format!("component-{number}"),
            manifests: vec![json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "main"},
                "spec": {"template": {"spec": {"containers": [container]}}},
            })],
        }
    };
    let spec = RevisionSpec {
        application_name: "shop".into(),
        revision: 1,
        hash: name.into(),
        components: (0..COMPONENTS).map(component).collect(),
    };
    ApplicationRevision::new("default", name, spec)
}

fn spec(weights: [u32; 3]) -> Value {
    let names = ["shop-v1", "shop-v2", "shop-v3"];
    let rule = |number: usize| {
        let target = |(name, weight): (&&str, &u32)| json!({"revisionName": name, "componentName": format!("component-{number}"), "port": 80, "weight": weight});
        let targets: Vec<Value> = names.iter().zip(&weights).map(target).collect();
        json!({"match": [{"uri": {"prefix": format!("/{number}")}}], "weightedTargets": targets})
    };
    let placement = json!([{"clusterSelector": {"count": "All"}, "distribution": {"replicas": REPLICAS}}]);
    let revision = |name: &&str| json!({"revisionName": name, "placement": placement});
    json!({
        "traffic": {"hosts": ["shop.example.com"], "http": (0..COMPONENTS).map(rule).collect::<Vec<_>>()},
        "appRevisions": names.iter().map(revision).collect::<Vec<_>>(),
    })
}

fn snapshot() -> Snapshot {
    let mut deployment = ApplicationDeployment::new(
        "default",
        "shop",
        serde_json::from_value(spec([50, 30, 20])).unwrap(),
    );
    deployment.metadata.finalizers = vec![FINALIZER.into()];
    let view = || ClusterView {
        is_deleted: false,
        last_error: None,
        is_schedulable: true,
        providers: BTreeSet::from([Provider::Istio]),
        ..ClusterView::default()
    };
    let mut clusters: BTreeMap<String, ClusterView> = (0..CLUSTERS)
        .map(|number| (format!("cluster-{number}"), view()))
        .collect();
    clusters.insert(String::new(), view());
    Snapshot {
        now: Timestamp::from_second(1_800_000_000).unwrap(),
        deployment,
        revisions: ["shop-v1", "shop-v2", "shop-v3"]
            .iter()
            .map(|name| ((*name).to_owned(), Arc::new(revision(name))))
            .collect(),
        clusters,
        templates: BTreeMap::new(),
        actions: Vec::new(),
        measurements: Vec::new(),
    }
}

/// Executes a plan on the snapshot. Pods become available immediately.
fn execute(snapshot: &mut Snapshot, plan: &Plan) {
    snapshot.deployment.status = plan.status.clone();
    for step in plan.prepare.iter().chain(&plan.finish) {
        if let Action::WriteInventory(write) = &step.action {
            let view = snapshot.clusters.get_mut(&write.cluster).unwrap();
            view.inventory = Inventory {
                version: Some(Version::default()),
                objects: write.objects.clone(),
            };
        }
    }
    for (cluster, steps) in &plan.clusters {
        let view = snapshot.clusters.get_mut(cluster).unwrap();
        for step in steps {
            execute_action(view, &step.action);
        }
    }
    snapshot.now += SignedDuration::from_secs(60);
}

fn execute_action(view: &mut ClusterView, action: &Action) {
    match action {
        Action::Apply(apply) => {
            let text = |pointer: String| {
                let value = apply.manifest.object.pointer(&pointer);
                value.and_then(Value::as_str).map(str::to_owned)
            };
            let label = |name: &str| text(format!("/metadata/labels/{}", name.replace('/', "~1")));
            let weights = text(format!("/metadata/annotations/{}", WEIGHTS.replace('/', "~1")));
            let object = view.objects.entry(apply.manifest.key.clone()).or_default();
            object.deployment = label(DEPLOYMENT_LABEL);
            object.revision = label(REVISION_LABEL);
            object.hash = Some(apply.manifest.hash.clone());
            object.is_accepted = true;
            object.weights = weights.and_then(|text| parse_weights(&text)).unwrap_or_default();
            if let Some(replicas) = apply.replicas {
                (object.replicas, object.pods, object.available) = (replicas, replicas, replicas);
            }
        }
        Action::Scale(scale) => {
            if let Some(object) = view.objects.get_mut(&scale.key) {
                (object.replicas, object.pods, object.available) =
                    (scale.replicas, scale.replicas, scale.replicas);
            }
        }
        Action::Delete(delete) => drop(view.objects.remove(&delete.key)),
        _ => {}
    }
}

/// Plans several times and prints the median time. Returns the plan.
fn measure(title: &str, snapshot: &Snapshot) -> Plan {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(plan(std::hint::black_box(snapshot)));
            start.elapsed()
        })
        .collect();
    times.sort();
    let median = times.get(RUNS / 2).copied().unwrap_or_default();
    let planned = plan(snapshot);
    println!(
        "rollout plan, {title}: {:.1} ms median, {} steps",
        median.as_secs_f64() * 1000.0,
        planned.steps().count()
    );
    planned
}

fn settle(snapshot: &mut Snapshot) {
    for _ in 0..50 {
        let planned = plan(snapshot);
        if planned.is_empty() {
            return;
        }
        execute(snapshot, &planned);
    }
}

fn main() {
    println!("{CLUSTERS} clusters, {COMPONENTS} components, 3 revisions");
    let mut snapshot = snapshot();
    let begun = plan(&snapshot);
    execute(&mut snapshot, &begun);
    measure("first deployment", &snapshot);
    settle(&mut snapshot);
    measure("steady state", &snapshot);
    snapshot.deployment.spec = serde_json::from_value(spec([10, 30, 60])).unwrap();
    let begun = plan(&snapshot);
    execute(&mut snapshot, &begun);
    measure("change of weights", &snapshot);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    println!("rollout plan, peak memory: {}", peak.unwrap_or("unknown").trim());
}
