//! Hints for kubeconfigs that the operator's checks reject.

use std::path::Path;

use mainstay_cluster::remote::{KubeconfigError, Rejection};

use crate::error::{CliError, Kind};

const CREATE_ACCOUNT: &str = "use --create-account: it logs in with this kubeconfig once and stores the token of a \
                              ServiceAccount";

/// Converts an error of the kubeconfig check to one that names the key, the file and the remedy.
pub(super) fn rejected(error: &KubeconfigError, path: &Path, context: Option<&str>) -> CliError {
    let message = format!("{}: {error}", path.display());
    CliError::new(Kind::Config, message).hint(remedy(error, path, context))
}

fn remedy(error: &KubeconfigError, path: &Path, context: Option<&str>) -> String {
    use KubeconfigError as E;
    match error {
        E::Rejected { reason, key, .. } => rejected_key(*reason, key, context),
        E::Address { .. } => "name an address that the operator reaches with --server; or run the operator and this \
                              command with --allow-local-clusters"
            .to_owned(),
        E::Unresolved { list: "contexts", .. } => known_contexts(path),
        E::NoCredential(_) | E::TwoCredentials(_) => CREATE_ACCOUNT.to_owned(),
        E::Missing(field) if field.ends_with("certificate-authority-data") => {
            "add the certificate of the cluster's CA; or use --create-account, which reads it from the cluster".to_owned()
        }
        E::Missing(field) if field.ends_with("current-context") => known_contexts(path),
        E::Server(_) => "name an https URL with --server".to_owned(),
        E::Ambiguous | E::UnknownKey(_) => flatten(context),
        _ => "check the file with `kubectl config view`".to_owned(),
    }
}

fn rejected_key(reason: Rejection, key: &str, context: Option<&str>) -> String {
    match reason {
        Rejection::File => flatten(context),
        Rejection::Command | Rejection::Impersonation => CREATE_ACCOUNT.to_owned(),
        Rejection::Unsupported if matches!(key, "username" | "password") => CREATE_ACCOUNT.to_owned(),
        Rejection::Proxy => {
            format!("remove {key}, and name a server that the operator reaches directly with --server")
        }
        Rejection::Verification => format!("remove {key}, and set certificate-authority-data"),
        Rejection::Unsupported => format!("remove {key}"),
    }
}

fn flatten(context: Option<&str>) -> String {
    let context = context
        .map(|name| format!(" --context={name}"))
        .unwrap_or_default();
    format!(
        "embed the files with `kubectl config view --raw --flatten --minify{context} > member.yaml`, and add that file"
    )
}

/// Lists the contexts of a kubeconfig; their names are not secret.
fn known_contexts(path: &Path) -> String {
    let names: Vec<String> = kube::config::Kubeconfig::read_from(path)
        .map(|config| config.contexts.into_iter().map(|context| context.name).collect())
        .unwrap_or_default();
    if names.is_empty() {
        return "add a context to the kubeconfig".to_owned();
    }
    format!("select a context with --cluster-context: {}", names.join(", "))
}
