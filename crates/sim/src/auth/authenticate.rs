//! Who is calling: takes the headers of a request and a verified client certificate, gives the user. Knows nothing of rights.

use std::collections::HashMap;

use http::HeaderMap;

use super::{TokenError, User, token, user_of_certificate};
use crate::cluster::Cluster;
use crate::random::Random;
use crate::state::State;
use crate::status::{Result, Status};

/// Whom a cluster recognises.
#[derive(Debug)]
pub struct Credentials {
    /// Static bearer tokens.
    pub tokens: HashMap<String, User>,
    /// Signs service account tokens. Follows from the seed at first: a server that strangers can reach sets one of its own.
    pub key: Vec<u8>,
    /// Whether those who say nothing of themselves are let in as `system:anonymous`.
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
    /// Those of a cluster that starts from `seed`.
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

/// Finds out who calls a cluster; for whoever serves it over a network.
#[derive(Clone, Debug)]
pub struct Authenticator(Cluster);

impl Authenticator {
    /// One for `cluster`, by the [`Credentials`] in its state.
    #[must_use]
    pub fn new(cluster: &Cluster) -> Self {
        Self(cluster.clone())
    }

    /// The user who sent `headers` over a connection with this certificate (DER, verified by the caller against its own authority).
    /// Impersonation is not decided here: the connection does that with the same headers.
    pub fn authenticate(&self, headers: &HeaderMap, certificate: Option<&[u8]>) -> Result<User> {
        if let Some(user) = certificate.and_then(user_of_certificate) {
            return Ok(user);
        }
        match bearer(headers) {
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

/// The token of an `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(http::header::AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The user of a bearer token, and for which of `audiences` it is good.
pub(crate) fn authenticate_token(
    state: &State,
    text: &str,
    audiences: &[String],
) -> std::result::Result<(User, Vec<String>), TokenError> {
    if let Some(user) = state.access.credentials.tokens.get(text) {
        let own = vec![token::ISSUER.to_owned()];
        return Ok((
            user.clone(),
            if audiences.is_empty() {
                own
            } else {
                audiences.to_vec()
            },
        ));
    }
    token::verify(state, text, audiences)
}
