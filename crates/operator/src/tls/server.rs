//! Server-side TLS settings from a profile.

use std::sync::Arc;

use mainstay_mesh::{TlsProfile, TlsVersion};
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{ServerConfig, WantsServerCert};
use rustls::{ConfigBuilder, SupportedProtocolVersion, WantsVerifier, version};

const TLS12_AND_13: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
const TLS13_ONLY: &[&SupportedProtocolVersion] = &[&version::TLS13];

/// Returns TLS settings of a profile; rustls' defaults without one. Suites that rustls does not support are
/// ignored; if none is left, the defaults are used, so that clients can connect.
pub fn server_config(
    profile: Option<&TlsProfile>,
) -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, rustls::Error> {
    let min_version = profile.and_then(|profile| profile.min_version);
    let versions = if min_version == Some(TlsVersion::V1_3) {
        TLS13_ONLY
    } else {
        TLS12_AND_13
    };
    let provider = Arc::new(profile.map_or_else(ring::default_provider, provider));
    let builder: ConfigBuilder<ServerConfig, WantsVerifier> =
        ServerConfig::builder_with_provider(provider).with_protocol_versions(versions)?;
    Ok(builder.with_no_client_auth())
}

fn provider(profile: &TlsProfile) -> CryptoProvider {
    let mut provider = ring::default_provider();
    let is_listed = |name: &str| profile.ciphers.iter().any(|cipher| cipher == name);
    // TLS 1.3 suites cannot be configured, as in Go.
    let is_tls12 = |suite: &rustls::SupportedCipherSuite| suite.tls13().is_none();
    let suites: Vec<_> = provider
        .cipher_suites
        .iter()
        .filter(|suite| !is_tls12(suite) || is_listed(&iana(suite)))
        .copied()
        .collect();
    if suites.iter().any(is_tls12) || profile.min_version == Some(TlsVersion::V1_3) {
        provider.cipher_suites = suites;
    }
    provider
}

/// rustls names a suite of 1.3 by the version (`TLS13_…`), IANA does not.
fn iana(suite: &rustls::SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.replacen("TLS13_", "TLS_", 1)
}
