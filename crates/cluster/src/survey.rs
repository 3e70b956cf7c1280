//! Reads a cluster once into a snapshot, the input of the operator's planner. Writes nothing.
//!
//! Each kind is listed once; of namespaces and pods only metadata is read. As in the operator, a source
//! that cannot be read is marked in the snapshot, and everything that depends on it is unknown.

pub(crate) mod list;
mod owned;
mod unmanaged;

use kube::Client;
use mainstay_api::{Kind, ObjectKind, Resource, names};
use mainstay_mesh::snapshot::{DaemonSet, Deployment, Source, SourceState, Webhook};
use mainstay_mesh::workload::{RawWorkload, WorkloadKind};
use mainstay_mesh::{Observation, Snapshot};
use serde::Deserialize;
use serde_json::Value;

use crate::write::WriteError;
use list::{ObjectContent, list};
pub use owned::{OwnedObject, owned_objects};
pub use unmanaged::UnmanagedPlane;

/// Selector of pods that are not completed: completed pods do not keep a revision in use.
const RUNNING: &str = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";
/// Selector of the objects that the operator installed.
const MANAGED: &str = "labelSelector=managed-by%3Dsail-operator";
/// Selector of the operator's leader election Lease, in any namespace.
const LEASES: &str = "fieldSelector=metadata.name%3Dsail-operator-lock";

/// The result of a survey.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Snapshot of the objects that were read.
    pub snapshot: Snapshot,
    /// Holders of the leader election Leases, or the error of listing them.
    pub leaders: Result<Vec<Leader>, WriteError>,
    /// Objects of our kinds that cannot be parsed: kind, name and error.
    pub unreadable: Vec<(ObjectKind, String, String)>,
    /// Control planes that no operator manages; empty if Deployments cannot be read.
    pub unmanaged: Vec<UnmanagedPlane>,
}

/// The holder of a leader election Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Leader {
    /// Namespace of the Lease.
    #[serde(skip)]
    pub namespace: String,
    /// Identity of the holder; empty if there is none.
    #[serde(rename = "holderIdentity")]
    pub holder: String,
    /// Time of the last renewal.
    #[serde(rename = "renewTime")]
    pub renewed: Option<jiff::Timestamp>,
    /// Lease duration in seconds.
    #[serde(rename = "leaseDurationSeconds")]
    pub seconds: i64,
}

impl Leader {
    /// Whether the Lease is valid at `now`.
    #[must_use]
    pub fn is_alive(&self, now: jiff::Timestamp) -> bool {
        let age = self.renewed.map(|renewed| now.as_second() - renewed.as_second());
        !self.holder.is_empty() && age.is_some_and(|age| age <= self.seconds)
    }
}

/// Errors of a survey.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The server does not serve our kinds.
    #[error("this cluster has no definition of {0}.{group}", group = names::GROUP)]
    NoDefinitions(&'static str),
    /// A list failed.
    #[error("cannot list {what}: {error}")]
    List {
        /// The plural name of the kind.
        what: &'static str,
        /// The server's error.
        error: WriteError,
    },
}

/// Reads the cluster into `snapshot`, in which no source has been observed yet.
pub async fn survey(client: &Client, snapshot: Snapshot) -> Result<Survey, SurveyError> {
    let mut survey = Survey {
        snapshot,
        leaders: Ok(Vec::new()),
        unreadable: Vec::new(),
        unmanaged: unmanaged::read_unmanaged_planes(client).await.unwrap_or_default(),
    };
    match survey.read_all_own(client).await {
        // A mesh that another tool installed does not need our definitions.
        Err(SurveyError::NoDefinitions(_)) if !survey.unmanaged.is_empty() => {
            survey.mark_definitions_missing();
        }
        result => result?,
    }
    survey.read_namespaces(client).await;
    survey.read_pods(client).await;
    survey.read_workloads(client).await;
    survey.read_webhooks(client).await;
    survey.leaders = read_leaders(client).await;
    Ok(survey)
}

/// Adds all workloads to the snapshot of `survey`. Only migrations need them.
pub async fn survey_workloads(client: &Client, survey: &mut Survey) {
    let mut state = Ok(());
    for kind in WorkloadKind::ALL {
        let path = format!("/apis/apps/v1/{}s", kind.name().to_lowercase());
        match list::<RawWorkload>(client, &path, "", ObjectContent::Full).await {
            Ok(items) => {
                for item in items {
                    let seen = Observation::Workload(item.key(kind), Some(item.to_workload(kind)));
                    survey.snapshot.observe(seen);
                }
            }
            Err(error) => state = Err(error),
        }
    }
    survey.set_source_state(Source::Workloads, state);
}

impl Survey {
    async fn read_all_own(&mut self, client: &Client) -> Result<(), SurveyError> {
        self.read_own(client, Observation::Istio).await?;
        self.read_own(client, Observation::Revision).await?;
        self.read_own(client, Observation::Tag).await?;
        self.read_own(client, Observation::Cni).await?;
        self.read_own(client, Observation::ZTunnel).await
    }

    /// Marks our kinds as listed: without their definitions, no objects of these kinds exist.
    fn mark_definitions_missing(&mut self) {
        for kind in ObjectKind::ALL {
            self.set_source_state(Source::Objects(kind), Ok(()));
        }
    }

