//! Checks of fields of the mesh configuration.

use std::collections::BTreeSet;

use mainstay_gostd::time::{HOUR, SECOND, parse_duration};
use mainstay_yaml::Value;

use super::super::scalars::{is_address, is_trust_domain, is_wildcard_domain};
use super::field;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::path::{Path, scalar_text};

const MILLISECOND: i64 = SECOND / 1000;

/// Elliptic curves that proxies support.
const CURVES: &[&str] = &[
    "P-224",
    "P-256",
    "P-384",
    "P-521",
    "X25519",
    "X25519Kyber768Draft00",
    "X25519MLKEM768",
];

/// Replaced by the address of the node when a proxy starts.
const HOST_IP: &str = "$(HOST_IP)";

fn error(path: &Path, message: &str) -> Diagnostic {
    Diagnostic::error(path.clone(), message)
}

fn text_field<'a>(value: &'a Value, name: &str) -> &'a str {
    let found = field(value, name, &Path::default());
    found.and_then(|(_, value)| value.as_str()).unwrap_or_default()
}

/// Returns an integer. Protobuf also accepts integers in quotes.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn check_port(value: &Value, path: &Path, first: i64, found: &mut Diagnostics) {
    if integer(value).is_some_and(|port| !(first..=65535).contains(&port)) {
        let message = format!("is not a port: expected {first} to 65535");
        found.push(error(path, &message).value(&scalar_text(value).unwrap_or_default()));
    }
}

pub(super) fn port(value: &Value, path: &Path, found: &mut Diagnostics) {
    check_port(value, path, 1, found);
}

pub(super) fn optional_port(value: &Value, path: &Path, found: &mut Diagnostics) {
    check_port(value, path, 0, found);
}

pub(super) fn not_empty(value: &Value, path: &Path, found: &mut Diagnostics) {
    if value.as_str() == Some("") {
        found.push(error(path, "must not be empty").hint("remove it to use the default"));
    }
}

/// Returns a duration in nanoseconds. Reports an invalid or negative one.
fn nanoseconds(value: &Value, path: &Path, found: &mut Diagnostics) -> Option<i64> {
    let text = value.as_str()?;
    let parsed = parse_duration(text).ok().filter(|nanoseconds| *nanoseconds >= 0);
    if parsed.is_none() {
        let result = error(path, "is not a duration").value(text);
        found.push(result.hint("write it like 10s or 1m30s"));
    }
    parsed
}

pub(super) fn duration(value: &Value, path: &Path, found: &mut Diagnostics) {
    nanoseconds(value, path, found);
}

/// A condition on a duration in nanoseconds.
struct Limit {
    is_valid: fn(i64) -> bool,
    /// Description of valid durations.
    expected: &'static str,
}

const WHOLE_MILLISECONDS: Limit = Limit {
    is_valid: |duration| duration % MILLISECOND == 0,
    expected: "whole milliseconds",
};

const CONNECT_TIMEOUT: Limit = Limit {
    is_valid: |duration| duration % MILLISECOND == 0 && (MILLISECOND..=HOUR).contains(&duration),
    expected: "whole milliseconds, from 1ms to 1h",
};

const DRAIN_DURATION: Limit = Limit {
    is_valid: |duration| duration % SECOND == 0 && duration > 0,
    expected: "whole seconds, at least 1s",
};

const NOT_ZERO: Limit = Limit {
    is_valid: |duration| duration > 0,
    expected: "more than 0s",
};

fn limited_duration(value: &Value, path: &Path, limit: &Limit, found: &mut Diagnostics) {
    if nanoseconds(value, path, found).is_some_and(|duration| !(limit.is_valid)(duration)) {
        let result = error(path, &format!("expected {}", limit.expected));
        found.push(result.value(value.as_str().unwrap_or_default()));
    }
}

pub(super) fn milliseconds(value: &Value, path: &Path, found: &mut Diagnostics) {
    limited_duration(value, path, &WHOLE_MILLISECONDS, found);
}

pub(super) fn connect_timeout(value: &Value, path: &Path, found: &mut Diagnostics) {
    limited_duration(value, path, &CONNECT_TIMEOUT, found);
}

pub(super) fn drain_duration(value: &Value, path: &Path, found: &mut Diagnostics) {
    limited_duration(value, path, &DRAIN_DURATION, found);
}

pub(super) fn trust_domain(value: &Value, path: &Path, found: &mut Diagnostics) {
    if let Some(text) = value.as_str().filter(|text| !is_trust_domain(text)) {
        let result = error(path, "is not a domain name").value(text);
        found.push(result.hint("write it like cluster.local"));
    }
}

pub(super) fn wildcard_domain(value: &Value, path: &Path, found: &mut Diagnostics) {
    if let Some(text) = value.as_str().filter(|text| !is_wildcard_domain(text)) {
        let result = error(path, "is not a host name").value(text);
        found.push(result.hint("write it like api.example.org or *.example.org"));
    }
}

pub(super) fn address(value: &Value, path: &Path, found: &mut Diagnostics) {
    if let Some(text) = value.as_str().filter(|text| !is_address(text)) {
        let result = error(path, "is not an address with a port").value(text);
        found.push(result.hint("write HOST:PORT, for example istiod.istio-system.svc:15012"));
    }
}

pub(super) fn optional_address(value: &Value, path: &Path, found: &mut Diagnostics) {
    if value.as_str() != Some("") {
        address(value, path, found);
    }
}

