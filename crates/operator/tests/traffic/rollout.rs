//! Tests a canary under load that the rollout controller executes: shares at each step, an abort, a
//! complete rollout, and a negative control without a readiness probe. Routes are Istio's, or those of
//! Gateway API.

use std::ops::Range;
use std::time::Duration;

use mainstay_cluster::definitions;
use mainstay_testkit::http::Connection;
use mainstay_testkit::mesh::{APP_IMAGE, APP_PORT, HOLD_FILE, Load, READY, Results};
use serde_json::{Value, json};

use crate::fixtures::{self, GATEWAY, OLD};
use crate::gateway_api::gateway_api_definitions;
use crate::test_mesh::TestMesh;
use crate::upgrade::{check_no_failures, summary};

const API: &str = "delivery.mainstay.dev/v1alpha1";
const NAMESPACE: &str = "shop";
/// Name of the application, its deployment and its route.
const SHOP: &str = "shop";
const COMPONENT: &str = "web";
/// The `Host` header of the load's requests.
const HOST: &str = "mesh.test";
const REPLICAS: u32 = 2;

/// Requests per second.
const RATE: u32 = 300;
/// Maximum difference between a measured share and the weight, in percentage points.
const TOLERANCE: f64 = 2.0;
/// Maximum time from the write of a route until every proxy uses it.
const PROPAGATION: Duration = Duration::from_secs(2);

/// Kind of the generated route.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RouteKind {
    VirtualService,
    HttpRoute,
}

impl RouteKind {
    /// Returns the traffic settings that refer to the gateway.
    fn traffic(self) -> Value {
        match self {
            Self::VirtualService => json!({
                "provider": "Istio", "gateways": [format!("{}/{}", GATEWAY.namespace, GATEWAY.name)],
            }),
            Self::HttpRoute => json!({
                "provider": "GatewayAPI",
                "gatewayRefs": [{"name": GATEWAY.name, "namespace": GATEWAY.namespace}],
            }),
        }
    }

    /// Returns the gateway.
    fn gateway(self) -> Vec<Value> {
        match self {
            Self::VirtualService => fixtures::gateway(),
            Self::HttpRoute => fixtures::gateway_of_gateway_api(),
        }
    }

    /// Returns name and weight of each backend in the stored route, or `None` if there is no route.
    async fn weights(self, mesh: &TestMesh) -> Option<Vec<(String, u64)>> {
        let (path, routes, name) = match self {
            Self::VirtualService => (
                "networking.istio.io/v1/namespaces/shop/virtualservices",
                "/spec/http/0/route",
                "/destination/host",
            ),
            Self::HttpRoute => (
                "gateway.networking.k8s.io/v1/namespaces/shop/httproutes",
                "/spec/rules/0/backendRefs",
                "/name",
            ),
        };
        let route = mesh.get(&format!("/apis/{path}/{SHOP}")).await?;
        let backends = route.pointer(routes)?.as_array()?.iter();
        let weight = |backend: &Value| {
            let name = backend.pointer(name)?.as_str()?.to_owned();
            Some((name, backend["weight"].as_u64()?))
        };
        backends.map(weight).collect()
    }
}

fn revision(number: u32) -> String {
    format!("{SHOP}-v{number}")
}

/// Returns the number of requests for which [`TOLERANCE`] is at least 3.5 standard deviations.
fn needed_requests(weight: u32) -> u32 {
    let share = f64::from(weight) / 100.0;
    let sigma = TOLERANCE / 100.0 / 3.5;
    let needed = share * (1.0 - share) / (sigma * sigma);
    (needed as u32).max(3 * RATE)
}

/// Returns an Application whose pods do not serve while a file exists, with or without a readiness probe.
fn application(mesh: &TestMesh, number: u32, is_probed: bool) -> Value {
    let hold = mesh.hold_file(&revision(number)).display().to_string();
    let mut container = json!({
        "name": "app", "image": APP_IMAGE, "env": [{"name": HOLD_FILE, "value": hold}],
        "ports": [{"name": "http", "containerPort": APP_PORT}],
        "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
    });
    if is_probed {
        container["readinessProbe"] = json!({"httpGet": {"path": READY, "port": APP_PORT}});
    }
    let metadata = json!({"labels": {"app": COMPONENT}});
    let object = fixtures::deployment(NAMESPACE, COMPONENT, REPLICAS, &metadata, &container);
    json!({
        "apiVersion": API, "kind": "Application",
        "metadata": {
            "name": SHOP, "namespace": NAMESPACE,
            "annotations": {"app.oam.dev/rollout-template": "true"},
        },
        "spec": {"components": [
            {"name": COMPONENT, "type": "k8s-objects", "properties": {"objects": [object]}},
        ]},
    })
}

