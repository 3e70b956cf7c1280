//! Measures speed and size of a cluster with 10,000 Deployments and 30,000 Pods: memory, reads and a mix of
//! writes on one core. Then compares the cost of a write in a small cluster and in a cluster of ten times the
//! size. Prints one line per figure: `name value unit`. An argument divides all counts.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "the example prints its figures"
)]
#![allow(clippy::cast_precision_loss, reason = "figures are rounded")]

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use http::Method;
use mainstay_sim::api::{ApiRequest, Query};
use mainstay_sim::auth::User;
use mainstay_sim::{Cluster, Connection, Options};
use serde_json::{Value, json};

const DEPLOYMENTS: usize = 10_000;
const READS: usize = 200_000;
const WRITES: usize = 40_000;
const BATCHES: usize = 10;
const PODS_PER_DEPLOYMENT: usize = 3;
const DEPLOYMENTS_PER_NAMESPACE: usize = 100;

fn main() {
    let divisor = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let divisor: usize = divisor.unwrap_or(1).max(1);
    let test_cluster = TestCluster::new(DEPLOYMENTS / divisor, false);
    test_cluster.read(READS / divisor);
    test_cluster.write(WRITES / divisor);
    test_cluster.list();
    print_figure("memory_in_the_end", resident_mib(), "MiB");
    drop(test_cluster);
    compare_growth(divisor);
}

fn print_figure(name: &str, value: f64, unit: &str) {
    println!("{name} {value:.2} {unit}");
}

/// Compares the cost of a write in a small and in a large cluster, both with active watches and controllers.
fn compare_growth(divisor: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let cost = |deployments: usize| {
        let test_cluster = TestCluster::new(deployments, true);
        runtime.block_on(test_cluster.write_watched(4_000 / divisor.min(10)))
    };
    let (small, large) = (cost(DEPLOYMENTS / divisor / 10), cost(DEPLOYMENTS / divisor));
    print_figure("watched_write_small", small * 1e6, "µs");
    print_figure("watched_write_large", large * 1e6, "µs");
    print_figure("watched_write_growth", large / small, "times");
}

/// A cluster with a number of Deployments, three Pods per Deployment, and a hundred Deployments per
/// namespace.
struct TestCluster {
    connection: Connection,
    deployments: usize,
    /// Whether this is the first measurement, in which creates and memory are reported.
    first: bool,
}

impl TestCluster {
    fn new(deployments: usize, automatic: bool) -> Self {
        let options = Options {
            trace: false,
            automatic,
            ..Options::default()
        };
        let cluster = Cluster::new(options);
        let test_cluster = Self {
            connection: cluster.connect("bench"),
            deployments,
            first: !automatic,
        };
        test_cluster.fill();
        test_cluster
    }

    fn fill(&self) {
        for number in 0..self.deployments.div_ceil(DEPLOYMENTS_PER_NAMESPACE) {
            let namespace = json!({"metadata": {"name": format!("ns-{number}")}});
            self.post("/api/v1/namespaces", &namespace);
            let account = json!({"metadata": {"name": "default"}});
            let path = format!("/api/v1/namespaces/ns-{number}/serviceaccounts");
            // The controllers of the cluster may have created it already.
            self.send(call(Method::POST, &path, "", JSON, &account));
        }
        let watch = CpuTimer::begin();
        for number in 0..self.deployments {
            self.post(
                &format!("/apis/apps/v1/{}/deployments", location(number)),
                &deployment(number),
            );
        }
        for number in 0..self.deployments * PODS_PER_DEPLOYMENT {
            self.post(
                &format!("/api/v1/{}/pods", location(number / PODS_PER_DEPLOYMENT)),
                &pod(number),
            );
        }
        if self.first {
            print_figure(
                "creates",
                watch.rate(self.deployments * (PODS_PER_DEPLOYMENT + 1)),
                "per_second",
            );
            print_figure("memory_when_filled", resident_mib(), "MiB");
        }
    }

    fn read(&self, count: usize) {
        let watch = CpuTimer::begin();
        for number in 0..count {
            self.get(&pod_path(number % (self.deployments * PODS_PER_DEPLOYMENT)));
        }
        print_figure("reads", watch.rate(count), "per_second");
    }

    fn list(&self) {
        let watch = CpuTimer::begin();
        let length = self.get("/api/v1/pods").len();
        print_figure("list_of_all_pods", watch.seconds() * 1e3, "ms");
        print_figure("list_of_all_pods_size", length as f64 / f64::from(1 << 20), "MiB");
    }

