//! Parses kubeconfigs.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use mainstay_yaml::{Budget, Document, Map, Node, NodeId, NodeKind, Value, parse_spanned, parse_with};

use super::{Credential, Kubeconfig, KubeconfigError, MAX_BYTES, Rejection, SecretBytes};
use crate::remote::address::{AddressPolicy, check_host};
use crate::remote::pem;

pub(super) type Result<T> = std::result::Result<T, KubeconfigError>;

/// Accepted keys of a mapping, and known keys that are rejected.
struct Keys {
    accepted: &'static [&'static str],
    rejected: &'static [(&'static str, Rejection)],
}

const ROOT: Keys = Keys {
    accepted: &[
        "apiVersion",
        "kind",
        "clusters",
        "users",
        "contexts",
        "current-context",
        "preferences",
    ],
    rejected: &[("extensions", Rejection::Unsupported)],
};
const PREFERENCES: Keys = Keys {
    accepted: &[],
    rejected: &[
        ("extensions", Rejection::Unsupported),
        ("colors", Rejection::Unsupported),
    ],
};
const CLUSTER: Keys = Keys {
    accepted: &["server", "certificate-authority-data"],
    rejected: &[
        ("certificate-authority", Rejection::File),
        ("insecure-skip-tls-verify", Rejection::Verification),
        ("tls-server-name", Rejection::Verification),
        ("proxy-url", Rejection::Proxy),
        ("disable-compression", Rejection::Unsupported),
        ("extensions", Rejection::Unsupported),
    ],
};
const USER: Keys = Keys {
    accepted: &["token", "client-certificate-data", "client-key-data"],
    rejected: &[
        ("tokenFile", Rejection::File),
        ("client-certificate", Rejection::File),
        ("client-key", Rejection::File),
        ("exec", Rejection::Command),
        ("auth-provider", Rejection::Command),
        ("as", Rejection::Impersonation),
        ("as-uid", Rejection::Impersonation),
        ("as-groups", Rejection::Impersonation),
        ("as-user-extra", Rejection::Impersonation),
        ("username", Rejection::Unsupported),
        ("password", Rejection::Unsupported),
        ("extensions", Rejection::Unsupported),
    ],
};
const CONTEXT: Keys = Keys {
    accepted: &["cluster", "user", "namespace"],
    rejected: &[("extensions", Rejection::Unsupported)],
};

pub(super) fn parse(text: &[u8], policy: AddressPolicy) -> Result<Kubeconfig> {
    if text.len() > MAX_BYTES {
        return Err(KubeconfigError::TooLong(text.len()));
    }
    let root = read_document(text)?;
    check_keys(&root, &ROOT, "kubeconfig")?;
    expect_text(&root, "apiVersion", "v1")?;
    expect_text(&root, "kind", "Config")?;
    if let Some(preferences) = root.get("preferences").filter(|value| !value.is_null()) {
        check_keys(mapping(preferences, "preferences")?, &PREFERENCES, "preferences")?;
    }
    let clusters = entries(&root, "clusters", "cluster", |map, path| {
        read_cluster(map, path, policy)
    })?;
    let users = entries(&root, "users", "user", read_user)?;
    let contexts = entries(&root, "contexts", "context", read_context)?;
    let current = required_text(&root, "current-context", "kubeconfig")?;
    let reference = |path, list| Reference { path, list };
    let context = resolve(&contexts, &current, &reference("current-context", "contexts"))?;
    let cluster = reference("context.cluster", "clusters");
    let (server, authorities) = resolve(&clusters, &context.cluster, &cluster)?;
    let credential = resolve(&users, &context.user, &reference("context.user", "users"))?;
    Ok(Kubeconfig {
        server,
        authorities,
        credential,
    })
}

/// Returns the only document of the text. The parser's errors are not included, because they quote the
/// text.
pub(super) fn read_document(text: &[u8]) -> Result<Map> {
    let text = std::str::from_utf8(text).map_err(|_| KubeconfigError::Syntax)?;
    let documents = parse_spanned(text, &Budget::default()).map_err(|_| KubeconfigError::Syntax)?;
    let [document] = documents.as_slice() else {
        return Err(KubeconfigError::Documents(documents.len()));
    };
    if !document.nodes.iter().all(|node| is_plain(document, node)) {
        return Err(KubeconfigError::Ambiguous);
    }
    let root = parse_with(text, &mainstay_yaml::Options::default()).map_err(|_| KubeconfigError::Syntax)?;
    match root {
        Value::Map(map) => Ok(map),
        _ => Err(wrong_type("kubeconfig", "a mapping")),
    }
}

