//! A real cluster that scenarios run on.

use std::time::Duration;

use kube::Client;
use mainstay_conformance::{Host, HostError};
use mainstay_sim::script::Script;
use mainstay_testkit::cluster::{BASIC_CONTROLLERS, Cluster, Options};
use mainstay_testkit::kubelet::{Kubelet, KubeletOptions};

/// A real API server with controllers and, if scenarios need it, a simulated kubelet.
pub(crate) struct Real {
    kubelet: Option<Kubelet>,
    cluster: Cluster,
}

impl Real {
    /// Starts a cluster without workload controllers and kubelet: objects stay as they were written.
    pub(crate) async fn without_kubelet() -> Self {
        let options = Options {
            controllers: BASIC_CONTROLLERS.to_vec(),
            ..Options::default()
        };
        Self {
            kubelet: None,
            cluster: Cluster::start(options).await.unwrap(),
        }
    }

    /// Starts a cluster with workload controllers and a kubelet that runs pod scripts.
    pub(crate) async fn with_kubelet() -> Self {
        let cluster = Cluster::start(Options::default()).await.unwrap();
        let kubelet = Kubelet::start(&cluster, KubeletOptions::default()).await.unwrap();
        Self {
            kubelet: Some(kubelet),
            cluster,
        }
    }
}

impl Host for Real {
    fn client(&self, user: &str) -> Client {
        self.cluster.client_with_agent(user, "conformance").unwrap()
    }

    async fn pause(&self) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    fn is_concurrent(&self) -> bool {
        true
    }

    fn set_pod_behavior(&self, namespace: &str, workload: &str, script: &str) -> Result<(), HostError> {
        let kubelet = self.kubelet.as_ref().ok_or(HostError::NoKubelet)?;
        let script: Script = script
            .parse()
            .map_err(|error| HostError::PodBehavior(Box::new(error)))?;
        kubelet.set_script(namespace, workload, script);
        Ok(())
    }
}
