//! Keys to the door: takes users, gives each a secret that the cluster recognises from then on.

use std::fmt::Write as _;

use crate::auth::User;
use crate::cluster::Cluster;

use super::ServeError;

/// Bytes of a secret.
const LENGTH: usize = 32;

/// A key for service account tokens that nobody can guess from the seed: strangers on this machine can reach the server.
pub(super) fn change_lock(cluster: &Cluster) -> Result<(), ServeError> {
    let key = random()?;
    cluster.with(|state| state.access.credentials.key = key.to_vec());
    Ok(())
}

/// A bearer token of `user`.
pub(super) fn issue(cluster: &Cluster, user: User) -> Result<String, ServeError> {
    let secret = random()?.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    cluster.with(|state| state.access.credentials.tokens.insert(secret.clone(), user));
    Ok(secret)
}

/// A number that no other certificate has.
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
