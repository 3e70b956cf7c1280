//! Checks that an API server responds, with errors that name the server, the kubeconfig and the remedy.

use kube::Client;

use super::Endpoint;
use crate::error::{CliError, Kind};
use crate::ui::table::one_line;

/// Sends a request that every user may send; a response of any kind but "unauthorized" is enough.
pub(super) async fn check(client: &Client, endpoint: &Endpoint) -> Result<(), CliError> {
    match client.apiserver_version().await {
        Err(kube::Error::Api(status)) if status.code == 401 => Err(unauthorized(endpoint)),
        Ok(_) | Err(kube::Error::Api(_) | kube::Error::SerdeError(_)) => Ok(()),
        Err(error) => Err(unreachable(endpoint, &error)),
    }
}

fn unauthorized(endpoint: &Endpoint) -> CliError {
    let Endpoint { server, origin } = endpoint;
    CliError::new(
        Kind::Cluster,
        format!("{server} rejects the credentials of {origin}"),
    )
    .hint("log in again, or select another context with --context")
}

fn unreachable(endpoint: &Endpoint, error: &kube::Error) -> CliError {
    let Endpoint { server, origin } = endpoint;
    let cause = one_line(&root_cause(error));
    CliError::new(
        Kind::Cluster,
        format!("cannot connect to {server} ({origin}): {cause}"),
    )
    .hint(hint(&cause))
}

/// Returns the text of the innermost error: those around it say only "client error" and "connect".
fn root_cause(error: &kube::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

fn hint(cause: &str) -> &'static str {
    if cause.contains("onnection refused") {
        "start the API server, or select another cluster with --context or --kubeconfig"
    } else if cause.contains("certificate") {
        "check `certificate-authority-data` of the cluster in the kubeconfig"
    } else if cause.contains("lookup address") {
        "check the server's name in the kubeconfig, and the network"
    } else if cause.contains("InvalidContentType") || cause.contains("corrupt message") {
        "check whether the server expects http:// or https://"
    } else {
        "check the network and the server's address in the kubeconfig"
    }
}
