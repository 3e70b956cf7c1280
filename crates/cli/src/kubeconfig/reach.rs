//! Checks that an API server responds, with errors that name the server, the kubeconfig and the remedy.

use std::error::Error;
use std::io;

use kube::Client;

use super::Endpoint;
use crate::error::{CliError, Kind};
use crate::ui::table::one_line;

/// Sends a request that every user may send. Any response except "unauthorized" is accepted.
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
    .hint(hint(error))
}

/// Returns an error and its causes, outermost first. [`Error::source`] of an [`io::Error`] skips the error
/// that it wraps.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        wrapped
            .map(|wrapped| wrapped as &(dyn Error + 'static))
            .or_else(|| error.source())
    })
}

/// Returns the text of the innermost error. The outer errors contain only "client error" and "connect".
fn root_cause(error: &kube::Error) -> String {
    causes(error)
        .last()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

fn hint(error: &kube::Error) -> &'static str {
    causes(error)
        .find_map(known_hint)
        .unwrap_or("check the network and the server's address in the kubeconfig")
}

/// Returns the hint for one error of a chain.
fn known_hint(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return tls_hint(error);
    }
    let error = cause.downcast_ref::<io::Error>()?;
    if error.kind() == io::ErrorKind::ConnectionRefused {
        return Some("start the API server, or select another cluster with --context or --kubeconfig");
    }
    // The standard library has no stable kind for a failed name resolution.
    error
        .to_string()
        .contains("failed to lookup address")
        .then_some("check the server's name in the kubeconfig, and the network")
}

fn tls_hint(error: &rustls::Error) -> Option<&'static str> {
    match error {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
            Some("check `certificate-authority-data` of the cluster in the kubeconfig")
        }
        rustls::Error::InvalidMessage(_) => Some("check whether the server expects http:// or https://"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use rustls::{CertificateError, InvalidMessage};

    use super::*;

    /// An error of a layer between kube and the connection.
    #[derive(Debug)]
    struct Layer(io::Error);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("client error (Connect)")
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[track_caller]
    fn check(error: io::Error, cause: &str, expected: &str) {
        let error = kube::Error::Service(Box::new(Layer(error)));
        assert_eq!(root_cause(&error), cause);
        let hint = hint(&error);
        assert!(hint.contains(expected), "{cause}: {hint}");
    }

    #[test]
    fn hints_follow_the_type_of_the_cause() {
        let tls = |error: rustls::Error| io::Error::new(io::ErrorKind::InvalidData, error);
        check(
            io::ErrorKind::ConnectionRefused.into(),
            "connection refused",
            "start the API server",
        );
        check(
            tls(CertificateError::UnknownIssuer.into()),
            "invalid peer certificate: UnknownIssuer",
            "certificate-authority-data",
        );
        check(
            tls(InvalidMessage::InvalidContentType.into()),
            "received corrupt message of type InvalidContentType",
            "http:// or https://",
        );
        let lookup = "failed to lookup address information: Name or service not known";
        check(io::Error::other(lookup), lookup, "check the server's name");
    }

    #[test]
    fn texts_that_only_look_like_a_known_cause_get_the_general_hint() {
        for text in ["no connection refused here", "the certificate of a proxy"] {
            check(
                io::Error::other(text),
                text,
                "check the network and the server's address",
            );
        }
    }
}