    /// Runs the mix of writes: each kind of write, equally often. The time for building requests is not
    /// included.
    fn write(&self, count: usize) {
        let (each, mut spent, mut done) = (count / MIX.len(), 0.0, 0.0);
        let mut rates = Vec::new();
        for (name, make) in &MIX {
            let mut seconds = 0.0;
            for batch in 0..BATCHES {
                let (from, to) = (each * batch / BATCHES, each * (batch + 1) / BATCHES);
                let calls: Vec<ApiRequest> = (from..to).map(|number| make(self, number)).collect();
                let watch = CpuTimer::begin();
                for call in calls {
                    self.change(call);
                }
                seconds += watch.seconds();
            }
            rates.push((name, each as f64 / seconds));
            (spent, done) = (spent + seconds, done + each as f64);
        }
        print_figure("writes", done / spent, "per_second");
        for (name, rate) in rates {
            print_figure(name, rate, "per_second");
        }
    }

    /// Runs the mix of writes with one watch of pods per namespace and ten watches of all namespaces. Returns
    /// the seconds per write.
    async fn write_watched(&self, count: usize) -> f64 {
        let local = tokio::task::LocalSet::new();
        let paths = (0..self.deployments.div_ceil(DEPLOYMENTS_PER_NAMESPACE))
            .map(|number| format!("/api/v1/namespaces/ns-{number}/pods"));
        for path in paths.chain((0..10).map(|_| "/api/v1/pods".to_owned())) {
            let version = self.connection.cluster().with(|state| state.store.version());
            let call = call(
                Method::GET,
                &path,
                &format!("watch=true&resourceVersion={version}"),
                "",
                &Value::Null,
            );
            let connection = self.connection.clone();
            local.spawn_local(async move {
                let mut body = connection.send(call).await.expect("no faults").into_body();
                while body.next().await.is_some() {}
            });
        }
        let watch = CpuTimer::begin();
        local
            .run_until(async {
                for number in 0..count {
                    let make = MIX[number % MIX.len()].1;
                    self.change(make(self, number / MIX.len()));
                    tokio::task::yield_now().await;
                }
            })
            .await;
        watch.seconds() / count as f64
    }

    fn post(&self, path: &str, value: &Value) {
        self.change(call(Method::POST, path, "", JSON, value));
    }

    fn get(&self, path: &str) -> Bytes {
        self.send(call(Method::GET, path, "", "", &Value::Null)).1
    }

    fn change(&self, call: ApiRequest) {
        let (code, body) = self.send(call);
        assert!(code < 300, "{}", String::from_utf8_lossy(&body));
    }

    fn send(&self, call: ApiRequest) -> (u16, Bytes) {
        let response = self
            .connection
            .send(call)
            .now_or_never()
            .expect("nothing to wait for")
            .expect("no faults");
        let code = response.status().as_u16();
        let body = response.into_body().next().now_or_never().flatten();
        (code, body.unwrap_or_default())
    }
}

type MakeRequest = fn(&TestCluster, usize) -> ApiRequest;

/// Kinds of writes of clients and controllers.
const MIX: [(&str, MakeRequest); 8] = [
    ("writes_create_pod", |test_cluster, number| {
        let at = number % test_cluster.deployments;
        let mut value = pod(at);
        value["metadata"]["name"] = format!("extra-{number}").into();
        call(
            Method::POST,
            &format!("/api/v1/{}/pods", location(at)),
            "",
            JSON,
            &value,
        )
    }),
    ("writes_update_deployment", |test_cluster, number| {
        let path = deployment_path(number % test_cluster.deployments);
        let mut value: Value = serde_json::from_slice(&test_cluster.get(&path)).expect("JSON");
        value["spec"]["replicas"] = (number % 7).into();
        call(Method::PUT, &path, "", JSON, &value)
    }),
    ("writes_update_deployment_status", |test_cluster, number| {
        let path = deployment_path(number % test_cluster.deployments);
        let mut value: Value = serde_json::from_slice(&test_cluster.get(&path)).expect("JSON");
        value["status"] = json!({
            "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": number % 4, "availableReplicas": 3,
            "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": number.to_string()}],
        });
        call(
            Method::PUT,
            &format!("{path}/status"),
            "fieldManager=deployment-controller",
            "application/json",
            &value,
        )
    }),
    ("writes_patch_pod_status", |test_cluster, number| {
        let path = format!(
            "{}/status",
            pod_path(number % (test_cluster.deployments * PODS_PER_DEPLOYMENT))
        );
        let change = json!({"status": {
            "phase": "Running", "podIP": format!("10.1.0.{}", number % 250), "message": number.to_string(),
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}],
        }});
        call(
            Method::PATCH,
            &path,
            "fieldManager=kubelet",
            "application/strategic-merge-patch+json",
            &change,
        )
    }),
    ("writes_merge_patch_pod", |test_cluster, number| {
        let change = json!({"metadata": {"annotations": {"seen": number.to_string()}}});
        let path = pod_path(number % (test_cluster.deployments * PODS_PER_DEPLOYMENT));
        call(Method::PATCH, &path, "", "application/merge-patch+json", &change)
    }),
    ("writes_strategic_patch_deployment", |test_cluster, number| {
        let change =
            json!({"spec": {"template": {"metadata": {"annotations": {"restartedAt": number.to_string()}}}}});
        let path = deployment_path(number % test_cluster.deployments);
        call(
            Method::PATCH,
            &path,
            "",
            "application/strategic-merge-patch+json",
            &change,
        )
    }),
    ("writes_apply_deployment", |test_cluster, number| {
        let at = number % test_cluster.deployments;
        let change = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": format!("deployment-{at}"), "labels": {"applied": (number % 3).to_string()}},
            "spec": {"template": {"spec": {"containers": [{"name": "app", "env": [{"name": "TURN", "value": number.to_string()}]}]}}},
        });
        let query = "fieldManager=mainstay&force=true";
        call(
            Method::PATCH,
            &deployment_path(at),
            query,
            "application/apply-patch+yaml",
            &change,
        )
    }),
    ("writes_delete_pod", |test_cluster, number| {
        let path = format!(
            "/api/v1/{}/pods/extra-{number}",
            location(number % test_cluster.deployments)
        );
        call(Method::DELETE, &path, "", "", &Value::Null)
    }),
];