/// Whether every YAML parser interprets the node in the same way.
fn is_plain(document: &Document<'_>, node: &Node<'_>) -> bool {
    let text = |id: &NodeId| match document.node(*id).map(|node| &node.kind) {
        Some(NodeKind::Scalar { text, .. }) => Some(text.to_string()),
        _ => None,
    };
    let is_distinct = match &node.kind {
        NodeKind::Map { entries, .. } => {
            let keys: BTreeSet<Option<String>> = entries.iter().map(|(key, _)| text(key)).collect();
            keys.len() == entries.len() && !keys.contains(&None)
        }
        NodeKind::Alias { .. } => false,
        _ => true,
    };
    is_distinct && node.anchor.is_none() && node.tag.is_none()
}

pub(super) fn wrong_type(path: impl Into<String>, expected: &'static str) -> KubeconfigError {
    KubeconfigError::WrongType {
        path: path.into(),
        expected,
    }
}

fn check_keys(map: &Map, keys: &Keys, path: &str) -> Result<()> {
    for key in map.keys() {
        if let Some((key, reason)) = keys.rejected.iter().find(|(rejected, _)| rejected == key) {
            return Err(KubeconfigError::Rejected {
                path: path.to_owned(),
                key,
                reason: *reason,
            });
        }
        if !keys.accepted.contains(&key.as_str()) {
            return Err(KubeconfigError::UnknownKey(path.to_owned()));
        }
    }
    Ok(())
}

pub(super) fn mapping<'a>(value: &'a Value, path: &str) -> Result<&'a Map> {
    value.as_map().ok_or_else(|| wrong_type(path, "a mapping"))
}

fn optional_text(map: &Map, key: &'static str, path: &str) -> Result<Option<String>> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_str() {
            Some(text) => Ok(Some(text.to_owned()).filter(|text| !text.is_empty())),
            None => Err(wrong_type(format!("{path}.{key}"), "a string")),
        },
    }
}

pub(super) fn required_text(map: &Map, key: &'static str, path: &str) -> Result<String> {
    optional_text(map, key, path)?.ok_or_else(|| KubeconfigError::Missing(format!("{path}.{key}")))
}

pub(super) fn expect_text(root: &Map, path: &'static str, expected: &'static str) -> Result<()> {
    if required_text(root, path, "kubeconfig")? == expected {
        Ok(())
    } else {
        Err(KubeconfigError::WrongKind { path, expected })
    }
}

/// Parses a list of named entries. All entries must be valid.
fn entries<T>(
    root: &Map,
    list: &'static str,
    content: &'static str,
    read: impl Fn(&Map, &str) -> Result<T>,
) -> Result<BTreeMap<String, T>> {
    let items = root.get(list).filter(|value| !value.is_null());
    let items = items.ok_or_else(|| KubeconfigError::Missing(format!("kubeconfig.{list}")))?;
    let items = items.as_list().ok_or_else(|| wrong_type(list, "a list"))?;
    let mut named = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{list}[{index}]");
        let entry = mapping(item, &path)?;
        if entry.keys().any(|key| key != "name" && key != content) {
            return Err(KubeconfigError::UnknownKey(path));
        }
        let name = required_text(entry, "name", &path)?;
        let inner = entry.get(content);
        let inner = inner.ok_or_else(|| KubeconfigError::Missing(format!("{path}.{content}")))?;
        let path = format!("{path}.{content}");
        let value = read(mapping(inner, &path)?, &path)?;
        if named.insert(name, value).is_some() {
            return Err(KubeconfigError::Duplicate(list));
        }
    }
    Ok(named)
}

/// Place of a name that refers to an entry of a list.
#[derive(Clone, Copy)]
struct Reference {
    path: &'static str,
    list: &'static str,
}

