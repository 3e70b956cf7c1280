//! API calls of a link: reads the Secret in the host cluster, probes the health of the cluster and
//! discovers kinds.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use mainstay_api::Reason;
use mainstay_api::delivery::{Cluster, Provider};
use mainstay_cluster::remote::{AddressPolicy, Kubeconfig};
use mainstay_cluster::write::{WriteError, Writer};
use serde_json::Value;
use tokio::time::timeout;

use crate::delivery::names::ObjectType;
use crate::object::string_at;

/// Timeout of one call of a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Default key of the Secret that contains the kubeconfig.
const DEFAULT_KEY: &str = "config";

/// Reason and message of a failed check of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) reason: Reason,
    pub(super) message: String,
    /// Whether the credential must be read again.
    pub(super) drops_credential: bool,
}

impl Problem {
    pub(super) fn new(reason: Reason, message: String) -> Self {
        Self {
            drops_credential: reason != Reason::ClusterUnreachable,
            reason,
            message,
        }
    }
}

/// Result of a successful probe.
pub(super) struct ProbeResult {
    pub(super) version: String,
    pub(super) providers: BTreeSet<Provider>,
}

async fn call(writer: &Writer, path: &str) -> Result<Value, Problem> {
    let timeout_error = || Problem::new(Reason::ClusterUnreachable, "no response in time".to_owned());
    let response = with_timeout(PROBE_TIMEOUT, writer.call(Method::GET, path, None)).await;
    response
        .ok_or_else(timeout_error)?
        .map_err(|error| to_problem(&error))
}

async fn with_timeout<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    timeout(limit, future).await.ok()
}

fn to_problem(error: &WriteError) -> Problem {
    let reason = match error.code {
        401 => Reason::CredentialRejected,
        _ => Reason::ClusterUnreachable,
    };
    Problem::new(reason, error.message.clone())
}

/// Reads the version and the API groups of a cluster.
pub(super) async fn probe(writer: &Writer) -> Result<ProbeResult, Problem> {
    let version = call(writer, "/version").await?;
    let groups = call(writer, "/apis").await?;
    let names: BTreeSet<&str> = groups
        .get("groups")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|group| string_at(group, "/name"))
        .collect();
    let known = [
        ("networking.istio.io", Provider::Istio),
        ("gateway.networking.k8s.io", Provider::GatewayApi),
        ("networking.k8s.io", Provider::Ingress),
    ];
    let served = known.into_iter().filter(|(group, _)| names.contains(group));
    Ok(ProbeResult {
        version: string_at(&version, "/gitVersion").to_owned(),
        providers: served.map(|(_, provider)| provider).collect(),
    })
}

/// Returns the plural of a kind, or `None` if the cluster does not serve it.
pub(super) async fn discover_plural(writer: &Writer, kind: &ObjectType) -> Result<Option<String>, Problem> {
    let timeout_error = || Problem::new(Reason::ClusterUnreachable, "no response in time".to_owned());
    let response = with_timeout(PROBE_TIMEOUT, writer.call(Method::GET, &kind.root(), None)).await;
    let list = match response.ok_or_else(timeout_error)? {
        Ok(list) => list,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(to_problem(&error)),
    };
    let resources = list.get("resources").and_then(Value::as_array);
    let is_wanted = |resource: &&Value| {
        string_at(resource, "/kind") == kind.kind
            && !string_at(resource, "/name").contains('/')
            && resource.get("namespaced") == Some(&Value::Bool(true))
    };
    let found = resources.into_iter().flatten().find(is_wanted);
    Ok(found.map(|resource| string_at(resource, "/name").to_owned()))
}

/// Reads the kubeconfig of a Cluster from its Secret. If the Secret cannot be read for another reason than
/// its absence, returns the known kubeconfig.
pub(super) async fn read_kubeconfig(
    host: &Writer,
    cluster: Option<&Cluster>,
    known: Option<Kubeconfig>,
    policy: AddressPolicy,
) -> Result<Kubeconfig, Problem> {
    let Some(cluster) = cluster else {
        return Err(Problem::new(
            Reason::ClusterNotFound,
            "the Cluster object was deleted".to_owned(),
        ));
    };
    let reference = &cluster.spec.kubeconfig_secret_ref;
    let path = format!(
        "/api/v1/namespaces/{}/secrets/{}",
        cluster.namespace(),
        reference.name
    );
    let secret = match (host.call(Method::GET, &path, None).await, known) {
        (Ok(secret), _) => secret,
        (Err(error), Some(known)) if !error.is_not_found() => {
            tracing::debug!(
                code = error.code,
                "cannot read a Secret; the known credential is used"
            );
            return Ok(known);
        }
        (Err(error), _) => {
            let message = format!("Secret {:?}: {}", reference.name, error.message);
            return Err(Problem::new(Reason::SecretNotFound, message));
        }
    };
    let key = reference.key.as_deref().unwrap_or(DEFAULT_KEY);
    let data = secret
        .get("data")
        .and_then(|data| data.get(key))
        .and_then(Value::as_str);
    let invalid = |message: String| {
        let message = format!("Secret {:?}, key {key:?}: {message}", reference.name);
        Problem::new(Reason::InvalidKubeconfig, message)
    };
    let data = data.ok_or_else(|| invalid("not set".to_owned()))?;
    let bytes = STANDARD
        .decode(data)
        .map_err(|_| invalid("not base64".to_owned()))?;
    Kubeconfig::parse(&bytes, policy).map_err(|error| invalid(error.to_string()))
}
