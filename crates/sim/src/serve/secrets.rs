//! Issues bearer tokens, signing keys and serial numbers from system randomness.

use std::fmt::Write as _;

use crate::auth::User;
use crate::cluster::Cluster;

use super::ServeError;

/// Length of a secret in bytes.
const LENGTH: usize = 32;

/// Replaces the signing key of service account tokens. The original key could be derived from the seed, and
/// other processes on this machine can reach the server.
pub(super) fn replace_signing_key(cluster: &Cluster) -> Result<(), ServeError> {
    let key = random_bytes()?;
    cluster.with(|state| state.access.credentials.key = key.to_vec());
    Ok(())
}

/// Issues a bearer token for `user`.
pub(super) fn issue_token(cluster: &Cluster, user: User) -> Result<String, ServeError> {
    let secret = random_bytes()?.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    cluster.with(|state| state.access.credentials.tokens.insert(secret.clone(), user));
    Ok(secret)
}

/// Returns a random certificate serial number.
pub(super) fn random_serial() -> Result<[u8; 8], ServeError> {
    let bytes = random_bytes()?;
    Ok(bytes.first_chunk().copied().unwrap_or_default())
}

fn random_bytes() -> Result<[u8; LENGTH], ServeError> {
    let mut bytes = [0; LENGTH];
    let provider = rustls::crypto::ring::default_provider();
    let filled = provider.secure_random.fill(&mut bytes);
    filled.map(|()| bytes).map_err(|_| ServeError::Random)
}
