//! Issues bearer tokens, signing keys and serial numbers from system randomness.

use std::fmt::Write as _;

use crate::auth::User;
use crate::cluster::Cluster;

use super::ServeError;

/// Length of a secret in bytes.
const LENGTH: usize = 32;

/// Replaces the signing key of service account tokens, which could be derived from the seed: other processes
/// of this machine can reach the server.
pub(super) fn replace_signing_key(cluster: &Cluster) -> Result<(), ServeError> {
    let key = random()?;
    cluster.with(|state| state.access.credentials.key = key.to_vec());
    Ok(())
}

/// Issues a bearer token for `user`.
pub(super) fn issue(cluster: &Cluster, user: User) -> Result<String, ServeError> {
    let secret = random()?.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    cluster.with(|state| state.access.credentials.tokens.insert(secret.clone(), user));
    Ok(secret)
}

/// Returns a random certificate serial number.
pub(super) fn serial() -> Result<[u8; 8], ServeError> {
    let bytes = random()?;
    Ok(bytes.first_chunk().copied().unwrap_or_default())
}

fn random() -> Result<[u8; LENGTH], ServeError> {
    let mut bytes = [0; LENGTH];
    let provider = rustls::crypto::ring::default_provider();
    let filled = provider.secure_random.fill(&mut bytes);
    filled.map(|()| bytes).map_err(|_| ServeError::Random)
}
