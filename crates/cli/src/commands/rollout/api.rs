//! Calls on the kinds of `delivery.mainstay.dev`.

use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::Status;
use mainstay_api::delivery::{API_VERSION, ApplicationDeployment, GROUP, Kind as DeliveryKind, Resource};
use serde_json::Value;

use crate::error::{CliError, Kind, chain};
use crate::kubeconfig::ClusterFlags;

/// Flags that select a namespace of a cluster.
#[derive(clap::Args, Clone)]
pub(crate) struct ScopeFlags {
    /// Namespace [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    #[command(flatten)]
    pub(crate) cluster: ClusterFlags,
}

/// A namespace of the host cluster.
pub(crate) struct Delivery {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Delivery {
    /// Connects to the cluster that the flags select.
    pub(crate) async fn connect(flags: &ScopeFlags) -> Result<Self, CliError> {
        let client = flags.cluster.client().await?;
        let namespace = flags
            .namespace
            .clone()
            .unwrap_or_else(|| client.default_namespace().to_owned());
        Ok(Self { client, namespace })
    }

    /// Returns the API of a kind in the namespace.
    pub(crate) fn api<S: DeliveryKind>(&self) -> Api<DynamicObject> {
        Api::namespaced_with(
            self.client.clone(),
            &self.namespace,
            &resource(S::KIND, S::PLURAL),
        )
    }

    /// Returns all objects of a kind, in the namespace or in all of them.
    pub(crate) async fn list<S: DeliveryKind>(&self, all: bool) -> Result<Vec<Resource<S>>, CliError> {
        let api = if all {
            Api::all_with(self.client.clone(), &resource(S::KIND, S::PLURAL))
        } else {
            self.api::<S>()
        };
        let list = api
            .list(&ListParams::default())
            .await
            .map_err(|error| failed(&error, S::PLURAL))?;
        list.items.into_iter().map(typed).collect()
    }

    /// Returns an object, or `None` if it does not exist.
    pub(crate) async fn find<S: DeliveryKind>(&self, name: &str) -> Result<Option<Resource<S>>, CliError> {
        let found = self
            .api::<S>()
            .get_opt(name)
            .await
            .map_err(|error| failed(&error, S::PLURAL))?;
        if let Some(object) = found {
            return typed(object).map(Some);
        }
        // A missing definition has the same status code as a missing object.
        let limit = ListParams::default().limit(1);
        let served = self.api::<S>().list(&limit).await;
        served.map(|_| None).map_err(|error| failed(&error, S::PLURAL))
    }

    /// Returns a deployment.
    pub(crate) async fn deployment(&self, name: &str) -> Result<ApplicationDeployment, CliError> {
        if let Some(found) = self.find(name).await? {
            return Ok(found);
        }
        let known: Vec<ApplicationDeployment> = self.list(false).await?;
        let names: Vec<&str> = known.iter().map(Resource::name).collect();
        let message = format!(
            "applicationdeployment {name:?} not found in namespace {:?}",
            self.namespace
        );
        let hint = if names.is_empty() {
            "select a namespace with -n; `mainstay rollout status -A` lists all deployments".to_owned()
        } else {
            format!("use one of {}", names.join(", "))
        };
        Err(CliError::new(Kind::Cluster, message).hint(hint))
    }

    /// Creates an object and returns it; a dry run stores nothing.
    pub(crate) async fn create<S: DeliveryKind>(
        &self,
        object: &Value,
        dry_run: bool,
    ) -> Result<Resource<S>, CliError> {
        let unwritable = |error: serde_json::Error| CliError::new(Kind::Io, error.to_string());
        let object: DynamicObject = serde_json::from_value(object.clone()).map_err(unwritable)?;
        let params = PostParams {
            dry_run,
            field_manager: Some(FIELD_MANAGER.to_owned()),
        };
        let created = self.api::<S>().create(&params, &object).await;
        typed(created.map_err(|error| failed(&error, S::PLURAL))?)
    }
}

/// Owner of the fields that the command line applies. The operator's manager is another one, so that neither
/// removes fields of the other.
pub(crate) const FIELD_MANAGER: &str = "mainstay-cli";

/// Sends a merge patch and returns the object.
pub(crate) async fn merge(client: &Client, path: &str, change: &Value) -> Result<Value, kube::Error> {
    let request = Request::patch(path).header(CONTENT_TYPE, "application/merge-patch+json");
    let request = request
        .body(change.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request(request).await
}

/// Sends a request and returns the object of the response.
pub(crate) async fn call(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, kube::Error> {
    let kind = match method {
        "PATCH" => "application/apply-patch+yaml",
        _ => "application/json",
    };
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, kind)
        .body(body);
    client.request(request.map_err(kube::Error::HttpError)?).await
}

fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: API_VERSION.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Converts an object of the API server.
pub(crate) fn typed<S: DeliveryKind>(object: DynamicObject) -> Result<Resource<S>, CliError> {
    let unread = |error: serde_json::Error| {
        CliError::new(Kind::Cluster, format!("cannot read {}: {error}", S::KIND))
            .hint("update the definitions with `mainstay crds install --only delivery`")
    };
    let value = serde_json::to_value(object).map_err(unread)?;
    serde_json::from_value(value).map_err(unread)
}

/// Converts an error of a call on the resource `plural`.
pub(crate) fn failed(error: &kube::Error, plural: &str) -> CliError {
    match error {
        kube::Error::Api(status) => rejected(status, plural),
        other => CliError::new(Kind::Cluster, chain(other))
            .hint("check that the API server can be reached, and --context"),
    }
}

/// Converts a rejection of the API server.
pub(crate) fn rejected(status: &Status, plural: &str) -> CliError {
    let is_missing_kind = status.code == 404 && !status.message.contains('"');
    if is_missing_kind {
        let message = format!("the cluster does not serve {plural}.{GROUP}");
        return CliError::new(Kind::Cluster, message)
            .hint("install the definitions with `mainstay crds install --only delivery`");
    }
    let result = CliError::new(Kind::Cluster, status.message.clone());
    match status.code {
        401 => result.hint("log in again, or select another user with --context"),
        403 => result.hint(format!(
            "ask for permission on {plural}.{GROUP} in this namespace"
        )),
        409 => result.hint("try again: the object was modified concurrently"),
        _ => result,
    }
}
