//! Cluster flags, and a client with timeouts for the cluster they select.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mainstay_cluster::connect::{Fence, connect, guard};

use crate::error::{CliError, Kind, chain};

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
}

impl ClusterFlags {
    /// Selects a context of a kubeconfig.
    pub(crate) fn new(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self { kubeconfig, context }
    }

    /// Creates a client.
    pub(crate) async fn client(&self) -> Result<Client, CliError> {
        client_for(self.config().await?)
    }

    /// Returns the selected context.
    pub(crate) fn context(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// Reads the kubeconfig, as kubectl does.
    pub(crate) async fn config(&self) -> Result<Config, CliError> {
        if self.kubeconfig.is_none() && self.context.is_none() {
            return Config::infer().await.map_err(|error| {
                CliError::new(Kind::Cluster, chain(&error))
                    .hint("select a cluster with --kubeconfig or $KUBECONFIG")
            });
        }
        let unread = |error: kube::config::KubeconfigError| CliError::new(Kind::Cluster, chain(&error));
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        Config::from_custom_kubeconfig(read.map_err(unread)?, &options)
            .await
            .map_err(unread)
    }
}

/// Creates a client with timeouts.
pub(crate) fn client_for(mut config: Config) -> Result<Client, CliError> {
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let client = connect(config).map_err(|error| CliError::new(Kind::Cluster, chain(&error)))?;
    Ok(guard(client, Fence::open(), Arc::new(|_, _| {})))
}

/// Runs a future to completion.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}
