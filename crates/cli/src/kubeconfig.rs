//! Cluster flags, and a client with timeouts for the cluster they select.

mod reach;
mod select;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::config::AuthInfo;
use kube::{Client, Config};
use mainstay_cluster::connect::{Fence, connect, guard, observe};

use crate::error::{CliError, Kind};
use crate::ui::{table::one_line, verbose};

/// Connection timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Flags that select a cluster.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct ClusterFlags {
    /// Kubeconfig to use [default: $KUBECONFIG, then ~/.kube/config, then the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    #[command(flatten)]
    impersonation: ImpersonationFlags,
}

/// Flags that select the user of the requests.
#[derive(clap::Args, Clone, Debug, Default)]
struct ImpersonationFlags {
    /// User to impersonate; system:serviceaccount:NAMESPACE:NAME is a service account
    #[arg(id = "impersonated-user", long = "as", value_name = "USER")]
    user: Option<String>,

    /// Group to impersonate (several: repeat)
    #[arg(
        id = "impersonated-group",
        long = "as-group",
        value_name = "GROUP",
        requires = "impersonated-user"
    )]
    groups: Vec<String>,

    /// UID to impersonate
    #[arg(
        id = "impersonated-uid",
        long = "as-uid",
        value_name = "UID",
        requires = "impersonated-user"
    )]
    uid: Option<String>,
}

impl ImpersonationFlags {
    /// Replaces the impersonation of a configuration, if a user is given.
    fn apply_to(&self, auth: &mut AuthInfo) {
        if self.user.is_none() {
            return;
        }
        auth.impersonate.clone_from(&self.user);
        auth.impersonate_uid.clone_from(&self.uid);
        auth.impersonate_groups = (!self.groups.is_empty()).then(|| self.groups.clone());
        auth.impersonate_user_extra = None;
    }
}

/// Flags that select the namespaces of a report.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct NamespaceFlags {
    /// Report only this namespace
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    namespace: Option<String>,

    /// Report all namespaces (the default)
    #[arg(short = 'A', long)]
    all_namespaces: bool,
}

impl NamespaceFlags {
    /// Whether objects of a namespace are reported.
    pub(crate) fn selects(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|only| only == namespace)
    }

    /// Returns the selected namespace; `None` if all are selected.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

/// API server of a client, with the origin of its address.
struct Endpoint {
    /// Address of the API server.
    server: String,
    /// `context "prod" of kubeconfig FILE`, or the service account.
    origin: String,
}

impl ClusterFlags {
    /// Selects a context of a kubeconfig.
    pub(crate) fn new(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self {
            kubeconfig,
            context,
            ..Self::default()
        }
    }

    /// Whether no flag is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.kubeconfig.is_none() && self.context.is_none() && self.impersonation.user.is_none()
    }

    /// Creates a client and checks that the server responds.
    pub(crate) async fn client(&self) -> Result<Client, CliError> {
        let (config, origin) = self.config().await?;
        client_for(config, origin).await
    }

    /// Returns the selected context.
    #[cfg(feature = "simulator")]
    pub(crate) fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// Returns the configuration and its origin.
    pub(crate) async fn config(&self) -> Result<(Config, String), CliError> {
        let (mut config, origin) = match select::files(self.kubeconfig.as_deref())? {
            Some(files) => files.select(self.context.as_deref()).await?,
            None => select::service_account(self.context.as_deref())?,
        };
        self.impersonation.apply_to(&mut config.auth_info);
        Ok((config, origin))
    }
}

/// Returns the error of a client whose credentials cannot be read.
fn unusable(endpoint: &Endpoint, plugin: Option<&str>, error: &kube::Error) -> CliError {
    // The text of these errors contains that of their causes.
    let cause = one_line(&error.to_string());
    let error = CliError::new(Kind::Cluster, format!("cannot use {}: {cause}", endpoint.origin));
    match plugin {
        Some(plugin) => error.hint(format!(
            "install the credential plugin `{plugin}`, or select another context with --context"
        )),
        None => error.hint("fix the credentials of its user, or select another context with --context"),
    }
}

/// Creates a client with timeouts and checks that the server responds. `origin` describes the source of
/// the configuration.
pub(crate) async fn client_for(mut config: Config, origin: String) -> Result<Client, CliError> {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let endpoint = Endpoint {
        server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
        origin,
    };
    let plugin = config
        .auth_info
        .exec
        .as_ref()
        .and_then(|exec| exec.command.clone());
    let client = connect(config).map_err(|error| unusable(&endpoint, plugin.as_deref(), &error))?;
    let client = guard(client, Fence::open(), Arc::new(|_, _| {}));
    let client = if verbose::is_on() {
        observe(client, Arc::new(verbose::print_call))
    } else {
        client
    };
    reach::check(&client, &endpoint).await?;
    Ok(client)
}

/// Runs a future to completion.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}
