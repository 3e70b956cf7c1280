//! A real cluster as a host of scenarios.

use std::time::Duration;

use kube::Client;
use mainstay_conformance::Host;
use mainstay_testkit::cluster::Cluster;

/// A real one.
pub(crate) struct Real {
    cluster: Cluster,
}

impl Real {
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self { cluster }
    }
}

impl Host for Real {
    fn client(&self, user: &str) -> Client {
        self.cluster.client_called(user, "conformance").unwrap()
    }

    async fn pause(&self) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    fn behave(&self, _namespace: &str, _workload: &str, _script: &str) -> Result<(), String> {
        Err("nobody plays the kubelet".to_owned())
    }
}
