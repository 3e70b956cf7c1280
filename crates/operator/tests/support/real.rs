//! A real API server behind worlds: one for all trials of a program, with controllers, a hollow kubelet and an audit log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::Client;
use mainstay_sim::script::Script;
use mainstay_testkit::cluster::{Cluster, Options, User, WORKLOAD_CONTROLLERS};
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};
use tokio::sync::OnceCell;

use super::calls::{Mark, OPERATOR};

/// The control plane as processes.
pub struct Real {
    pub cluster: Cluster,
    kubelet: Kubelet,
    serial: AtomicU64,
}

static SHARED: OnceCell<Arc<Real>> = OnceCell::const_new();

impl Real {
    /// The one that is running, or a new one.
    pub async fn shared() -> Arc<Self> {
        Arc::clone(SHARED.get_or_init(async || Arc::new(Self::start().await)).await)
    }

    /// One of its own.
    pub async fn start() -> Self {
        let options = Options {
            controllers: WORKLOAD_CONTROLLERS.to_vec(),
            users: vec![
                User::new("admin", "system:masters"),
                User::new("tester", "system:masters"),
                // What it may do, the roles say that are made for it.
                User::new(OPERATOR, "operators"),
            ],
            audit: true,
            // Injection is not what is tried here, and nobody answers for istiod.
            api_server_flags: vec![
                "--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook".into(),
            ],
        };
        let cluster = Cluster::start(options).await.unwrap();
        let kubelet = Kubelet::start(&cluster, KubeletOptions::default()).await.unwrap();
        Self {
            cluster,
            kubelet,
            serial: AtomicU64::new(0),
        }
    }

    pub fn client(&self, user: &str) -> Client {
        let agent = if user == OPERATOR { "mainstay" } else { "tester" };
        self.cluster.client_called(user, agent).unwrap()
    }

    pub fn behave(&self, namespace: &str, workload: &str, script: Script) {
        self.kubelet.behave(namespace, workload, script);
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
