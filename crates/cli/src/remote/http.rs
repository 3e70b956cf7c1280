//! HTTP client with limits on size, redirects and time.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::Agent;
use ureq::http::{HeaderMap, Response, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::address::Address;
use super::error::RemoteError;

/// Maximum number of redirects, as in Helm.
const MAX_REDIRECTS: usize = 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const REQUEST_TIMEOUT: Duration = Duration::from_mins(5);

/// A client that uses the environment's proxies and the system's certificates.
pub(crate) struct Client(Agent);

/// A response.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Address after redirects.
    pub(crate) address: Address,
}

impl Reply {
    /// Returns the body if the status is 200.
    pub(crate) fn success(self) -> Result<Vec<u8>, RemoteError> {
        match self.status {
            200 => Ok(self.body),
            status => Err(RemoteError::Status {
                address: self.address.to_string(),
                status,
            }),
        }
    }

    /// Returns a text header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Client {
    /// Creates a client.
    pub(crate) fn new() -> Result<Self, RemoteError> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Redirects are followed below, where each target is checked.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(RESPONSE_TIMEOUT))
            .timeout_global(Some(REQUEST_TIMEOUT))
            .user_agent(concat!("mainstay/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls()?)
            .build();
        Ok(Self(Agent::new_with_config(config)))
    }

    /// Requests `address` and follows redirects. Credentials are sent to the original host only.
    pub(crate) fn get(
        &self,
        address: &Address,
        headers: &[(&str, &str)],
        limit: u64,
    ) -> Result<Reply, RemoteError> {
        self.get_within(address, headers, limit, &|_| true)
    }

    /// Requests `address` as [`Client::get`] does; redirects must stay within the `allowed` addresses.
    pub(crate) fn get_within(
        &self,
        address: &Address,
        headers: &[(&str, &str)],
        limit: u64,
        allowed: &dyn Fn(&Address) -> bool,
    ) -> Result<Reply, RemoteError> {
        let mut at = address.clone();
        for _ in 0..=MAX_REDIRECTS {
            let headers = headers
                .iter()
                .filter(|(name, _)| *name != "authorization" || at.same_host(address));
            let response = self.send(&at, headers)?;
            match redirect(&response) {
                Some(target) => at = follow(&at, &target, allowed)?,
                None => return reply(at, response, limit),
            }
        }
        Err(RemoteError::Redirects {
            address: address.to_string(),
            limit: MAX_REDIRECTS,
        })
    }

    fn send<'a>(
        &self,
        at: &Address,
        headers: impl Iterator<Item = &'a (&'a str, &'a str)>,
    ) -> Result<Response<ureq::Body>, RemoteError> {
        let request = headers.fold(self.0.get(at.to_string()), |request, (name, value)| {
            request.header(*name, *value)
        });
        request.call().map_err(|error| RemoteError::Unreachable {
            address: at.to_string(),
            reason: error.to_string(),
        })
    }
}

/// Returns a TLS configuration with ring and the system's certificates, which include private authorities.
fn tls() -> Result<TlsConfig, RemoteError> {
    let found = rustls_native_certs::load_native_certs();
    if let (true, Some(error)) = (found.certs.is_empty(), found.errors.first()) {
        return Err(RemoteError::Certificates(error.to_string()));
    }
    let roots: Vec<Certificate<'static>> = found
        .certs
        .iter()
        .map(|der| Certificate::from_der(der).to_owned())
        .collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build())
}

fn redirect(response: &Response<ureq::Body>) -> Option<String> {
    let moved = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let target = response.headers().get(header::LOCATION)?.to_str().ok()?;
    moved.then(|| target.to_owned())
}

fn follow(at: &Address, target: &str, allowed: &dyn Fn(&Address) -> bool) -> Result<Address, RemoteError> {
    let rejected = |reason| RemoteError::Redirect {
        address: at.to_string(),
        target: target.chars().take(200).collect(),
        reason,
    };
    let next = at.join(target).map_err(rejected)?;
    if allowed(&next) {
        Ok(next)
    } else {
        Err(rejected("another host"))
    }
}

fn reply(address: Address, mut response: Response<ureq::Body>, limit: u64) -> Result<Reply, RemoteError> {
    let mut body = Vec::new();
    let read = response
        .body_mut()
        .as_reader()
        .take(limit + 1)
        .read_to_end(&mut body);
    read.map_err(|error| RemoteError::Truncated {
        address: address.to_string(),
        reason: error.to_string(),
    })?;
    if body.len() as u64 > limit {
        return Err(RemoteError::TooLarge {
            address: address.to_string(),
            limit,
        });
    }
    Ok(Reply {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body,
        address,
    })
}

/// Returns the SHA-256 of `bytes` in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat()
}

/// Fails unless `bytes` have this digest.
pub(crate) fn verify(address: &Address, bytes: &[u8], expected: &str) -> Result<(), RemoteError> {
    let found = sha256(bytes);
    if found.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    Err(RemoteError::Digest {
        address: address.to_string(),
        expected: expected.to_owned(),
        found,
    })
}

/// Whether text is a SHA-256 in hexadecimal.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