/// Returns the deployment of a revision. Changes are canaries that wait at 10 % and 50 %.
fn deployment(kind: RouteKind, number: u32) -> Value {
    let target =
        json!({"revisionName": revision(number), "componentName": COMPONENT, "port": 80, "weight": 100});
    let mut deployment = json!({
        "apiVersion": API, "kind": "ApplicationDeployment",
        "metadata": {"name": SHOP, "namespace": NAMESPACE},
        "spec": {
            "appRevisions": [{
                "revisionName": revision(number),
                "placement": [{"distribution": {"replicas": REPLICAS}}],
            }],
            "traffic": {"hosts": [HOST], "drainSeconds": 3, "http": [{"weightedTargets": [target]}]},
            "strategy": {
                "type": "Canary", "maxSurge": "100%", "maxUnavailable": 0,
                "steps": [
                    {"setWeight": 10}, {"pause": {}}, {"setWeight": 50}, {"pause": {}}, {"setWeight": 100},
                ],
            },
        },
    });
    let traffic = deployment["spec"]["traffic"].as_object_mut().unwrap();
    traffic.extend(kind.traffic().as_object().unwrap().clone());
    deployment
}

fn path(plural: &str, name: &str) -> String {
    format!("/apis/{API}/namespaces/{NAMESPACE}/{plural}/{name}")
}

/// A rollout under load.
struct Canary {
    kind: RouteKind,
    mesh: TestMesh,
    load: Option<Load>,
    actions: u32,
    windows: Vec<Window>,
}

/// A time range, and the weight of a revision in this range.
struct Window {
    revision: String,
    weight: u32,
    range: Range<Duration>,
}

impl Canary {
    /// Starts a mesh with a gateway and the first revision, and the load.
    async fn start(kind: RouteKind) -> Self {
        let mesh = TestMesh::without_apps().await;
        if kind == RouteKind::HttpRoute {
            let definitions = gateway_api_definitions();
            definitions::install(&mesh.client, &definitions, |_, _| {})
                .await
                .unwrap();
        }
        for (name, label) in [
            (GATEWAY.namespace, GATEWAY.label),
            (NAMESPACE, Some(("istio.io/rev", OLD))),
        ] {
            mesh.create(&fixtures::namespace(name, label)).await;
        }
        for object in kind.gateway() {
            mesh.create(&object).await;
        }
        mesh.create(&application(&mesh, 1, true)).await;
        let mut canary = Self {
            kind,
            mesh,
            load: None,
            actions: 0,
            windows: Vec::new(),
        };
        canary.until_revision(1).await;
        canary.mesh.create(&deployment(kind, 1)).await;
        canary.until_phase("Healthy").await;
        canary.until_responding().await;
        canary.start_load().await;
        canary
    }

    async fn start_load(&mut self) {
        let gateway = self.mesh.mesh.address(GATEWAY.namespace, GATEWAY.name, 80).await;
        self.load = Some(Load::start(gateway.unwrap(), RATE));
    }

    async fn until_responding(&mut self) {
        let gateway = self.mesh.mesh.address(GATEWAY.namespace, GATEWAY.name, 80).await;
        let gateway = gateway.unwrap();
        let request = move || Connection::open(gateway, Duration::from_secs(1))?.get(HOST, "/");
        self.mesh
            .until("the first response", 60, async |_| {
                let reply = tokio::task::spawn_blocking(request).await.unwrap();
                reply.ok().filter(|reply| reply.code == 200).map(drop)
            })
            .await;
        self.mesh.note("first response");
    }

    async fn until_revision(&mut self, number: u32) {
        let path = path("applicationrevisions", &revision(number));
        let what = format!("revision {number} is recorded");
        self.mesh
            .until(&what, 60, async |mesh| mesh.get(&path).await.map(drop))
            .await;
    }

    async fn until_phase(&mut self, phase: &str) {
        let path = path("applicationdeployments", SHOP);
        self.mesh
            .until(phase, 120, async |mesh| {
                let object = mesh.get(&path).await?;
                let status = &object["status"];
                let is_current = status["observedGeneration"] == object["metadata"]["generation"];
                (is_current && status["phase"] == phase).then_some(())
            })
            .await;
        self.mesh.note(phase);
    }

    /// Records a revision and starts its rollout.
    async fn roll_out(&mut self, number: u32, is_probed: bool) {
        let application = application(&self.mesh, number, is_probed);
        let change = json!({"spec": application["spec"]});
        self.mesh.merge_patch(&path("applications", SHOP), &change).await;
        self.until_revision(number).await;
        let change = json!({"spec": deployment(self.kind, number)["spec"]});
        self.mesh
            .merge_patch(&path("applicationdeployments", SHOP), &change)
            .await;
        self.mesh.note(&format!("rollout of revision {number}"));
    }

    /// Waits until the rollout waits for a promotion at a step with this weight.
    async fn until_waiting(&mut self, number: u32, weight: u32) {
        let (path, kind) = (path("applicationdeployments", SHOP), self.kind);
        let what = format!("{weight} % on revision {number}");
        self.mesh
            .until(&what, 120, async |mesh| {
                let object = mesh.get(&path).await?;
                let rollout = &object["status"]["rollout"];
                let step = rollout["step"].as_u64().unwrap_or(0) as usize;
                let is_pause = !object["spec"]["strategy"]["steps"][step]["pause"].is_null();
                let is_waiting = is_pause && !rollout["stepReachedAt"].is_null();
                let target = (revision(number), u64::from(weight));
                (is_waiting && kind.weights(mesh).await?.contains(&target)).then_some(())
            })
            .await;
        self.mesh.note(&what);
    }

