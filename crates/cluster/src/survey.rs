//! Reads a cluster once into the snapshot that the operator plans from. Read-only.
//!
//! One list per kind; namespaces and pods with metadata only. An unreadable source is marked in the snapshot,
//! and everything that depends on it is unknown, as in the operator.

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
use list::{Listed, list};
pub use owned::{OwnedObject, owned_objects};
pub use unmanaged::UnmanagedPlane;

/// Completed pods do not keep a revision in use.
const RUNNING: &str = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";
/// Objects installed by the operator.
const MANAGED: &str = "labelSelector=managed-by%3Dsail-operator";
/// The leader's Lease, in any namespace.
const LEASES: &str = "fieldSelector=metadata.name%3Dsail-operator-lock";

/// The result of a survey.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The leaders, or why they are unknown.
    pub leaders: Result<Vec<Leader>, WriteError>,
    /// Objects of our kinds that cannot be parsed.
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
    /// The name.
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

/// Reads the cluster into `snapshot`, which has no sources yet.
pub async fn survey(client: &Client, snapshot: Snapshot) -> Result<Survey, SurveyError> {
    let mut survey = Survey {
        snapshot,
        leaders: Ok(Vec::new()),
        unreadable: Vec::new(),
        unmanaged: unmanaged::unmanaged(client).await.unwrap_or_default(),
    };
    match survey.read_all_own(client).await {
        // A mesh of another tool needs no definitions.
        Err(SurveyError::NoDefinitions(_)) if !survey.unmanaged.is_empty() => survey.without_definitions(),
        result => result?,
    }
    survey.read_namespaces(client).await;
    survey.read_pods(client).await;
    survey.read_workloads(client).await;
    survey.read_webhooks(client).await;
    survey.leaders = leaders(client).await;
    Ok(survey)
}

/// Reads all workloads as well; only migrations need them.
pub async fn survey_workloads(client: &Client, survey: &mut Survey) {
    let mut state = Ok(());
    for kind in WorkloadKind::ALL {
        let path = format!("/apis/apps/v1/{}s", kind.name().to_lowercase());
        match list::<RawWorkload>(client, &path, "", Listed::Whole).await {
            Ok(items) => {
                for item in items {
                    let seen = Observation::Workload(item.key(kind), Some(item.to_workload(kind)));
                    survey.snapshot.observe(seen);
                }
            }
            Err(error) => state = Err(error),
        }
    }
    survey.listed(Source::Workloads, state);
}

impl Survey {
    async fn read_all_own(&mut self, client: &Client) -> Result<(), SurveyError> {
        self.read_own(client, Observation::Istio).await?;
        self.read_own(client, Observation::Revision).await?;
        self.read_own(client, Observation::Tag).await?;
        self.read_own(client, Observation::Cni).await?;
        self.read_own(client, Observation::ZTunnel).await
    }

    /// Without definitions there are no objects of our kinds.
    fn without_definitions(&mut self) {
        for kind in ObjectKind::ALL {
            self.listed(Source::Objects(kind), Ok(()));
        }
    }

    async fn read_own<S: Kind>(
        &mut self,
        client: &Client,
        observe: fn(Resource<S>) -> Observation,
    ) -> Result<(), SurveyError> {
        let path = format!("/apis/{}/{}", names::API_VERSION, S::KIND.plural());
        let listed = list::<Value>(client, &path, "", Listed::Whole).await;
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
        self.listed(Source::Objects(S::KIND), Ok(()));
        Ok(())
    }

    async fn read_namespaces(&mut self, client: &Client) {
        let listed = list::<list::Bare>(client, "/api/v1/namespaces", "", Listed::Metadata).await;
        let state = listed.map(|items| {
            for list::Bare { metadata } in items {
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
        self.listed(Source::Namespaces, state);
    }

    async fn read_pods(&mut self, client: &Client) {
        let listed = list::<list::Bare>(client, "/api/v1/pods", RUNNING, Listed::Metadata).await;
        let state = listed.map(|items| {
            for list::Bare { metadata } in items {
                let workload = metadata.workload();
                self.snapshot.observe(Observation::Pod {
                    namespace: metadata.namespace,
                    name: metadata.name,
                    labels: metadata.labels,
                    annotations: metadata.annotations,
                    finished: false,
                    leaving: metadata.deletion_timestamp.is_some(),
                    workload,
                });
            }
        });
        self.listed(Source::Pods, state);
    }

    async fn read_workloads(&mut self, client: &Client) {
        let listed = list::<Value>(client, "/apis/apps/v1/deployments", MANAGED, Listed::Whole).await;
        let state = listed.map(|items| {
            for item in items {
                let (namespace, name) = namespace_and_name(&item);
                let fact = Deployment {
                    replicas: count(&item, "replicas"),
                    ready: count(&item, "readyReplicas"),
                };
                self.snapshot
                    .observe(Observation::Deployment(namespace, name, Some(fact)));
            }
        });
        self.listed(Source::Deployments, state);
        let listed = list::<Value>(client, "/apis/apps/v1/daemonsets", MANAGED, Listed::Whole).await;
        let state = listed.map(|items| {
            for item in items {
                let (namespace, name) = namespace_and_name(&item);
                let fact = DaemonSet {
                    scheduled: count(&item, "currentNumberScheduled"),
                    ready: count(&item, "numberReady"),
                };
                self.snapshot
                    .observe(Observation::DaemonSet(namespace, name, Some(fact)));
            }
        });
        self.listed(Source::DaemonSets, state);
    }

    /// The readiness of a remote control plane is in their annotations; its address is not needed.
    async fn read_webhooks(&mut self, client: &Client) {
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        let listed = list::<Value>(client, path, MANAGED, Listed::Metadata).await;
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
        self.listed(Source::Webhooks, state);
    }

    fn listed(&mut self, source: Source, state: Result<(), WriteError>) {
        let state = match state {
            Ok(()) => SourceState::Ready,
            Err(error) => SourceState::Failing(error.message),
        };
        self.snapshot.observe(Observation::Source(source, state));
    }
}

async fn leaders(client: &Client) -> Result<Vec<Leader>, WriteError> {
    let leases = list::<Value>(
        client,
        "/apis/coordination.k8s.io/v1/leases",
        LEASES,
        Listed::Whole,
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

fn count(object: &Value, field: &str) -> i32 {
    let count = object
        .pointer(&format!("/status/{field}"))
        .and_then(Value::as_i64);
    count.and_then(|count| count.try_into().ok()).unwrap_or(0)
}