/// Checks the address of a tracing collector, in which [`HOST_IP`] may be the host.
pub(super) fn collector(value: &Value, path: &Path, found: &mut Diagnostics) {
    match field(value, "address", path) {
        Some((path, value)) => {
            let text = value.as_str().unwrap_or_default();
            if !is_address(&text.replacen(HOST_IP, "127.0.0.1", 1)) {
                address(value, &path, found);
            }
        }
        None => found.push(error(path, "has no address")),
    }
}

pub(super) fn lightstep(value: &Value, path: &Path, found: &mut Diagnostics) {
    match field(value, "address", path) {
        Some((path, value)) => address(value, &path, found),
        None => found.push(error(path, "has no address")),
    }
    if text_field(value, "accessToken").is_empty() {
        found.push(error(path, "has no accessToken"));
    }
}

pub(super) fn no_null_entries(value: &Value, path: &Path, found: &mut Diagnostics) {
    let entries = value.as_map().into_iter().flatten();
    for (key, _) in entries.filter(|(_, value)| value.is_null()) {
        found.push(error(&path.key(key), "must not be null"));
    }
}

pub(super) fn proxy_metadata(value: &Value, path: &Path, found: &mut Diagnostics) {
    let name = "ISTIO_META_DNS_AUTO_ALLOCATE";
    if value.get(name).is_some() {
        let result = Diagnostic::warning(path.key(name), "is deprecated");
        found.push(result.hint("remove it: istiod allocates addresses (PILOT_ENABLE_IP_AUTOALLOCATE)"));
    }
}

pub(super) fn private_key_provider(value: &Value, path: &Path, found: &mut Diagnostics) {
    let providers = ["cryptomb", "qat"].map(|name| field(value, name, path));
    if providers.iter().all(Option::is_none) {
        found.push(error(path, "has neither cryptomb nor qat"));
    }
    for (path, provider) in providers.into_iter().flatten() {
        match field(provider, "pollDelay", &path) {
            None => found.push(error(&path, "has no pollDelay")),
            Some((path, delay)) => limited_duration(delay, &path, &NOT_ZERO, found),
        }
    }
}

pub(super) fn no_curves(value: &Value, path: &Path, found: &mut Diagnostics) {
    if value.as_list().is_some_and(|list| !list.is_empty()) {
        found.push(error(path, "is not supported").hint("set tlsDefaults.ecdhCurves"));
    }
}

pub(super) fn curves(value: &Value, path: &Path, found: &mut Diagnostics) {
    let mut known: Vec<&str> = Vec::new();
    let items = value.as_list().unwrap_or_default().iter().enumerate();
    for (index, curve) in items.filter_map(|(index, item)| Some((index, item.as_str()?))) {
        let path = path.index(index);
        if known.contains(&curve) {
            found.push(Diagnostic::warning(path, "is listed twice").value(curve));
        } else if CURVES.contains(&curve) {
            known.push(curve);
        } else if !curve.is_empty() {
            let result = Diagnostic::warning(path, "is not a known curve").value(curve);
            found.push(result.hint(format!("use {}", CURVES.join(", "))));
        }
    }
}

pub(super) fn providers(value: &Value, path: &Path, found: &mut Diagnostics) {
    let mut names = BTreeSet::new();
    for (index, provider) in value.as_list().unwrap_or_default().iter().enumerate() {
        let name = text_field(provider, "name");
        let path = path.index(index);
        if name.is_empty() {
            found.push(error(&path, "the provider has no name"));
        } else if !names.insert(name) {
            found.push(error(&path.key("name"), "another provider has this name").value(name));
        }
    }
}

/// Checks the TLS settings of a client.
pub(super) fn client_tls(value: &Value, path: &Path, found: &mut Diagnostics) {
    let mode = text_field(value, "mode");
    let credential = text_field(value, "credentialName");
    let is_mutual = mode == "MUTUAL";
    if credential.starts_with("configmap://") {
        let message = "a ConfigMap is not possible, because the mesh configuration has no namespace";
        found.push(error(&path.key("credentialName"), message).value(credential));
    }
    if !is_mutual && mode != "SIMPLE" {
        return;
    }
    let mut reject = |names: &[&str], reason: &str| {
        for (path, value) in names.iter().filter_map(|name| field(value, name, path)) {
            let is_empty = value.as_str() == Some("") || value.as_list().is_some_and(<[Value]>::is_empty);
            if !is_empty {
                found.push(error(&path, &format!("cannot be combined with {reason}")));
            }
        }
    };
    let skips = field(value, "insecureSkipVerify", path).and_then(|(_, value)| value.as_bool());
    if skips == Some(true) {
        let authorities = ["caCertificates", "subjectAltNames", "credentialName"];
        // A credential may also contain the client's certificate, which mutual TLS needs.
        let count = if is_mutual { 2 } else { 3 };
        reject(authorities.get(..count).unwrap_or_default(), "insecureSkipVerify");
    }
    if !credential.is_empty() {
        let files = ["clientCertificate", "caCertificates", "privateKey", "caCrl"];
        return reject(&files, "credentialName");
    }
    for name in ["clientCertificate", "privateKey"] {
        if is_mutual && text_field(value, name).is_empty() {
            found.push(error(
                path,
                &format!("has no {name}, which the mode MUTUAL requires"),
            ));
        }
    }
}
