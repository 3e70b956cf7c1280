//! The table of validation rules. Each rule has a passing and a failing fixture in `tests/validation`.

use mainstay_yaml::Value;

use super::Subject;
use super::deprecations::{deprecated, removed};
use super::ineffective::fields_without_effect;
use super::mesh::mesh_config;
use super::scalars::{is_cidr, is_hub, is_label, is_object_name, is_port, is_tag};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::path::{Path, scalar_text};

/// A validation rule.
pub(super) struct Rule {
    /// Checks the configuration and adds diagnostics.
    pub(super) check: fn(&Subject<'_>, &mut Diagnostics),
}

/// All rules apart from strict decoding.
pub(super) const RULES: &[Rule] = &[
    Rule { check: hub },
    Rule { check: tag },
    Rule { check: revision },
    Rule { check: gateway_names },
    Rule { check: networks },
    Rule { check: ports },
    Rule { check: gateway_ports },
    Rule { check: ingress_ports },
    Rule { check: replicas },
    Rule { check: mesh_config },
    Rule { check: deprecated },
    Rule { check: removed },
    Rule {
        check: fields_without_effect,
    },
    Rule {
        check: certificate_provider,
    },
];

pub(super) fn spec_path(keys: &[&str]) -> Path {
    let mut path = vec!["spec"];
    path.extend(keys);
    Path::from_keys(&path)
}

pub(super) fn values_path(keys: &[&str]) -> Path {
    let mut path = vec!["spec", "values"];
    path.extend(keys);
    Path::from_keys(&path)
}

fn text(value: &Value) -> String {
    scalar_text(value).unwrap_or_default()
}

fn hub(subject: &Subject<'_>, found: &mut Diagnostics) {
    let hub = subject.spec(&["hub"]).and_then(Value::as_str).unwrap_or_default();
    if !hub.is_empty() && !is_hub(hub) {
        let result = Diagnostic::error(spec_path(&["hub"]), "is not a registry with a path").value(hub);
        found.push(result.hint("write it like registry.example.com/istio"));
    }
}

fn tag(subject: &Subject<'_>, found: &mut Diagnostics) {
    let Some(tag) = subject.spec(&["tag"]) else { return };
    if !is_tag(&text(tag)) {
        let result = Diagnostic::error(spec_path(&["tag"]), "is not an image tag").value(&text(tag));
        found.push(result.hint("use letters, digits, '_', '.' and '-', at most 128"));
    }
}

fn revision(subject: &Subject<'_>, found: &mut Diagnostics) {
    let revision = subject
        .spec(&["revision"])
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !revision.is_empty() && !is_label(revision) {
        let result = Diagnostic::error(spec_path(&["revision"]), "is not a label").value(revision);
        found.push(result.hint("use lower-case letters, digits and '-', such as 1-29-1"));
    }
}

/// Keys of the lists of gateways, and the keys of their values.
const GATEWAYS: [(&str, &str); 2] = [
    ("ingressGateways", "istio-ingressgateway"),
    ("egressGateways", "istio-egressgateway"),
];

/// Calls `check` for each gateway with its path, its block and the key of its values.
pub(super) fn for_each_gateway(subject: &Subject<'_>, mut check: impl FnMut(Path, &Value, &'static str)) {
    for (key, values) in GATEWAYS {
        let list = subject.spec(&["components", key]).and_then(Value::as_list);
        for (index, gateway) in list.unwrap_or_default().iter().enumerate() {
            let path = spec_path(&["components", key]);
            let path = match gateway.get("name").and_then(Value::as_str) {
                Some(name) => path.named("name", name),
                None => path.index(index),
            };
            check(path, gateway, values);
        }
    }
}

fn gateway_names(subject: &Subject<'_>, found: &mut Diagnostics) {
    for_each_gateway(subject, |path, gateway, _| {
        let name = gateway.get("name").and_then(Value::as_str).unwrap_or_default();
        if !name.is_empty() && !is_object_name(name) {
            let result = Diagnostic::error(path.key("name"), "is not a valid object name").value(name);
            found.push(result.hint("use lower-case letters, digits, '.' and '-'"));
        }
    });
}

fn networks(subject: &Subject<'_>, found: &mut Diagnostics) {
    for field in ["includeIPRanges", "excludeIPRanges"] {
        let keys = ["global", "proxy", field];
        let list = subject.value(&keys).and_then(Value::as_str).unwrap_or_default();
        if matches!(list, "" | "*") {
            continue;
        }
        for range in list.split(',').filter(|range| !is_cidr(range)) {
            let message = format!("{range:?} is not an address range");
            let result = Diagnostic::error(values_path(&keys), message).value(list);
            found.push(
                result.hint("write \"*\" or ranges like 10.0.0.0/8, separated by commas without spaces"),
            );
        }
    }
}

