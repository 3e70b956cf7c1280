//! The profile for a server of our own: takes a profile, gives rustls' settings without a certificate.

use std::sync::Arc;

use mainstay_mesh::{TlsProfile, TlsVersion};
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{ServerConfig, WantsServerCert};
use rustls::{ConfigBuilder, SupportedProtocolVersion, WantsVerifier, version};

const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS13, &version::TLS12];
const NEWEST: &[&SupportedProtocolVersion] = &[&version::TLS13];

/// Settings as the profile wants them; rustls' own without one. Suites and groups rustls does not have are passed over, and if
/// none is left, its own stay: a server nobody can talk to helps nobody.
pub fn server_config(
    profile: Option<&TlsProfile>,
) -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, rustls::Error> {
    let least = profile.and_then(|profile| profile.min_version);
    let versions = if least == Some(TlsVersion::V1_3) {
        NEWEST
    } else {
        BOTH
    };
    let provider = Arc::new(profile.map_or_else(ring::default_provider, provider));
    let builder: ConfigBuilder<ServerConfig, WantsVerifier> =
        ServerConfig::builder_with_provider(provider).with_protocol_versions(versions)?;
    Ok(builder.with_no_client_auth())
}

fn provider(profile: &TlsProfile) -> CryptoProvider {
    let mut provider = ring::default_provider();
    let wanted = |name: &str| profile.ciphers.iter().any(|cipher| cipher == name);
    // With 1.3 as the least version the suites are not a choice, as in Go.
    let old = |suite: &rustls::SupportedCipherSuite| suite.tls13().is_none();
    let suites: Vec<_> = provider
        .cipher_suites
        .iter()
        .filter(|suite| !old(suite) || wanted(&iana(suite)))
        .copied()
        .collect();
    if suites.iter().any(old) || profile.min_version == Some(TlsVersion::V1_3) {
        provider.cipher_suites = suites;
    }
    provider
}

/// rustls names a suite of 1.3 by the version (`TLS13_…`), IANA does not.
fn iana(suite: &rustls::SupportedCipherSuite) -> String {
    let name = suite.suite().as_str().unwrap_or_default();
    name.replacen("TLS13_", "TLS_", 1)
}
