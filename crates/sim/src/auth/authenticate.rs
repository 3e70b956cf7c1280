//! Authentication: identifies the user by request headers and a verified client certificate.

use std::collections::HashMap;

use http::HeaderMap;

use super::{TokenError, User, token, user_from_certificate};
use crate::cluster::Cluster;
use crate::random::Random;
use crate::state::State;
use crate::status::{Result, Status};

/// Credentials that a cluster accepts.
#[derive(Debug)]
pub struct Credentials {
    /// Static bearer tokens.
    pub tokens: HashMap<String, User>,
    /// Signing key of service account tokens. It is derived from the seed, and replaced by a server that is
    /// reachable over the network.
    pub key: Vec<u8>,
    /// Whether requests without credentials are accepted as `system:anonymous`.
    pub anonymous: bool,
}

impl Default for Credentials {
    fn default() -> Self {
        Self {
            tokens: HashMap::new(),
            key: Vec::new(),
            anonymous: true,
        }
    }
}

impl Credentials {
    /// Creates the credentials of a cluster with this seed.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut random = Random::new(!seed);
        let key = (0..4).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        Self {
            key,
            ..Self::default()
        }
    }
}

/// Authenticates the requests that a server receives for a cluster.
#[derive(Clone, Debug)]
pub struct Authenticator(Cluster);

impl Authenticator {
    /// Creates an authenticator that uses the [`Credentials`] of `cluster`.
    #[must_use]
    pub fn new(cluster: &Cluster) -> Self {
        Self(cluster.clone())
    }

    /// Returns the user that sent `headers` over a connection with this certificate (DER, verified by the
    /// caller). Impersonation is evaluated later, when the request is handled.
    pub fn authenticate(&self, headers: &HeaderMap, certificate: Option<&[u8]>) -> Result<User> {
        if let Some(user) = certificate.and_then(user_from_certificate) {
            return Ok(user);
        }
        match bearer_token(headers) {
            Some(token) => self
                .0
                .with(|state| authenticate_token(state, token, &[]))
                .map(|(user, _)| user)
                .map_err(|_| Status::unauthorized()),
            None if self.0.with(|state| state.access.credentials.anonymous) => Ok(User::anonymous()),
            None => Err(Status::unauthorized()),
        }
    }
}

/// Returns the bearer token of the `Authorization` header.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Returns the user of a bearer token and those of `audiences` that it is valid for.
pub(crate) fn authenticate_token(
    state: &State,
    text: &str,
    audiences: &[String],
) -> std::result::Result<(User, Vec<String>), TokenError> {
    if let Some(user) = state.access.credentials.tokens.get(text) {
        let default_audiences = vec![token::ISSUER.to_owned()];
        return Ok((
            user.clone(),
            if audiences.is_empty() {
                default_audiences
            } else {
                audiences.to_vec()
            },
        ));
    }
    token::verify(state, text, audiences)
}