    async fn read_own<S: Kind>(
        &mut self,
        client: &Client,
        observe: fn(Resource<S>) -> Observation,
    ) -> Result<(), SurveyError> {
        let path = format!("/apis/{}/{}", names::API_VERSION, S::KIND.plural());
        let listed = list::<Value>(client, &path, "", ObjectContent::Full).await;
        let items = listed.map_err(|error| match error.code {
            404 => SurveyError::NoDefinitions(S::KIND.plural()),
            _ => SurveyError::List {
                what: S::KIND.plural(),
                error,
            },
        })?;
        for item in items {
            let name = item
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            match serde_json::from_value(item) {
                Ok(object) => {
                    self.snapshot.observe(observe(object));
                }
                Err(error) => self.unreadable.push((S::KIND, name, error.to_string())),
            }
        }
        self.set_source_state(Source::Objects(S::KIND), Ok(()));
        Ok(())
    }

    async fn read_namespaces(&mut self, client: &Client) {
        let listed =
            list::<list::MetadataOnly>(client, "/api/v1/namespaces", "", ObjectContent::Metadata).await;
        let state = listed.map(|items| {
            for list::MetadataOnly { metadata } in items {
                self.snapshot.observe(Observation::Namespace {
                    terminating: metadata.deletion_timestamp.is_some(),
                    name: metadata.name,
                    uid: metadata.uid,
                    resource_version: metadata.resource_version,
                    labels: metadata.labels,
                    annotations: metadata.annotations,
                });
            }
        });
        self.set_source_state(Source::Namespaces, state);
    }

    async fn read_pods(&mut self, client: &Client) {
        let listed =
            list::<list::MetadataOnly>(client, "/api/v1/pods", RUNNING, ObjectContent::Metadata).await;
        let state = listed.map(|items| {
            for list::MetadataOnly { metadata } in items {
                let workload = metadata.workload();
                self.snapshot.observe(Observation::Pod {
                    namespace: metadata.namespace,
                    name: metadata.name,
                    labels: metadata.labels,
                    annotations: metadata.annotations,
                    finished: false,
                    terminating: metadata.deletion_timestamp.is_some(),
                    workload,
                });
            }
        });
        self.set_source_state(Source::Pods, state);
    }

    async fn read_workloads(&mut self, client: &Client) {
        let listed = list::<Value>(client, "/apis/apps/v1/deployments", MANAGED, ObjectContent::Full).await;
        let state = listed.map(|items| {
            for item in items {
                let (namespace, name) = namespace_and_name(&item);
                let fact = Deployment {
                    replicas: status_count(&item, "replicas"),
                    ready: status_count(&item, "readyReplicas"),
                };
                self.snapshot
                    .observe(Observation::Deployment(namespace, name, Some(fact)));
            }
        });
        self.set_source_state(Source::Deployments, state);
        let listed = list::<Value>(client, "/apis/apps/v1/daemonsets", MANAGED, ObjectContent::Full).await;
        let state = listed.map(|items| {
            for item in items {
                let (namespace, name) = namespace_and_name(&item);
                let fact = DaemonSet {
                    scheduled: status_count(&item, "currentNumberScheduled"),
                    ready: status_count(&item, "numberReady"),
                };
                self.snapshot
                    .observe(Observation::DaemonSet(namespace, name, Some(fact)));
            }
        });
        self.set_source_state(Source::DaemonSets, state);
    }

    /// Reads the metadata of webhook configurations. Their annotations contain the readiness of remote
    /// control planes; the addresses are not needed.
    async fn read_webhooks(&mut self, client: &Client) {
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        let listed = list::<Value>(client, path, MANAGED, ObjectContent::Metadata).await;
        let state = listed.map(|items| {
            for item in items {
                let metadata = item.get("metadata").cloned().unwrap_or_default();
                let metadata = serde_json::from_value(metadata).unwrap_or_default();
                let webhook = Webhook {
                    metadata,
                    client: None,
                };
                self.snapshot.observe(Observation::Webhook(webhook));
            }
        });
        self.set_source_state(Source::Webhooks, state);
    }

    fn set_source_state(&mut self, source: Source, state: Result<(), WriteError>) {
        let state = match state {
            Ok(()) => SourceState::Ready,
            Err(error) => SourceState::Failing(error.message),
        };
        self.snapshot.observe(Observation::Source(source, state));
    }
}

async fn read_leaders(client: &Client) -> Result<Vec<Leader>, WriteError> {
    let leases = list::<Value>(
        client,
        "/apis/coordination.k8s.io/v1/leases",
        LEASES,
        ObjectContent::Full,
    )
    .await?;
    let read = |lease: &Value| {
        let spec = lease.get("spec").cloned().unwrap_or_default();
        Leader {
            namespace: namespace_and_name(lease).0,
            ..serde_json::from_value(spec).unwrap_or_default()
        }
    };
    Ok(leases.iter().map(read).collect())
}

fn namespace_and_name(object: &Value) -> (String, String) {
    let text = |at: &str| {
        object
            .pointer(at)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    (text("/metadata/namespace"), text("/metadata/name"))
}

fn status_count(object: &Value, field: &str) -> i32 {
    let count = object
        .pointer(&format!("/status/{field}"))
        .and_then(Value::as_i64);
    count.and_then(|count| count.try_into().ok()).unwrap_or(0)
}
