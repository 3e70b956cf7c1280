//! Formats a kubeconfig with the fields that the parser accepts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Credential, Kubeconfig};
use crate::remote::pem;

/// Name of the only cluster, user and context.
const NAME: &str = "member";

pub(super) fn to_text(kubeconfig: &Kubeconfig) -> String {
    let authorities: String = kubeconfig
        .authorities
        .iter()
        .map(|der| pem::encode_certificate(der))
        .collect();
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "clusters": [{"name": NAME, "cluster": {
            "server": kubeconfig.server,
            "certificate-authority-data": STANDARD.encode(authorities),
        }}],
        "users": [{"name": NAME, "user": user_fields(&kubeconfig.credential)}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
    });
    // JSON is also valid YAML.
    crate::deploy::document(&config).unwrap_or_else(|_| config.to_string())
}

fn user_fields(credential: &Credential) -> Value {
    match credential {
        Credential::Token(token) => json!({"token": String::from_utf8_lossy(token.expose())}),
        Credential::Certificate { certificate, key } => json!({
            "client-certificate-data": STANDARD.encode(certificate),
            "client-key-data": STANDARD.encode(key.expose()),
        }),
    }
}
