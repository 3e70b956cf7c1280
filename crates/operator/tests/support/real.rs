//! A real API server behind worlds: one for all trials that follow each other in a lane, with controllers, a hollow kubelet and an audit log.
//!
//! With or without injection: without, nobody asks webhooks; with it, real istiods run behind their pods and are asked.

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

use super::calls::{Mark, OPERATOR};

/// The control plane as processes.
pub struct Real {
    pub cluster: Cluster,
    /// Whether istiods inject.
    pub injects: bool,
    kubelet: Kubelet,
    serial: AtomicU64,
}

/// The one of each lane, for the trials that follow each other in it.
static SHARED: Mutex<Vec<(ThreadId, Arc<Real>)>> = Mutex::new(Vec::new());

fn with_shared<T>(act: impl FnOnce(&mut Vec<(ThreadId, Arc<Real>)>) -> T) -> T {
    act(&mut SHARED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The versions that have a real istiod.
pub const ISTIODS: [&str; 2] = ["pilot-discovery-1.28.2", "pilot-discovery-1.29.1"];

/// A version that has none is run by the one after it: charts, revision and webhooks are its own.
const STANDS_IN: (&str, &str) = (":1.27.9", ":1.28.2");

/// Istiods, and who stands in for those there are none of.
struct Troupe(Istiods);

impl PodBackend for Troupe {
    fn back(&self, pod: &Value, ip: &str) -> Option<PodProcessFuture> {
        let mut pod = pod.clone();
        let containers = pod["spec"]["containers"].as_array_mut();
        for container in containers.into_iter().flatten() {
            if let Some(image) = container["image"].as_str() {
                container["image"] = image.replace(STANDS_IN.0, STANDS_IN.1).into();
            }
        }
        self.0.back(&pod, ip)
    }
}

/// Without injection nobody answers for istiod.
const NO_WEBHOOKS: &str = "--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook";

const BRISK: Duration = Duration::from_millis(300);

impl Real {
    /// The one that is running in this lane, or a new one: never two at a time, they are large.
    pub async fn shared(injects: bool) -> Arc<Self> {
        let lane = thread::current().id();
        let known = with_shared(|all| {
            let at = all.iter().position(|(of, _)| *of == lane)?;
            Some(all.swap_remove(at).1)
        });
        let real = match known.filter(|real| real.injects == injects) {
            Some(real) => real,
            None => Arc::new(Self::start(injects).await),
        };
        with_shared(|all| all.push((lane, Arc::clone(&real))));
        real
    }

    async fn start(injects: bool) -> Self {
        let options = Options {
            controllers: WORKLOAD_CONTROLLERS.to_vec(),
            users: vec![
                User::new("admin", "system:masters"),
                User::new("tester", "system:masters"),
                // What it may do, the roles say that are made for it.
                User::new(OPERATOR, "operators"),
            ],
            audit: true,
            api_server_flags: (!injects).then(|| NO_WEBHOOKS.into()).into_iter().collect(),
        };
        let cluster = Cluster::start(options).await.unwrap();
        let istiods =
            injects.then(|| Arc::new(Troupe(Istiods::new(&cluster).unwrap())) as Arc<dyn PodBackend>);
        let options = KubeletOptions {
            backing: istiods,
            ..KubeletOptions::default()
        };
        let kubelet = Kubelet::start(&cluster, options).await.unwrap();
        if injects {
            // Every workload is replaced once more: what they do matters, not how long it takes.
            let brisk = Script::ready_after(BRISK).stopping_after(BRISK);
            kubelet.change_scripts(|scripts| scripts.set_default(brisk));
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

    pub fn behave(&self, namespace: &str, workload: &str, script: Script) {
        self.kubelet.set_script(namespace, workload, script);
    }

    /// A number nobody had before.
    pub fn next(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    pub fn mark(&self) -> Mark {
        let mut audit = self.cluster.audit();
        audit.reset().unwrap();
        Mark::Audit(audit)
    }
}
