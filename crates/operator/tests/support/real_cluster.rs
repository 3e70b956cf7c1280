//! A real API server with controllers, a hollow kubelet and an audit log, shared by the tests of one
//! thread.
//!
//! With injection, real istiods run and serve their webhooks. Without injection, admission webhooks are
//! disabled.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use kube::Client;
use mainstay_sim::script::Script;
use mainstay_testkit::cluster::{Cluster, Options, User, WORKLOAD_CONTROLLERS};
use mainstay_testkit::istiod::Istiods;
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions, PodBackend, PodProcessFuture};
use serde_json::Value;

use super::calls::{CallMarker, OPERATOR};

/// A Kubernetes control plane whose components run as processes.
pub struct RealCluster {
    pub cluster: Cluster,
    /// Whether istiods inject.
    pub injects: bool,
    kubelet: Kubelet,
    serial: AtomicU64,
}

/// Clusters by test thread.
static SHARED: Mutex<Vec<(ThreadId, Arc<RealCluster>)>> = Mutex::new(Vec::new());

fn with_shared<T>(access: impl FnOnce(&mut Vec<(ThreadId, Arc<RealCluster>)>) -> T) -> T {
    access(&mut SHARED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Names of the istiod binaries.
pub const ISTIODS: [&str; 2] = ["pilot-discovery-1.28.2", "pilot-discovery-1.29.1"];

/// Image tag of a version without an istiod binary, and image tag of the binary that runs instead. Charts,
/// revision and webhooks are those of the first version.
const SUBSTITUTE: (&str, &str) = (":1.27.9", ":1.28.2");

/// Real istiods, with a substitute for the missing version.
struct IstiodBackend(Istiods);

impl PodBackend for IstiodBackend {
    fn create_process(&self, pod: &Value, ip: &str) -> Option<PodProcessFuture> {
        let mut pod = pod.clone();
        let containers = pod["spec"]["containers"].as_array_mut();
        for container in containers.into_iter().flatten() {
            if let Some(image) = container["image"].as_str() {
                container["image"] = image.replace(SUBSTITUTE.0, SUBSTITUTE.1).into();
            }
        }
        self.0.create_process(&pod, ip)
    }
}

/// Flag that disables webhooks, because without injection no istiod serves them.
const NO_WEBHOOKS: &str = "--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook";

const POD_START_STOP_TIME: Duration = Duration::from_millis(300);

impl RealCluster {
    /// Returns the cluster of this thread, or starts one. A thread has at most one cluster, because
    /// clusters are large.
    pub async fn shared(injects: bool) -> Arc<Self> {
        let thread = thread::current().id();
        let known = with_shared(|all| {
            let at = all.iter().position(|(owner, _)| *owner == thread)?;
            Some(all.swap_remove(at).1)
        });
        let real = match known.filter(|real| real.injects == injects) {
            Some(real) => real,
            None => Arc::new(Self::start(injects).await),
        };
        with_shared(|all| all.push((thread, Arc::clone(&real))));
        real
    }

    async fn start(injects: bool) -> Self {
        let options = Options {
            controllers: WORKLOAD_CONTROLLERS.to_vec(),
            users: vec![
                User::new("admin", "system:masters"),
                User::new("tester", "system:masters"),
                // The roles of the scenario grant its permissions.
                User::new(OPERATOR, "operators"),
            ],
            audit: true,
            api_server_flags: (!injects).then(|| NO_WEBHOOKS.into()).into_iter().collect(),
        };
        let cluster = Cluster::start(options).await.unwrap();
        let istiods =
            injects.then(|| Arc::new(IstiodBackend(Istiods::new(&cluster).unwrap())) as Arc<dyn PodBackend>);
        let options = KubeletOptions {
            backend: istiods,
            ..KubeletOptions::default()
        };
        let kubelet = Kubelet::start(&cluster, options).await.unwrap();
        if injects {
            // Workloads are replaced often, so pods start and stop quickly.
            let script = Script::ready_after(POD_START_STOP_TIME).stopping_after(POD_START_STOP_TIME);
            kubelet.change_scripts(|scripts| scripts.set_default(script));
        }
        Self {
            cluster,
            injects,
            kubelet,
            serial: AtomicU64::new(0),
        }
    }

    pub fn client(&self, user: &str) -> Client {
        let agent = if user == OPERATOR { "mainstay" } else { "tester" };
        self.cluster.client_with_agent(user, agent).unwrap()
    }

    pub fn set_script(&self, namespace: &str, workload: &str, script: Script) {
        self.kubelet.set_script(namespace, workload, script);
    }

    /// Returns a unique number.
    pub fn next_number(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    pub fn mark(&self) -> CallMarker {
        let mut audit = self.cluster.audit();
        audit.reset().unwrap();
        CallMarker::Audit(audit)
    }
}
