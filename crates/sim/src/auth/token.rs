//! Service account tokens (JWT): signs and verifies tokens, and checks the objects that they are bound to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::User;
use crate::object::Object;
use crate::state::State;
use crate::tree;

/// Issuer of tokens and their default audience.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";
/// Tolerated clock difference in seconds.
const LEEWAY: i64 = 60;

/// Reason for which a token is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is malformed or has another issuer.
    #[error("invalid bearer token")]
    Malformed,
    /// The token has an invalid signature, is not valid at this time, or is bound to an object that no longer
    /// exists.
    #[error("[invalid bearer token, {0}]")]
    Invalid(String),
    /// The token was issued for other audiences.
    #[error("[invalid bearer token, token audiences {0} is invalid for the target audiences {1}]")]
    Audience(String, String),
}

/// Object that limits the lifetime of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BoundObject {
    /// `pod`, `secret` or `node`; empty if the token is bound to the account only.
    pub kind: &'static str,
    /// Name of the object.
    pub name: String,
    /// Uid of the object.
    pub uid: String,
    /// Name and uid of the node of a bound pod.
    pub node: Option<(String, String)>,
}

/// Claims of a new token.
pub(crate) struct Claims<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) account: &'a Object,
    pub(crate) audiences: &'a [String],
    /// Lifetime in seconds.
    pub(crate) seconds: i64,
    pub(crate) bound: &'a BoundObject,
}

