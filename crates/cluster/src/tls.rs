//! TLS connections to API servers. As in Go, a server certificate that is itself a CA certificate is
//! accepted. The chain, the name, the validity and the usage of every certificate are verified.

mod certificate;
mod reload;
mod verifier;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use kube::Config;
use kube::client::ConfigExt;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName};

pub use verifier::{BundleError, BundleVerifier};

use reload::ReloadingVerifier;

/// Whether the server is verified with the certificates of the config. Otherwise kube's own verification
/// applies: with the platform's certificates, through a proxy, or none.
pub(crate) fn has_own_bundle(config: &Config) -> bool {
    config.root_cert.is_some() && !config.accept_invalid_certs && config.proxy_url.is_none()
}

/// Creates a connector for the server of a config.
pub(crate) fn https_connector<H>(config: &Config, connector: H) -> Result<HttpsConnector<H>, kube::Error> {
    let Some(verifier) = verifier(config) else {
        return config.rustls_https_connector_with_connector(connector);
    };
    let mut builder = HttpsConnectorBuilder::new()
        .with_tls_config({
            let mut tls = config.rustls_client_config()?;
            tls.dangerous().set_certificate_verifier(verifier);
            tls
        })
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let Ok(name) = ServerName::try_from(name.clone()) else {
            // kube's connector reports the invalid name.
            return config.rustls_https_connector_with_connector(connector);
        };
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_http1().wrap_connector(connector))
}

fn verifier(config: &Config) -> Option<Arc<dyn ServerCertVerifier>> {
    let roots = config.root_cert.as_ref().filter(|_| has_own_bundle(config))?;
    let roots = roots
        .iter()
        .map(|der| CertificateDer::from(der.clone()))
        .collect();
    let fixed = BundleVerifier::new(roots).ok()?;
    Some(match &config.root_cert_file {
        Some(file) => Arc::new(ReloadingVerifier::new(file.clone(), fixed)),
        None => Arc::new(fixed),
    })
}
