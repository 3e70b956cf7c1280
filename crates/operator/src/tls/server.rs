//! TLS configuration of servers from a profile.

use std::sync::Arc;

use mainstay_mesh::{TlsProfile, TlsVersion};
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{ServerConfig, WantsServerCert};
use rustls::{ConfigBuilder, SupportedProtocolVersion, WantsVerifier, version};

const TLS12_AND_13: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
const TLS13_ONLY: &[&SupportedProtocolVersion] = &[&version::TLS13];

/// Returns the TLS configuration of a server with this profile, or the defaults of rustls without a
/// profile. Suites that rustls does not support are ignored; if no suite remains, the defaults are used, so
/// that clients can connect.
pub fn server_config(
    profile: Option<&TlsProfile>,
) -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, rustls::Error> {
    let min_version = profile.and_then(|profile| profile.min_version);
    let versions = if min_version == Some(TlsVersion::V1_3) {
        TLS13_ONLY
    } else {
        TLS12_AND_13
    };
    let provider = Arc::new(profile.map_or_else(ring::default_provider, crypto_provider));
    let builder: ConfigBuilder<ServerConfig, WantsVerifier> =
        ServerConfig::builder_with_provider(provider).with_protocol_versions(versions)?;
    Ok(builder.with_no_client_auth())
}

fn crypto_provider(profile: &TlsProfile) -> CryptoProvider {
    let mut provider = ring::default_provider();
    let is_listed = |name: &str| profile.ciphers.iter().any(|cipher| cipher == name);
    // As in Go, TLS 1.3 suites cannot be configured.
    let is_tls12 = |suite: &rustls::SupportedCipherSuite| suite.tls13().is_none();
    let suites: Vec<_> = provider
        .cipher_suites
        .iter()
        .filter(|suite| !is_tls12(suite) || is_listed(&iana_name(suite)))
        .copied()
        .collect();
    if suites.iter().any(is_tls12) || profile.min_version == Some(TlsVersion::V1_3) {
        provider.cipher_suites = suites;
    }
    provider
}

/// Returns the IANA name of a suite. The names of TLS 1.3 suites contain the version in rustls (`TLS13_…`),
/// but not in IANA.
fn iana_name(suite: &rustls::SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.replacen("TLS13_", "TLS_", 1)
}