fn ports(subject: &Subject<'_>, found: &mut Diagnostics) {
    for field in ["includeInboundPorts", "excludeInboundPorts"] {
        let keys = ["global", "proxy", field];
        let list = subject.value(&keys).and_then(Value::as_str).unwrap_or_default();
        for port in list.split(',').filter(|port| !is_port(port)) {
            let message = format!("{port:?} is not a port");
            let result = Diagnostic::error(values_path(&keys), message).value(list);
            found.push(
                result.hint("write \"*\" or numbers from 0 to 65535, separated by commas without spaces"),
            );
        }
    }
}

/// Returns the target port if only root may listen on it. Named target ports are not checked.
fn privileged_target_port(port: &Value) -> Option<i64> {
    let target = port.get("targetPort").filter(|target| !target.is_null());
    let target = match target {
        Some(Value::String(_)) => return None,
        Some(target) => target.as_i64()?,
        None => 0,
    };
    let number = port.get("port")?.as_i64()?;
    let is_safe = target >= 1024 || (target == 0 && number > 1024);
    (!is_safe).then_some(target)
}

fn root_problem(path: Path, port: &Value, target: i64, gateway: &str) -> Diagnostic {
    let number = port.get("port").map(text).unwrap_or_default();
    let listens = if target == 0 {
        number.clone()
    } else {
        target.to_string()
    };
    let message = format!("port {number} listens on {listens}, which requires root");
    let hint = format!("set targetPort to 1024 or more, or values.gateways.{gateway}.runAsRoot to true");
    Diagnostic::error(path, message).hint(hint)
}

fn gateway_ports(subject: &Subject<'_>, found: &mut Diagnostics) {
    for_each_gateway(subject, |path, gateway, values| {
        let runs_as_root = subject
            .value(&["gateways", values, "runAsRoot"])
            .and_then(Value::as_bool);
        let ports = gateway.at(&["k8s", "service", "ports"]).and_then(Value::as_list);
        if runs_as_root == Some(true) {
            return;
        }
        for (index, port) in ports.unwrap_or_default().iter().enumerate() {
            if let Some(target) = privileged_target_port(port) {
                let path = path.key("k8s").key("service").key("ports").index(index);
                found.push(root_problem(path, port, target, values));
            }
        }
    });
}

fn ingress_ports(subject: &Subject<'_>, found: &mut Diagnostics) {
    let keys = ["gateways", "istio-ingressgateway", "ingressPorts"];
    let ports = subject.value(&keys).and_then(Value::as_list).unwrap_or_default();
    for (index, port) in ports.iter().enumerate() {
        if let Some(target) = privileged_target_port(port) {
            let path = values_path(&keys).index(index);
            found.push(root_problem(path, port, target, "istio-ingressgateway"));
        }
    }
}

fn replicas(subject: &Subject<'_>, found: &mut Diagnostics) {
    let scales = |keys: &[&str]| subject.value(keys).and_then(Value::as_bool) == Some(true);
    let warn = |path: Path, values: &str| {
        let message = format!("is overridden by the autoscaler, because {values}.autoscaleEnabled is true");
        Diagnostic::warning(path.key("k8s").key("replicaCount"), message)
            .hint("set k8s.hpaSpec.minReplicas, or disable the autoscaler")
    };
    let count = |block: &Value| {
        block
            .at(&["k8s", "replicaCount"])
            .and_then(Value::as_i64)
            .unwrap_or(0)
    };
    let pilot = subject.spec(&["components", "pilot"]);
    if scales(&["pilot", "autoscaleEnabled"]) && pilot.is_some_and(|pilot| count(pilot) > 1) {
        found.push(warn(spec_path(&["components", "pilot"]), "values.pilot"));
    }
    for_each_gateway(subject, |path, gateway, values| {
        if scales(&["gateways", values, "autoscaleEnabled"]) && count(gateway) != 0 {
            found.push(warn(path, &format!("values.gateways.{values}")));
        }
    });
}

fn certificate_provider(subject: &Subject<'_>, found: &mut Diagnostics) {
    let keys = ["global", "pilotCertProvider"];
    if subject.value(&keys).and_then(Value::as_str) == Some("kubernetes") {
        let message = "Kubernetes no longer signs certificates of istiod";
        let result = Diagnostic::error(values_path(&keys), message).value("kubernetes");
        found.push(result.hint("use istiod"));
    }
}