fn resolve<T: Clone>(entries: &BTreeMap<String, T>, name: &str, reference: &Reference) -> Result<T> {
    let Reference { path, list } = *reference;
    let found = entries.get(name).cloned();
    found.ok_or(KubeconfigError::Unresolved { path, list })
}

pub(super) fn read_cluster(map: &Map, path: &str, policy: AddressPolicy) -> Result<(String, Vec<Vec<u8>>)> {
    check_keys(map, &CLUSTER, path)?;
    let server = required_text(map, "server", path)?;
    check_server(&server, &format!("{path}.server"), policy)?;
    let key = "certificate-authority-data";
    let data = decode(&required_text(map, key, path)?, path, key)?;
    let authorities = pem::parse_blocks(&data, |label| label == "CERTIFICATE");
    let authorities = authorities.ok_or_else(|| KubeconfigError::Pem {
        path: format!("{path}.{key}"),
        expected: "certificates",
    })?;
    Ok((server, authorities))
}

fn check_server(server: &str, path: &str, policy: AddressPolicy) -> Result<()> {
    let invalid = || KubeconfigError::Server(path.to_owned());
    if server.contains('#') || server.contains('@') || server.contains('\\') {
        return Err(invalid());
    }
    let uri: Uri = server.parse().map_err(|_| invalid())?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(invalid)?;
    let has_dots = uri.path().split('/').any(|part| part == ".." || part == ".");
    if uri.scheme_str() != Some("https") || uri.query().is_some() || has_dots {
        return Err(invalid());
    }
    check_host(host, policy).map_err(|source| KubeconfigError::Address {
        path: path.to_owned(),
        source,
    })
}

fn decode(text: &str, path: &str, key: &'static str) -> Result<Vec<u8>> {
    let compact: String = text.split_ascii_whitespace().collect();
    let decoded = STANDARD.decode(compact.as_bytes());
    decoded.map_err(|_| KubeconfigError::Base64(format!("{path}.{key}")))
}

pub(super) fn read_user(map: &Map, path: &str) -> Result<Credential> {
    check_keys(map, &USER, path)?;
    let token = optional_text(map, "token", path)?;
    let certificate = optional_text(map, "client-certificate-data", path)?;
    let key = optional_text(map, "client-key-data", path)?;
    match (token, certificate, key) {
        (Some(token), None, None) => read_token(&token, path),
        (None, Some(certificate), Some(key)) => read_certificate(&certificate, &key, path),
        (None, Some(_), None) => Err(KubeconfigError::Missing(format!("{path}.client-key-data"))),
        (None, None, Some(_)) => Err(KubeconfigError::Missing(format!(
            "{path}.client-certificate-data"
        ))),
        (None, None, None) => Err(KubeconfigError::NoCredential(path.to_owned())),
        (Some(_), ..) => Err(KubeconfigError::TwoCredentials(path.to_owned())),
    }
}

fn read_token(token: &str, path: &str) -> Result<Credential> {
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(KubeconfigError::Token(format!("{path}.token")));
    }
    Ok(Credential::Token(SecretBytes(token.as_bytes().to_vec())))
}

fn read_certificate(certificate: &str, key: &str, path: &str) -> Result<Credential> {
    let certificate = decode(certificate, path, "client-certificate-data")?;
    let key = decode(key, path, "client-key-data")?;
    let invalid = |field: &str, expected| KubeconfigError::Pem {
        path: format!("{path}.{field}"),
        expected,
    };
    pem::parse_blocks(&certificate, |label| label == "CERTIFICATE")
        .ok_or_else(|| invalid("client-certificate-data", "certificates"))?;
    pem::parse_blocks(&key, |label| label.ends_with("PRIVATE KEY"))
        .filter(|keys| keys.len() == 1)
        .ok_or_else(|| invalid("client-key-data", "one private key"))?;
    Ok(Credential::Certificate {
        certificate,
        key: SecretBytes(key),
    })
}

/// A context.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) cluster: String,
    pub(super) user: String,
}

pub(super) fn read_context(map: &Map, path: &str) -> Result<Context> {
    check_keys(map, &CONTEXT, path)?;
    optional_text(map, "namespace", path)?;
    Ok(Context {
        cluster: required_text(map, "cluster", path)?,
        user: required_text(map, "user", path)?,
    })
}
