//! The kubeconfig of a cluster that is added or checked.

use std::path::{Path, PathBuf};

use mainstay_cluster::remote::{AddressPolicy, ContextSelection, Credential, Kubeconfig};

use super::remedy::rejected;
use crate::error::{CliError, Kind};
use crate::kubeconfig::ClusterFlags;

/// Flags that select the kubeconfig of another cluster.
#[derive(clap::Args, Clone)]
pub(super) struct MemberFlags {
    /// Kubeconfig of the cluster to add or check [default: $KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(super) cluster_kubeconfig: Option<PathBuf>,

    /// Context of that kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub(super) cluster_context: Option<String>,

    /// URL under which the operator reaches the API server [default: that of the kubeconfig]
    #[arg(long, value_name = "URL")]
    pub(super) server: Option<String>,

    /// Accept loopback, link-local and metadata addresses; the operator needs the same flag
    #[arg(long)]
    pub(super) allow_local_clusters: bool,
}

impl MemberFlags {
    /// Returns the policy that decides which addresses are accepted.
    pub(super) fn policy(&self) -> AddressPolicy {
        AddressPolicy {
            allow_local: self.allow_local_clusters,
        }
    }

    /// Reads the selected context with the operator's checks of kubeconfigs.
    pub(super) fn read(&self) -> Result<Kubeconfig, CliError> {
        let path = self.path()?;
        let text = read_file(&path)?;
        let selection = ContextSelection {
            context: self.cluster_context.as_deref(),
            server: self.server.as_deref(),
        };
        Kubeconfig::parse_context(&text, &selection, self.policy())
            .map_err(|error| rejected(&error, &path, self.cluster_context.as_deref()))
    }

    /// Returns cluster flags that authenticate with the kubeconfig, like kubectl.
    pub(super) fn login(&self) -> Result<ClusterFlags, CliError> {
        Ok(ClusterFlags::new(
            Some(self.path()?),
            self.cluster_context.clone(),
        ))
    }

    pub(super) fn path(&self) -> Result<PathBuf, CliError> {
        if let Some(path) = &self.cluster_kubeconfig {
            return Ok(path.clone());
        }
        let several = || {
            CliError::new(Kind::Usage, "$KUBECONFIG names several files")
                .hint("name one of them with --cluster-kubeconfig")
        };
        match std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()) {
            Some(value) => {
                let mut paths = std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty());
                let first = paths.next().unwrap_or_default();
                paths.next().map_or(Ok(first), |_| Err(several()))
            }
            None => Ok(std::env::home_dir().unwrap_or_default().join(".kube/config")),
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, CliError> {
    crate::input::read_file(path).map_err(|error| {
        CliError::new(Kind::Config, format!("cannot read {}: {error}", path.display()))
            .hint("name the kubeconfig of the cluster with --cluster-kubeconfig")
    })
}

/// Returns the kind of a credential.
pub(super) fn credential_name(credential: &Credential) -> &'static str {
    match credential {
        Credential::Token(_) => "token",
        Credential::Certificate { .. } => "client certificate",
    }
}