/// Creates and signs a token.
pub(crate) fn mint(state: &mut State, claims: &Claims<'_>) -> String {
    let (now, meta) = (state.now().as_seconds(), claims.account.meta());
    let reference = |name: &str, uid: &str| json!({"name": name, "uid": uid});
    let mut private =
        json!({"namespace": claims.namespace, "serviceaccount": reference(&meta.name, &meta.uid)});
    let bound = claims.bound;
    if !bound.kind.is_empty() {
        tree::set(&mut private, &[bound.kind], reference(&bound.name, &bound.uid));
    }
    if let Some((name, uid)) = &bound.node {
        tree::set(&mut private, &["node"], reference(name, uid));
    }
    let body = json!({
        "aud": claims.audiences, "exp": now + claims.seconds, "iat": now, "nbf": now, "iss": ISSUER, "jti": state.random.uid(),
        "sub": format!("system:serviceaccount:{}:{}", claims.namespace, meta.name), "kubernetes.io": private,
    });
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!(
        "{}.{}",
        encode(&json!({"alg": "HS256", "typ": "JWT"})),
        encode(&body)
    );
    let signature = hmac_sha256(&state.access.credentials.key, text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Verifies a token. Returns its user and those of `audiences` (by default, the server) that it is valid for.
pub(crate) fn verify(
    state: &State,
    token: &str,
    audiences: &[String],
) -> Result<(User, Vec<String>), TokenError> {
    let body = verified_claims(state, token)?;
    let number = |key| tree::int(&body, &[key]).unwrap_or(0);
    let now = state.now().as_seconds();
    let invalid = |cause: &str| TokenError::Invalid(cause.to_owned());
    if now - LEEWAY > number("exp") {
        return Err(invalid("service account token has expired"));
    }
    if now + LEEWAY < number("nbf") {
        return Err(invalid("service account token is not valid yet"));
    }
    let issued_for = super::texts(tree::list(&body, &["aud"]));
    let default = [ISSUER.to_owned()];
    let requested = if audiences.is_empty() { &default } else { audiences };
    let common: Vec<String> = requested
        .iter()
        .filter(|one| issued_for.contains(one))
        .cloned()
        .collect();
    if common.is_empty() {
        return Err(TokenError::Audience(
            super::rule::go_list(&issued_for),
            super::rule::go_list(requested),
        ));
    }
    check_bound(state, &body)?;
    Ok((user_from_claims(&body), common))
}

/// Returns the claims of a token after verifying issuer and signature.
fn verified_claims(state: &State, token: &str) -> Result<Value, TokenError> {
    let (text, header, body, signature) = split_token(token).ok_or(TokenError::Malformed)?;
    if tree::text(&body, &["iss"]) != ISSUER {
        return Err(TokenError::Malformed);
    }
    let expected = hmac_sha256(&state.access.credentials.key, text.as_bytes());
    if tree::text(&header, &["alg"]) != "HS256" || !equal_in_constant_time(&expected, &signature) {
        let cause = "go-jose/go-jose: error in cryptographic primitive";
        return Err(TokenError::Invalid(cause.to_owned()));
    }
    Ok(body)
}

/// Splits a token into signed text, header, claims and signature.
fn split_token(token: &str) -> Option<(&str, Value, Value, Vec<u8>)> {
    let (text, signature) = token.rsplit_once('.')?;
    let (header, body) = text.split_once('.')?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let json = |part: &str| serde_json::from_slice(&decode(part)?).ok();
    Some((
        text,
        json(header)?,
        json(body)?,
        decode(signature).unwrap_or_default(),
    ))
}

/// Checks that the service account and the bound object still exist with the same uids.
fn check_bound(state: &State, body: &Value) -> Result<(), TokenError> {
    let private = tree::get(body, &["kubernetes.io"]).cloned().unwrap_or_default();
    let namespace = tree::text(&private, &["namespace"]);
    let text = |kind: &str, key: &str| tree::text(&private, &[kind, key]).to_owned();
    let invalid = |cause: String| Err(TokenError::Invalid(cause));
    let (name, uid) = (text("serviceaccount", "name"), text("serviceaccount", "uid"));
    match state
        .store
        .get("serviceaccounts", &crate::object::key(namespace, &name))
    {
        None => return invalid(format!("serviceaccounts {name:?} not found")),
        Some(account) if *account.meta().uid != *uid => {
            let cause = format!(
                "service account UID ({}) does not match claim ({uid})",
                account.meta().uid
            );
            return invalid(cause);
        }
        Some(_) => {}
    }
    for (kind, table) in [("secret", "secrets"), ("pod", "pods"), ("node", "nodes")] {
        let (name, uid) = (text(kind, "name"), text(kind, "uid"));
        let is_node_of_pod = kind == "node" && !text("pod", "name").is_empty();
        if name.is_empty() || is_node_of_pod {
            continue;
        }
        let scope = if kind == "node" { "" } else { namespace };
        match state.store.get(table, &crate::object::key(scope, &name)) {
            None => return invalid("service account token has been invalidated".to_owned()),
            Some(object) if *object.meta().uid != *uid => {
                let found = &object.meta().uid;
                return invalid(format!(
                    "{kind} UID ({found}) does not match service account {kind} ref claim ({uid})"
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn user_from_claims(body: &Value) -> User {
    let claim = |path: [&str; 2]| tree::text(body, &["kubernetes.io", path[0], path[1]]);
    let namespace = tree::text(body, &["kubernetes.io", "namespace"]);
    let mut user = User::service_account(namespace, claim(["serviceaccount", "name"]));
    claim(["serviceaccount", "uid"]).clone_into(&mut user.uid);
    let extra = [
        ("credential-id", format!("JTI={}", tree::text(body, &["jti"]))),
        ("pod-name", claim(["pod", "name"]).to_owned()),
        ("pod-uid", claim(["pod", "uid"]).to_owned()),
        ("node-name", claim(["node", "name"]).to_owned()),
        ("node-uid", claim(["node", "uid"]).to_owned()),
    ];
    for (key, value) in extra.into_iter().filter(|(_, value)| !value.is_empty()) {
        user.extra
            .insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
    }
    user
}

const BLOCK_SIZE: usize = 64;

/// Computes the HMAC of a text with SHA-256.
fn hmac_sha256(key: &[u8], text: &[u8]) -> [u8; 32] {
    let hashed = Sha256::digest(key);
    let key: &[u8] = if key.len() > BLOCK_SIZE { &hashed } else { key };
    let pad = |byte: u8| -> Vec<u8> {
        (0..BLOCK_SIZE)
            .map(|at| key.get(at).copied().unwrap_or(0) ^ byte)
            .collect()
    };
    let inner = Sha256::new()
        .chain_update(pad(0x36))
        .chain_update(text)
        .finalize();
    Sha256::new()
        .chain_update(pad(0x5C))
        .chain_update(inner)
        .finalize()
        .into()
}

/// Compares two byte strings in constant time.
fn equal_in_constant_time(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_rfc_4231() {
        // RFC 4231, test case 2.
        let signed = hmac_sha256(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(signed.first_chunk::<4>(), Some(&[0x5b, 0xdc, 0xc1, 0x46]));
        assert_eq!(signed.last_chunk::<4>(), Some(&[0x64, 0xec, 0x38, 0x43]));
    }
}