    /// Waits for the number of requests that the measurement of a share requires, and records the time
    /// range.
    async fn measure(&mut self, number: u32, weight: u32) {
        self.mesh.sleep(PROPAGATION).await;
        let load = self.load.as_ref().unwrap();
        let (begin, needed) = (load.elapsed(), needed_requests(weight));
        let end = load.completed() + needed as usize;
        self.mesh
            .until("enough requests", 120, async |_| {
                (load.completed() >= end).then_some(())
            })
            .await;
        self.windows.push(Window {
            revision: revision(number),
            weight,
            range: begin..load.elapsed(),
        });
    }

    async fn create_action(&mut self, verb: &str) {
        self.actions += 1;
        let action = json!({
            "apiVersion": API, "kind": "DeploymentAction",
            "metadata": {"name": format!("action-{}", self.actions), "namespace": NAMESPACE},
            "spec": {"deploymentName": SHOP, "verb": verb},
        });
        self.mesh.create(&action).await;
        self.mesh.note(verb);
    }

    fn finish_load(&mut self) -> Results {
        self.load.take().unwrap().finish()
    }

    /// Checks that the difference between each share and its weight is within the tolerance, and returns a
    /// line with the shares.
    fn check_shares(&self, results: &Results) -> String {
        let mut shares = Vec::new();
        for window in &self.windows {
            let (share, requests) = results.share(&window.range, &window.revision);
            let (percent, weight) = (share * 100.0, f64::from(window.weight));
            shares.push(format!("{percent:.1} % of {requests} at {weight}"));
            let least = needed_requests(window.weight) as usize * 9 / 10;
            assert!(requests >= least, "only {requests} requests at {weight} %");
            // Weights of 0 % and 100 % have no random deviation.
            let tolerance = if window.weight % 100 == 0 { 0.0 } else { TOLERANCE };
            assert!(
                (percent - weight).abs() <= tolerance,
                "{percent:.1} % instead of {weight} % on {}",
                window.revision
            );
        }
        shares.join(", ")
    }
}

/// Runs a canary from 0 % to 10 % and 50 %, aborts it, and repeats it with 10 %, 50 % and 100 %. Shares
/// must match the weights, no request may fail, and pods that are not ready must not receive requests.
pub async fn a_canary_fails_no_request() {
    let mut canary = Canary::start(RouteKind::VirtualService).await;
    canary.measure(2, 0).await;
    let hold = canary.mesh.hold_file(&revision(2));
    std::fs::write(&hold, "").unwrap();
    canary.roll_out(2, true).await;
    // The pods of the new revision run but are not ready.
    canary.measure(1, 100).await;
    std::fs::remove_file(&hold).unwrap();
    canary.mesh.note("the new revision may become ready");
    canary.until_waiting(2, 10).await;
    canary.measure(2, 10).await;
    canary.create_action("Promote").await;
    canary.until_waiting(2, 50).await;
    canary.measure(2, 50).await;
    canary.create_action("Abort").await;
    canary.until_phase("Aborted").await;
    canary.measure(1, 100).await;
    let results = canary.finish_load();
    println!("rollout abort: {}", summary(&results));
    println!(
        "rollout shares before the abort: {}",
        canary.check_shares(&results)
    );
    check_no_failures(&canary.mesh, &results);
    canary.windows.clear();
    canary.start_load().await;
    canary.create_action("Retry").await;
    complete_canary(&mut canary, "rollout canary").await;
    check_ignored_readiness(&mut canary).await;
}

/// Runs the same canary with an `HTTPRoute` and a Gateway of Gateway API.
pub async fn a_canary_with_http_routes_fails_no_request() {
    let mut canary = Canary::start(RouteKind::HttpRoute).await;
    canary.roll_out(2, true).await;
    complete_canary(&mut canary, "rollout gateway api").await;
}

/// Promotes a started rollout at each step until it is complete. Prints a line that begins with `name`.
async fn complete_canary(canary: &mut Canary, name: &str) {
    for weight in [10, 50] {
        canary.until_waiting(2, weight).await;
        canary.measure(2, weight).await;
        canary.create_action("Promote").await;
    }
    canary.until_phase("Healthy").await;
    canary.measure(2, 100).await;
    let results = canary.finish_load();
    println!("{name}: {}; {}", canary.check_shares(&results), summary(&results));
    check_no_failures(&canary.mesh, &results);
}

/// Negative control: without a readiness probe, the application counts as ready before it serves requests,
/// so requests must fail.
async fn check_ignored_readiness(canary: &mut Canary) {
    std::fs::write(canary.mesh.hold_file(&revision(3)), "").unwrap();
    canary.start_load().await;
    canary.roll_out(3, false).await;
    canary.until_waiting(3, 10).await;
    canary.mesh.sleep(PROPAGATION * 2).await;
    let results = canary.finish_load();
    println!("rollout control, readiness ignored: {}", summary(&results));
    assert!(
        results.failures().count() > 0,
        "ignored readiness was not detected"
    );
}
