//! Validates kinds of the core group, except pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::meta::{self, IMMUTABLE};
use super::names;
use crate::field::{FieldErrors, Path};
use crate::tree;

const IMMUTABLE_DATA: &str = "field is immutable when `immutable` is set";
const MAX_DATA_SIZE: usize = 1 << 20;

fn check_immutable_data(new: &Value, old: Option<&Value>, fields: &[&str], errors: &mut FieldErrors) {
    let Some(old) = old.filter(|old| tree::flag(old, &["immutable"])) else {
        return;
    };
    if !tree::flag(new, &["immutable"]) {
        errors.forbidden(&Path::new("immutable"), IMMUTABLE_DATA);
    }
    for field in fields.iter().filter(|field| new.get(**field) != old.get(**field)) {
        errors.forbidden(&Path::new(field), IMMUTABLE_DATA);
    }
}

fn validate_keys(value: &Value, field: &str, errors: &mut FieldErrors) -> usize {
    let mut size = 0;
    for (key, data) in tree::map(value, &[field]).into_iter().flatten() {
        for wrong in names::config_key(key) {
            errors.invalid(&Path::new(field).key(key), key.as_str(), wrong);
        }
        size += data.as_str().map_or(0, str::len);
    }
    size
}

/// Validates a `ConfigMap`.
pub(super) fn config_map(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    check_immutable_data(new, old, &["data", "binaryData"], errors);
    let size = validate_keys(new, "data", errors) + validate_keys(new, "binaryData", errors) * 3 / 4;
    for key in tree::map(new, &["data"])
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
    {
        if tree::get(new, &["binaryData", key]).is_some() {
            errors.invalid(
                &Path::new("data").key(key),
                key.as_str(),
                "duplicate of key present in binaryData",
            );
        }
    }
    if size > MAX_DATA_SIZE {
        errors.too_long(&Path::new(""), MAX_DATA_SIZE);
    }
}

/// Required keys of a Secret by its type.
const SECRET_KEYS: [(&str, &[&str]); 4] = [
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
];

/// Validates a Secret.
pub(super) fn secret(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let kind = tree::text(new, &["type"]);
    if old.is_some_and(|old| tree::text(old, &["type"]) != kind) {
        errors.invalid(&Path::new("type"), kind, IMMUTABLE);
    }
    check_immutable_data(new, old, &["data"], errors);
    let data = Path::new("data");
    if validate_keys(new, "data", errors) * 3 / 4 > MAX_DATA_SIZE {
        errors.too_long(&data, MAX_DATA_SIZE);
    }
    let needed = SECRET_KEYS
        .iter()
        .find(|(name, _)| *name == kind)
        .map_or(&[][..], |(_, keys)| keys);
    for key in needed
        .iter()
        .filter(|key| tree::get(new, &["data", key]).is_none())
    {
        errors.required(&data.key(key), "");
    }
    let has = |key: &str| tree::get(new, &["data", key]).is_some();
    if kind == "kubernetes.io/basic-auth" && !has("username") && !has("password") {
        errors.required(&data.key("username"), "");
        errors.required(&data.key("password"), "");
    }
    let account = "kubernetes.io/service-account.name";
    if kind == "kubernetes.io/service-account-token"
        && tree::text(new, &["metadata", "annotations", account]).is_empty()
    {
        errors.required(&Path::new("metadata.annotations").key(account), "");
    }
}

/// Validates a Service.
pub(super) fn service(new: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Path::new("spec");
    let kind = tree::text(new, &["spec", "type"]);
    let ip = tree::text(new, &["spec", "clusterIP"]);
    let ports = tree::list(new, &["spec", "ports"]);
    let before = old.map_or("", |old| tree::text(old, &["spec", "clusterIP"]));
    let was_external = old.is_some_and(|old| tree::text(old, &["spec", "type"]) == "ExternalName");
    if !before.is_empty() && kind != "ExternalName" && !was_external && before != ip {
        errors.invalid(
            &spec.child("clusterIPs").index(0),
            Value::Array(vec![ip.into()]),
            "may not change once set",
        );
    }
    if ports.is_empty() && ip != "None" && kind != "ExternalName" {
        errors.required(&spec.child("ports"), "");
    }
    if ip == "None" && matches!(kind, "LoadBalancer" | "NodePort") {
        let detail = format!("may not be set to 'None' for {kind} services");
        errors.invalid(&spec.child("clusterIPs").index(0), "None", detail);
    }
    if kind == "ExternalName" && tree::text(new, &["spec", "externalName"]).is_empty() {
        errors.required(&spec.child("externalName"), "");
    }
    let mut seen = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        validate_service_port(
            port,
            ports.len() > 1,
            &mut seen,
            &spec.child("ports").index(at),
            errors,
        );
    }
    meta::labels(
        tree::get(new, &["spec", "selector"]),
        &spec.child("selector"),
        errors,
    );
    let affinity = tree::text(new, &["spec", "sessionAffinity"]);
    if !matches!(affinity, "ClientIP" | "None") {
        errors.not_supported(&spec.child("sessionAffinity"), affinity, &["ClientIP", "None"]);
    }
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !kinds.contains(&kind) {
        errors.not_supported(&spec.child("type"), kind, &kinds);
    }
    check_duplicate_ports(ports, &spec.child("ports"), errors);
}

fn validate_service_port(
    port: &Value,
    named: bool,
    seen: &mut BTreeSet<String>,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let name = tree::text(port, &["name"]);
    if named && name.is_empty() {
        errors.required(&path.child("name"), "");
    } else if !name.is_empty() {
        for wrong in names::label(name, false) {
            errors.invalid(&path.child("name"), name, wrong);
        }
        if !seen.insert(name.to_owned()) {
            errors.duplicate(&path.child("name"), name);
        }
    }
    let number = tree::int(port, &["port"]).unwrap_or(0);
    for wrong in names::port_number(number) {
        errors.invalid(&path.child("port"), number, wrong);
    }
    let protocol = tree::text(port, &["protocol"]);
    if !matches!(protocol, "SCTP" | "TCP" | "UDP") {
        errors.not_supported(&path.child("protocol"), protocol, &["SCTP", "TCP", "UDP"]);
    }
    match port.get("targetPort") {
        Some(Value::Number(target)) => {
            let target = target.as_i64().unwrap_or(0);
            for wrong in names::port_number(target) {
                errors.invalid(&path.child("targetPort"), target, wrong);
            }
        }
        Some(Value::String(target)) => {
            for wrong in names::port_name(target) {
                errors.invalid(&path.child("targetPort"), target.as_str(), wrong);
            }
        }
        _ => {}
    }
}

/// Adds errors for duplicate pairs of protocol and port.
fn check_duplicate_ports(ports: &[Value], path: &Path, errors: &mut FieldErrors) {
    let mut seen = BTreeSet::new();
    for (at, port) in ports.iter().enumerate() {
        let (protocol, number) = (
            tree::text(port, &["protocol"]),
            tree::int(port, &["port"]).unwrap_or(0),
        );
        if !seen.insert((protocol.to_owned(), number)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol:?},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.duplicate_shown(&path.index(at), shown);
        }
    }
}
