//! Service account tokens (JWT): signs and verifies tokens, and checks the objects they are bound to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::User;
use crate::object::Object;
use crate::state::State;
use crate::tree;

/// Issuer of tokens, and their default audience.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";
/// Tolerated clock difference in seconds.
const LEEWAY: i64 = 60;

/// The reason why a token is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Malformed, or signed by another key.
    #[error("invalid bearer token")]
    Foreign,
    /// Expired, or bound to an object that no longer exists.
    #[error("[invalid bearer token, {0}]")]
    Stale(String),
    /// Issued for other audiences.
    #[error("[invalid bearer token, token audiences {0} is invalid for the target audiences {1}]")]
    Audience(String, String),
}

/// The object that limits the lifetime of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// `pod`, `secret` or `node`; empty if the token is bound to the account only.
    pub kind: &'static str,
    /// Name of the object.
    pub name: String,
    /// Uid of the object.
    pub uid: String,
    /// The node of a bound pod: name and uid.
    pub node: Option<(String, String)>,
}

/// The claims of a token.
pub(crate) struct Claims<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) account: &'a Object,
    pub(crate) audiences: &'a [String],
    pub(crate) seconds: i64,
    pub(crate) bound: &'a Bound,
}

/// Signs a token.
pub(crate) fn mint(state: &mut State, claims: &Claims<'_>) -> String {
    let (now, meta) = (state.now().as_seconds(), claims.account.meta());
    let reference = |name: &str, uid: &str| json!({"name": name, "uid": uid});
    let mut own = json!({"namespace": claims.namespace, "serviceaccount": reference(&meta.name, &meta.uid)});
    let bound = claims.bound;
    if !bound.kind.is_empty() {
        tree::set(&mut own, &[bound.kind], reference(&bound.name, &bound.uid));
    }
    if let Some((name, uid)) = &bound.node {
        tree::set(&mut own, &["node"], reference(name, uid));
    }
    let body = json!({
        "aud": claims.audiences, "exp": now + claims.seconds, "iat": now, "nbf": now, "iss": ISSUER, "jti": state.random.uid(),
        "sub": format!("system:serviceaccount:{}:{}", claims.namespace, meta.name), "kubernetes.io": own,
    });
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!(
        "{}.{}",
        encode(&json!({"alg": "HS256", "typ": "JWT"})),
        encode(&body)
    );
    let signature = sign(&state.access.credentials.key, text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Returns the user of a token and those of `audiences` (by default, the server itself) that it is valid for.
pub(crate) fn verify(
    state: &State,
    token: &str,
    audiences: &[String],
) -> Result<(User, Vec<String>), TokenError> {
    let body = open(state, token)?;
    let number = |key| tree::int(&body, &[key]).unwrap_or(0);
    let now = state.now().as_seconds();
    let no_longer = |cause: &str| TokenError::Stale(cause.to_owned());
    if now - LEEWAY > number("exp") {
        return Err(no_longer("service account token has expired"));
    }
    if now + LEEWAY < number("nbf") {
        return Err(no_longer("service account token is not valid yet"));
    }
    let own = super::texts(tree::list(&body, &["aud"]));
    let default = [ISSUER.to_owned()];
    let wanted = if audiences.is_empty() { &default } else { audiences };
    let common: Vec<String> = wanted.iter().filter(|one| own.contains(one)).cloned().collect();
    if common.is_empty() {
        return Err(TokenError::Audience(
            super::rule::go_list(&own),
            super::rule::go_list(wanted),
        ));
    }
    check_bound(state, &body)?;
    Ok((user(&body), common))
}

/// Returns the claims of a token with a valid signature.
fn open(state: &State, token: &str) -> Result<Value, TokenError> {
    let (text, head, body, signature) = parts(token).ok_or(TokenError::Foreign)?;
    if tree::text(&body, &["iss"]) != ISSUER {
        return Err(TokenError::Foreign);
    }
    let own = sign(&state.access.credentials.key, text.as_bytes());
    if tree::text(&head, &["alg"]) != "HS256" || !same(&own, &signature) {
        let cause = "go-jose/go-jose: error in cryptographic primitive";
        return Err(TokenError::Stale(cause.to_owned()));
    }
    Ok(body)
}

/// Splits a token into signed text, header, claims and signature.
fn parts(token: &str) -> Option<(&str, Value, Value, Vec<u8>)> {
    let (text, signature) = token.rsplit_once('.')?;
    let (head, body) = text.split_once('.')?;
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
    let json = |part: &str| serde_json::from_slice(&decode(part)?).ok();
    Some((
        text,
        json(head)?,
        json(body)?,
        decode(signature).unwrap_or_default(),
    ))
}

/// Checks that the bound object still exists with the same uid.
fn check_bound(state: &State, body: &Value) -> Result<(), TokenError> {
    let own = tree::get(body, &["kubernetes.io"]).cloned().unwrap_or_default();
    let namespace = tree::text(&own, &["namespace"]);
    let text = |kind: &str, key: &str| tree::text(&own, &[kind, key]).to_owned();
    let no_longer = |cause: String| Err(TokenError::Stale(cause));
    let (name, uid) = (text("serviceaccount", "name"), text("serviceaccount", "uid"));
    match state
        .store
        .get("serviceaccounts", &crate::object::key(namespace, &name))
    {
        None => return no_longer(format!("serviceaccounts {name:?} not found")),
        Some(account) if *account.meta().uid != *uid => {
            let cause = format!(
                "service account UID ({}) does not match claim ({uid})",
                account.meta().uid
            );
            return no_longer(cause);
        }
        Some(_) => {}
    }
    let bound = [
        ("secret", "secrets", "secret"),
        ("pod", "pods", "pod"),
        ("node", "nodes", "node"),
    ];
    for (kind, table, word) in bound {
        let (name, uid) = (text(kind, "name"), text(kind, "uid"));
        let extracted = kind == "node" && !text("pod", "name").is_empty();
        if name.is_empty() || extracted {
            continue;
        }
        let scope = if kind == "node" { "" } else { namespace };
        match state.store.get(table, &crate::object::key(scope, &name)) {
            None => return no_longer("service account token has been invalidated".to_owned()),
            Some(object) if *object.meta().uid != *uid => {
                let found = &object.meta().uid;
                return no_longer(format!(
                    "{word} UID ({found}) does not match service account {word} ref claim ({uid})"
                ));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn user(body: &Value) -> User {
    let own = |path: [&str; 2]| tree::text(body, &["kubernetes.io", path[0], path[1]]);
    let namespace = tree::text(body, &["kubernetes.io", "namespace"]);
    let mut user = User::service_account(namespace, own(["serviceaccount", "name"]));
    own(["serviceaccount", "uid"]).clone_into(&mut user.uid);
    let extra = [
        ("credential-id", format!("JTI={}", tree::text(body, &["jti"]))),
        ("pod-name", own(["pod", "name"]).to_owned()),
        ("pod-uid", own(["pod", "uid"]).to_owned()),
        ("node-name", own(["node", "name"]).to_owned()),
        ("node-uid", own(["node", "uid"]).to_owned()),
    ];
    for (key, value) in extra.into_iter().filter(|(_, value)| !value.is_empty()) {
        user.extra
            .insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
    }
    user
}

const BLOCK: usize = 64;

/// HMAC with SHA-256.
fn sign(key: &[u8], text: &[u8]) -> [u8; 32] {
    let hashed = Sha256::digest(key);
    let key: &[u8] = if key.len() > BLOCK { &hashed } else { key };
    let pad = |byte: u8| -> Vec<u8> {
        (0..BLOCK)
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

/// Compares in constant time.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_rfc_4231() {
        // RFC 4231, test case 2.
        let signed = sign(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(signed.first_chunk::<4>(), Some(&[0x5b, 0xdc, 0xc1, 0x46]));
        assert_eq!(signed.last_chunk::<4>(), Some(&[0x64, 0xec, 0x38, 0x43]));
    }
}
