//! Startup of the operator: client, catalog and settings from flags and environment.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use mainstay_catalog::{Catalog, Origin};
use mainstay_cluster::connect::connect;
use mainstay_operator::config::{self, ConfigError, DEFAULT_FILE};
use mainstay_operator::fips;
use mainstay_operator::log::log_calls;
use mainstay_operator::settings::{self, Inputs, NAMESPACE_FILE, SettingsError};

use super::args::Args;
use crate::error::{CliError, Kind, chain};

/// Connection timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// `User-Agent` header of API requests.
const USER_AGENT: &str = concat!("mainstay/", env!("CARGO_PKG_VERSION"));

/// Reads flags, files and environment.
pub(super) fn inputs(args: &Args) -> Result<Inputs, CliError> {
    let namespace = std::env::var("POD_NAMESPACE").ok();
    let (path, named) = match &args.config_file {
        Some(path) => (path.as_path(), true),
        None => (Path::new(DEFAULT_FILE), false),
    };
    let images = config::read(path, named).map_err(|error| misconfigured(&error))?;
    tracing::info!(file = %path.display(), versions = images.len(), "config loaded");
    Ok(Inputs {
        operator_namespace: settings::operator_namespace(namespace, Path::new(NAMESPACE_FILE))
            .map_err(|error| unsettled(&error))?,
        platform: args.platform,
        images,
        vendor_defaults: settings::vendor_defaults(args.vendor_defaults.as_deref())
            .map_err(|error| unsettled(&error))?,
        fips: settings::fips_mode(Path::new(fips::KERNEL_FILE)),
    })
}

fn misconfigured(error: &ConfigError) -> CliError {
    match error {
        ConfigError::Line {
            path,
            problem,
            position: at,
        } => {
            let error = CliError::new(Kind::Config, problem.as_str());
            error.at(&path.display().to_string(), at.line, at.column, at.source.clone())
        }
        ConfigError::Read { .. } => CliError::new(Kind::Config, chain(error)),
    }
}

/// Returns the error for missing settings.
pub(super) fn unsettled(error: &SettingsError) -> CliError {
    let unreachable = "check that the cluster runs and that the kubeconfig or service account is valid";
    match error {
        SettingsError::Timeout | SettingsError::Platform(_) => {
            CliError::new(Kind::Cluster, chain(error)).hint(unreachable)
        }
        SettingsError::Tls(_) => CliError::new(Kind::Cluster, chain(error)),
        _ => CliError::new(Kind::Config, chain(error)),
    }
}

/// Returns the catalog of embedded charts and charts of the directory.
pub(super) fn open_catalog(args: &Args) -> Result<Arc<Catalog>, CliError> {
    let embedded = Catalog::embedded()?;
    let directory = Path::new(&args.resource_directory);
    if directory.as_os_str().is_empty() {
        tracing::info!("using embedded resources");
        return Ok(Arc::new(embedded));
    }
    if !directory.is_dir() {
        let message = format!("--resource-directory {}: no such directory", directory.display());
        return Err(CliError::new(Kind::Usage, message).hint("name a directory with VERSION/charts"));
    }
    tracing::info!(directory = %directory.display(), "using filesystem resources");
    Ok(Arc::new(embedded.with_directory(Origin::Directory, directory)?))
}

/// Creates a client with controller-runtime's precedence: flag, `KUBECONFIG`, service account,
/// `~/.kube/config`.
pub(super) async fn client(args: &Args) -> Result<Client, CliError> {
    let mut config = cluster(Path::new(&args.kubeconfig)).await?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let agent = http::HeaderValue::from_static(USER_AGENT);
    config.headers.push((http::header::USER_AGENT, agent));
    let client = connect(config).map_err(|error| CliError::new(Kind::Cluster, chain(&error)))?;
    Ok(if args.log_api_requests {
        log_calls(client)
    } else {
        client
    })
}

async fn cluster(kubeconfig: &Path) -> Result<Config, CliError> {
    let hint = "select a cluster with --kubeconfig or $KUBECONFIG, or run in a pod";
    let failed = |error: &dyn std::error::Error| CliError::new(Kind::Cluster, chain(error)).hint(hint);
    if !kubeconfig.as_os_str().is_empty() {
        let read = Kubeconfig::read_from(kubeconfig).map_err(|error| failed(&error))?;
        let options = KubeConfigOptions::default();
        return Config::from_custom_kubeconfig(read, &options)
            .await
            .map_err(|error| failed(&error));
    }
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !set("KUBECONFIG") && set("KUBERNETES_SERVICE_HOST") {
        return Config::incluster().map_err(|error| failed(&error));
    }
    Config::infer().await.map_err(|error| failed(&error))
}
