//! A host cluster, member clusters and the delivery controllers, with waits that fail the test on a timeout.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use mainstay_catalog::Catalog;
use mainstay_harness::{ClusterOptions, FleetOptions, HarnessError, OPERATOR};
use serde_json::Value;

use crate::objects::{self, DEPLOYMENT, NAMESPACE};

/// Name of the controllers in traces and faults.
pub(crate) const CLIENT: &str = OPERATOR;

/// Longest virtual time that a test waits for a condition.
const WAIT_TIMEOUT: Duration = Duration::from_mins(30);

/// The clusters by name. The name of the host is empty.
pub(crate) struct Fleet(mainstay_harness::Fleet);

impl Deref for Fleet {
    type Target = mainstay_harness::Fleet;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Fleet {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// Returns the options of a fleet with these members.
pub(crate) fn options(members: &[&str]) -> FleetOptions {
    let labels = BTreeMap::from([("usage".to_owned(), "production".to_owned())]);
    FleetOptions {
        cluster: ClusterOptions {
            inject: false,
            ..ClusterOptions::default()
        },
        namespace: NAMESPACE.to_owned(),
        members: members
            .iter()
            .map(|name| ((*name).to_owned(), labels.clone()))
            .collect(),
        ..FleetOptions::default()
    }
}

impl Fleet {
    /// Creates a host and members with Secrets and Cluster objects, and starts the controllers.
    pub(crate) async fn start(members: &[&str]) -> Self {
        let mut fleet = Self::new(members).await;
        fleet.start_controllers();
        fleet
    }

    /// Creates host and members without starting the controllers.
    pub(crate) async fn new(members: &[&str]) -> Self {
        Self::with_options(options(members)).await
    }

    /// Creates host and members with these options, without starting the controllers.
    pub(crate) async fn with_options(options: FleetOptions) -> Self {
        let catalog = Arc::new(Catalog::embedded().unwrap());
        Self(mainstay_harness::Fleet::new(&catalog, &options).await.unwrap())
    }

    /// Waits until a condition holds.
    pub(crate) async fn until(&mut self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        let end = tokio::time::Instant::now() + WAIT_TIMEOUT;
        while !condition(self) {
            if tokio::time::Instant::now() >= end {
                let status = self.stored("applicationdeployments.delivery.mainstay.dev", DEPLOYMENT);
                panic!(
                    "not reached: {what}\n{}",
                    serde_json::to_string_pretty(&status).unwrap()
                );
            }
            self.sleep(Duration::from_millis(500)).await;
            self.restart_if_crashed();
        }
    }

    /// Waits until the phase of the deployment is this one, for its current generation.
    pub(crate) async fn until_phase(&mut self, phase: &str) {
        self.until(phase, |fleet| {
            let object = fleet.deployment();
            object["status"]["phase"] == phase
                && object["status"]["observedGeneration"] == object["metadata"]["generation"]
        })
        .await;
    }

    /// Waits until nothing was written for two minutes.
    pub(crate) async fn until_idle(&mut self) {
        for _ in 0..60 {
            let before = self.writes();
            for _ in 0..120 {
                self.sleep(Duration::from_secs(1)).await;
                self.restart_if_crashed();
            }
            if self.writes() == before {
                return;
            }
        }
        panic!("the controllers never stop writing");
    }

    /// Returns an object of the host cluster from its store.
    pub(crate) fn stored(&self, table: &str, name: &str) -> Value {
        self.host()
            .stored_object(table, NAMESPACE, name)
            .unwrap_or_default()
    }

    pub(crate) fn deployment(&self) -> Value {
        self.stored("applicationdeployments.delivery.mainstay.dev", DEPLOYMENT)
    }

    /// Creates an object in the host cluster.
    pub(crate) async fn create(&self, object: &Value) {
        self.host().create(object).await.unwrap();
    }

    /// Replaces the spec of an object of the host cluster.
    pub(crate) async fn set_spec(&self, plural: &str, object: &Value) {
        let path = objects::path(plural, object["metadata"]["name"].as_str().unwrap());
        for _ in 0..20 {
            let mut live = self.host().get(&path).await.unwrap().unwrap();
            live["spec"] = object["spec"].clone();
            match self.host().replace(&path, &live).await {
                Ok(_) => return,
                // The controllers have changed the object in the meantime. Retry.
                Err(HarnessError::Rejected { code: 409, .. }) => {}
                Err(error) => panic!("{path}: {error}"),
            }
        }
        panic!("{path}: conflicts");
    }

    /// Creates an Application with two revisions, `example-app-v1` and `example-app-v2`.
    pub(crate) async fn record_two_revisions(&mut self) {
        self.create(&objects::application("registry/app:1")).await;
        self.until_revision("example-app-v1").await;
        self.set_spec("applications", &objects::application("registry/app:2"))
            .await;
        self.until_revision("example-app-v2").await;
    }

    async fn until_revision(&mut self, name: &str) {
        self.until(name, |fleet| {
            !fleet
                .stored("applicationrevisions.delivery.mainstay.dev", name)
                .is_null()
        })
        .await;
    }
}
