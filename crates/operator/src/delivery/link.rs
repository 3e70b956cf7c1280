//! Link to one cluster: credentials, health probes and watches.
//!
//! ```text
//! Unknown ──probe and lists succeed──▶ Up ──probe or write fails──▶ Down ──probe and lists succeed──▶ Up
//! ```
//!
//! While a cluster is down, its circuit breaker is open: only the next probe is sent, after a delay that
//! doubles with each failure. A changed Secret is detected by the next probe, and immediately if the
//! cluster rejects the old credential.

mod probe;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use mainstay_api::Reason;
use mainstay_cluster::remote::{AddressPolicy, Kubeconfig, RemoteError, connect_remote};
use mainstay_cluster::write::Writer;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::index::{Link, Outage};
use super::names::{ClusterKey, Name, ObjectType};
use super::queue::backoff;
use super::shared::Shared;
use super::sinks::ObjectSink;
use crate::watch::{SMALL_RELIST_INTERVAL, Target, follow_forever};
use probe::{Problem, discover_plural, probe, read_kubeconfig};

/// Default time between two probes.
const DEFAULT_PROBE_INTERVAL: Duration = Duration::from_secs(30);
/// Minimum time between two probes.
const MIN_PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout for listing all kinds.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);
/// Query parameter that selects objects with our label.
const SELECTOR: &str = "labelSelector=delivery.mainstay.dev%2Fdeployment&";

/// A factory of clients for other clusters.
pub trait Connector: Send + Sync {
    /// Creates a client for the cluster of a kubeconfig.
    fn connect(&self, kubeconfig: &Kubeconfig) -> Result<Client, RemoteError>;

    /// Returns the policy for addresses in kubeconfigs.
    fn policy(&self) -> AddressPolicy;
}

/// A connector that uses the network.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkConnector {
    /// Addresses that may be called.
    pub policy: AddressPolicy,
}

impl Connector for NetworkConnector {
    fn connect(&self, kubeconfig: &Kubeconfig) -> Result<Client, RemoteError> {
        connect_remote(kubeconfig, self.policy)
    }

    fn policy(&self) -> AddressPolicy {
        self.policy
    }
}

/// A running link; dropping it ends the link and its watches.
#[derive(Debug)]
pub(crate) struct RunningLink(JoinHandle<()>);