fn location(deployment: usize) -> String {
    format!("namespaces/ns-{}", deployment / DEPLOYMENTS_PER_NAMESPACE)
}

fn pod_path(number: usize) -> String {
    format!(
        "/api/v1/{}/pods/pod-{number}",
        location(number / PODS_PER_DEPLOYMENT)
    )
}

fn deployment_path(number: usize) -> String {
    format!(
        "/apis/apps/v1/{}/deployments/deployment-{number}",
        location(number)
    )
}

const JSON: &str = "application/json";

fn call(method: Method, path: &str, query: &str, content_type: &str, body: &Value) -> ApiRequest {
    let body = match body {
        Value::Null => Bytes::new(),
        body => body.to_string().into(),
    };
    ApiRequest {
        client: "bench".into(),
        user: User::admin(),
        impersonation: None,
        method,
        path: path.to_owned(),
        query: Query::parse(query),
        accept: "application/json".into(),
        content_type: content_type.to_owned(),
        user_agent: "bench/1".into(),
        body,
        webhook_replies: Vec::new(),
    }
}

/// Timer of the CPU time of this thread, which does not depend on the load of the machine.
struct CpuTimer(f64);

impl CpuTimer {
    fn begin() -> Self {
        Self(processor_seconds())
    }

    fn seconds(&self) -> f64 {
        (processor_seconds() - self.0).max(0.001)
    }

    fn rate(&self, count: usize) -> f64 {
        count as f64 / self.seconds()
    }
}

/// Returns the CPU time of this thread in seconds.
fn processor_seconds() -> f64 {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = counts
        .split_whitespace()
        .next()
        .and_then(|text| text.parse::<f64>().ok());
    spent.unwrap_or(0.0) / 1e9
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

fn pod_spec() -> Value {
    json!({
        "serviceAccountName": "default",
        "containers": [
            {
                "name": "app", "image": "registry.example/app:1.2.3",
                "ports": [{"name": "http", "containerPort": 8080}],
                "env": [{"name": "A", "value": "1"}, {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
                "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}],
            },
            {
                "name": "proxy", "image": "registry.example/proxy:1.30.3",
                "args": ["proxy", "sidecar", "--domain", "$(POD_NAMESPACE).svc.cluster.local", "--log_output_level=default:info"],
                "ports": [{"name": "envoy-prom", "containerPort": 15090}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
            },
        ],
        "volumes": [{"name": "config", "configMap": {"name": "app"}}],
    })
}

fn deployment(number: usize) -> Value {
    let labels = json!({"app": format!("app-{number}"), "version": "v1"});
    json!({
        "metadata": {"name": format!("deployment-{number}"), "labels": labels},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod_spec()}},
    })
}

fn pod(number: usize) -> Value {
    let labels = json!({"app": format!("app-{}", number / PODS_PER_DEPLOYMENT), "version": "v1", "pod-template-hash": "abcdef"});
    json!({"metadata": {"name": format!("pod-{number}"), "labels": labels}, "spec": pod_spec()})
}