impl Drop for RunningLink {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Dependencies of a link.
#[derive(Clone)]
pub(crate) struct LinkContext {
    pub(crate) shared: Arc<Shared>,
    pub(crate) host: Client,
    pub(crate) connector: Arc<dyn Connector>,
}

/// A connection with its watches.
struct Connection {
    kubeconfig: Option<Kubeconfig>,
    client: Client,
    watches: JoinSet<()>,
    followed: BTreeSet<ObjectType>,
}

impl Connection {
    fn end_watches(&mut self) {
        self.watches = JoinSet::new();
        self.followed.clear();
    }
}

/// Starts the link to a cluster.
pub(crate) fn start(context: LinkContext, cluster: ClusterKey) -> RunningLink {
    let link = LinkTask {
        check_signal: context.shared.check_signal(&cluster),
        context,
        cluster,
        connection: None,
    };
    RunningLink(tokio::spawn(link.run()))
}

struct LinkTask {
    context: LinkContext,
    cluster: ClusterKey,
    connection: Option<Connection>,
    check_signal: Arc<tokio::sync::Notify>,
}

impl LinkTask {
    async fn run(mut self) {
        let mut failures = 0;
        loop {
            let pause = match self.check().await {
                Ok(()) => {
                    failures = 0;
                    self.probe_interval()
                }
                Err(problem) => {
                    failures += 1;
                    let pause = backoff(failures + 1).min(self.probe_interval());
                    self.report_down(problem, pause);
                    pause
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = self.check_signal.notified() => {}
            }
        }
    }

    fn name(&self) -> Option<&Name> {
        match &self.cluster {
            ClusterKey::Host => None,
            ClusterKey::Remote(name) => Some(name),
        }
    }

    fn probe_interval(&self) -> Duration {
        let seconds = self.name().and_then(|name| {
            let object = self
                .context
                .shared
                .with(|index| index.clusters.get(name).cloned())?;
            object.spec.probe_interval_seconds
        });
        let interval = seconds.map_or(DEFAULT_PROBE_INTERVAL, |seconds| {
            Duration::from_secs(seconds.into())
        });
        interval.max(MIN_PROBE_INTERVAL)
    }

    /// Connects if needed, probes the cluster, starts missing watches and waits until all kinds are listed.
    async fn check(&mut self) -> Result<(), Problem> {
        self.connect().await?;
        let shared = self.context.shared.clone();
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        if shared.with(|index| matches!(index.cluster_mut(&self.cluster).link(), Link::Down(_))) {
            // A failed write opened the circuit breaker: all kinds are listed again.
            connection.end_watches();
        }
        let writer = Writer::new(connection.client.clone());
        let result = probe(&writer).await?;
        follow_types(&shared, &self.cluster, connection).await?;
        wait_until_listed(&shared, &self.cluster).await?;
        self.refresh_foreign(&writer).await;
        let now = shared.now();
        shared.set_writer(&self.cluster, Some(writer));
        shared.with(|index| {
            index.cluster_mut(&self.cluster).record_contact(now);
            let (version, providers) = (result.version, result.providers);
            index.set_link(&self.cluster, Link::Up { version, providers });
        });
        Ok(())
    }

    /// Reads the kubeconfig, and creates a new connection if it changed.
    async fn connect(&mut self) -> Result<(), Problem> {
        let kubeconfig = match self.name() {
            None => None,
            Some(name) => {
                let known = self
                    .connection
                    .as_ref()
                    .and_then(|connection| connection.kubeconfig.clone());
                let host = Writer::new(self.context.host.clone());
                let policy = self.context.connector.policy();
                let object = self
                    .context
                    .shared
                    .with(|index| index.clusters.get(name).cloned());
                Some(read_kubeconfig(&host, object.as_deref(), known, policy).await?)
            }
        };
        let is_same = self
            .connection
            .as_ref()
            .is_some_and(|connection| connection.kubeconfig == kubeconfig);
        if is_same {
            return Ok(());
        }
        let client = match &kubeconfig {
            None => self.context.host.clone(),
            Some(kubeconfig) => {
                let client = self.context.connector.connect(kubeconfig);
                let client =
                    client.map_err(|error| Problem::new(Reason::InvalidKubeconfig, error.to_string()))?;
                self.context.shared.guard(client)
            }
        };
        self.context
            .shared
            .with(|index| index.cluster_mut(&self.cluster).reset_lists());
        self.connection = Some(Connection {
            kubeconfig,
            client,
            watches: JoinSet::new(),
            followed: BTreeSet::new(),
        });
        Ok(())
    }

    /// Reads the known objects without our label, because no watch reports them.
    async fn refresh_foreign(&self, writer: &Writer) {
        let shared = &self.context.shared;
        let foreign = shared.with(|index| index.cluster_mut(&self.cluster).foreign_objects());
        for (key, path, uid) in foreign {
            match writer.call(http::Method::GET, &path, None).await {
                Ok(object) => {
                    let kind = ObjectType::from(&key);
                    shared.with(|index| index.observe_object(&self.cluster, &kind, object));
                }
                Err(error) if error.is_not_found() => {
                    shared.with(|index| index.remove_object(&self.cluster, &key, &uid));
                }
                Err(_) => {}
            }
        }
    }

    /// Ends all watches and records the outage.
    fn report_down(&mut self, problem: Problem, pause: Duration) {
        if problem.drops_credential {
            self.connection = None;
        } else if let Some(connection) = &mut self.connection {
            connection.end_watches();
        }
        let shared = &self.context.shared;
        let now = shared.now();
        shared.set_writer(&self.cluster, None);
        tracing::warn!(cluster = %self.cluster, reason = %problem.reason, message = problem.message, "cluster is down");
        shared.with(|index| {
            let outage = Outage {
                since: now,
                retry_at: now.checked_add(pause).unwrap_or(jiff::Timestamp::MAX),
                reason: problem.reason,
                message: problem.message,
            };
            index.set_link(&self.cluster, Link::Down(outage));
        });
    }
}

/// Starts a watch for every watched kind that has none. A kind that the cluster does not serve counts as
/// listed without objects.
async fn follow_types(
    shared: &Arc<Shared>,
    cluster: &ClusterKey,
    connection: &mut Connection,
) -> Result<(), Problem> {
    let writer = Writer::new(connection.client.clone());
    let watched_types: Vec<ObjectType> =
        shared.with(|index| index.cluster_mut(cluster).types().cloned().collect());
    for kind in watched_types {
        if connection.followed.contains(&kind) {
            continue;
        }
        let Some(plural) = discover_plural(&writer, &kind).await? else {
            shared.with(|index| index.finish_list(cluster, &kind, &BTreeSet::new(), ""));
            continue;
        };
        shared.with(|index| index.cluster_mut(cluster).set_plural(&kind, &plural));
        let target = Target {
            path: collection_path(cluster, &kind, &plural),
            selector: SELECTOR,
            is_metadata: false,
            is_optional: true,
            max_list_age: SMALL_RELIST_INTERVAL,
        };
        let sink = ObjectSink {
            shared: shared.clone(),
            cluster: cluster.clone(),
            kind: kind.clone(),
            keys: BTreeSet::new(),
        };
        connection
            .watches
            .spawn(follow_forever(connection.client.clone(), target, sink));
        connection.followed.insert(kind);
    }
    Ok(())
}

/// Returns the URL path of a collection. In remote clusters, only the namespace of the Cluster object is
/// watched.
fn collection_path(cluster: &ClusterKey, kind: &ObjectType, plural: &str) -> String {
    match cluster {
        ClusterKey::Host => format!("{}/{plural}", kind.root()),
        ClusterKey::Remote(name) => format!("{}/namespaces/{}/{plural}", kind.root(), name.namespace),
    }
}

async fn wait_until_listed(shared: &Shared, cluster: &ClusterKey) -> Result<(), Problem> {
    let mut lists = shared.lists.subscribe();
    let all = async {
        while !shared.with(|index| index.cluster_mut(cluster).is_synced()) {
            // Cannot fail: the sender lives as long as `shared`.
            let _ = lists.changed().await;
        }
    };
    let failed = |_| Problem::new(Reason::ClusterUnreachable, "objects cannot be listed".to_owned());
    timeout(LIST_TIMEOUT, all).await.map_err(failed)
}
