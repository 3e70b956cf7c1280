//! Deprecated and removed fields with their replacements, as tables.

use mainstay_yaml::Value;

use super::Subject;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::path::Path;

/// Deprecated fields of `spec`, and their replacements.
const DEPRECATED: &[(&str, &str)] = &[
    ("values.global.certificates", "meshConfig.certificates"),
    (
        "values.global.outboundTrafficPolicy",
        "meshConfig.outboundTrafficPolicy",
    ),
    ("values.global.localityLbSetting", "meshConfig.localityLbSetting"),
    (
        "values.global.policyCheckFailOpen",
        "meshConfig.policyCheckFailOpen",
    ),
    ("values.global.enableTracing", "meshConfig.enableTracing"),
    (
        "values.global.proxy.accessLogFormat",
        "meshConfig.accessLogFormat",
    ),
    ("values.global.proxy.accessLogFile", "meshConfig.accessLogFile"),
    // Not a row of istioctl's table, but a neighbor of the two above.
    (
        "values.global.proxy.accessLogEncoding",
        "meshConfig.accessLogEncoding",
    ),
    (
        "values.global.proxy.concurrency",
        "meshConfig.defaultConfig.concurrency",
    ),
    (
        "values.global.proxy.envoyAccessLogService",
        "meshConfig.defaultConfig.envoyAccessLogService",
    ),
    (
        "values.global.proxy.envoyAccessLogService.enabled",
        "meshConfig.enableEnvoyAccessLogService",
    ),
    (
        "values.global.proxy.envoyMetricsService",
        "meshConfig.defaultConfig.envoyMetricsService",
    ),
    (
        "values.global.proxy.protocolDetectionTimeout",
        "meshConfig.protocolDetectionTimeout",
    ),
    (
        "values.global.proxy.holdApplicationUntilProxyStarts",
        "meshConfig.defaultConfig.holdApplicationUntilProxyStarts",
    ),
    (
        "values.pilot.ingress",
        "meshConfig.ingressService, meshConfig.ingressControllerMode and meshConfig.ingressClass",
    ),
    ("values.global.mtls.enabled", "the PeerAuthentication resource"),
    ("values.global.mtls.auto", "meshConfig.enableAutoMtls"),
    (
        "values.global.tracer.lightstep.address",
        "meshConfig.defaultConfig.tracing.lightstep.address",
    ),
    (
        "values.global.tracer.lightstep.accessToken",
        "meshConfig.defaultConfig.tracing.lightstep.accessToken",
    ),
    (
        "values.global.tracer.zipkin.address",
        "meshConfig.defaultConfig.tracing.zipkin.address",
    ),
    (
        "values.global.tracer.datadog.address",
        "meshConfig.defaultConfig.tracing.datadog.address",
    ),
    (
        "values.global.meshExpansion.enabled",
        "Gateway and other Istio networking resources",
    ),
    (
        "values.gateways.istio-ingressgateway.meshExpansionPorts",
        "components.ingressGateways[name:istio-ingressgateway].k8s.service.ports",
    ),
    (
        "addonComponents.istiocoredns.enabled",
        "DNS capture in the proxy (ISTIO_META_DNS_CAPTURE)",
    ),
    (
        "values.istiocoredns.enabled",
        "DNS capture in the proxy (ISTIO_META_DNS_CAPTURE)",
    ),
    ("values.global.jwtPolicy", "the default, third-party-jwt"),
    ("values.global.centralIstiod", "values.global.externalIstiod"),
    ("values.global.arch", "components.*.k8s.affinity"),
];

/// Removed fields of `spec`.
const REMOVED: &[&str] = &[
    "values.grafana.enabled",
    "values.tracing.enabled",
    "values.kiali.enabled",
    "values.prometheus.enabled",
    "values.telemetry.v2.prometheus.configOverride",
    "values.telemetry.v2.stackdriver.configOverride",
    "values.telemetry.v2.stackdriver.disableOutbound",
    "values.telemetry.v2.stackdriver.outboundAccessLogging",
    "values.global.tracer.stackdriver.debug",
    "values.global.tracer.stackdriver.maxNumberOfAttributes",
    "values.global.tracer.stackdriver.maxNumberOfAnnotations",
    "values.global.tracer.stackdriver.maxNumberOfMessageEvents",
    "meshConfig.defaultConfig.tracing.stackdriver.debug",
    "meshConfig.defaultConfig.tracing.stackdriver.maxNumberOfAttributes",
    "meshConfig.defaultConfig.tracing.stackdriver.maxNumberOfAnnotations",
    "meshConfig.defaultConfig.tracing.stackdriver.maxNumberOfMessageEvents",
    "values.meshConfig.defaultConfig.tracing.stackdriver.debug",
    "values.meshConfig.defaultConfig.tracing.stackdriver.maxNumberOfAttributes",
    "values.meshConfig.defaultConfig.tracing.stackdriver.maxNumberOfAnnotations",
    "values.meshConfig.defaultConfig.tracing.stackdriver.maxNumberOfMessageEvents",
];

fn split_keys(path: &str) -> Vec<&str> {
    path.split('.').collect()
}

fn spec_path(path: &str) -> Path {
    let mut keys = vec!["spec"];
    keys.extend(split_keys(path));
    Path::from_keys(&keys)
}

fn user_value<'a>(subject: &'a Subject<'_>, path: &str) -> Option<&'a Value> {
    let value = subject.spec(&split_keys(path));
    value.filter(|value| value.as_str() != Some(""))
}

/// Whether there is an error at a path or at one of its ancestors.
fn is_reported(found: &Diagnostics, path: &Path) -> bool {
    let mut list = found.list().iter();
    list.any(|one| one.severity == Severity::Error && path.0.starts_with(&one.path.0))
}

/// Reports deprecated fields.
pub(super) fn deprecated(subject: &Subject<'_>, found: &mut Diagnostics) {
    for (path, replacement) in DEPRECATED {
        let at = spec_path(path);
        if user_value(subject, path).is_some() && !is_reported(found, &at) {
            let result = Diagnostic::warning(at, "is deprecated");
            found.push(result.hint(format!("use {replacement}")));
        }
    }
}

/// Reports removed fields.
pub(super) fn removed(subject: &Subject<'_>, found: &mut Diagnostics) {
    for path in REMOVED {
        let at = spec_path(path);
        let is_set = user_value(subject, path).is_some_and(|value| value.as_bool() != Some(false));
        if is_set && !is_reported(found, &at) {
            let result = Diagnostic::error(at, "is removed and has no effect");
            found.push(result.hint("remove it"));
        }
    }
}

/// Sets the hint of an unknown field to its replacement if the field is deprecated or removed, or contains
/// such fields.
pub(super) fn with_replacement(diagnostic: Diagnostic) -> Diagnostic {
    if diagnostic.message != "unknown field" {
        return diagnostic;
    }
    let path = diagnostic.path.to_string();
    let below = format!("{path}.");
    let is_below = |known: &str| format!("spec.{known}").starts_with(&below);
    if let Some((_, replacement)) = DEPRECATED.iter().find(|row| path == format!("spec.{}", row.0)) {
        return diagnostic.hint(format!("use {replacement}"));
    }
    let rows = DEPRECATED.iter().filter(|row| is_below(row.0));
    let replacements: Vec<&str> = rows.map(|row| row.1).collect();
    if !replacements.is_empty() {
        return diagnostic.hint(format!("use {}", replacements.join(" or ")));
    }
    let is_removed = |known: &&str| path == format!("spec.{known}") || is_below(known);
    if REMOVED.iter().any(is_removed) {
        return diagnostic.hint("remove it: it no longer has an effect");
    }
    diagnostic
}

/// Whether a warning in a chart's notes is about a value that a rule already reports with its location.
pub(crate) fn is_reported_deprecation(note: &str) -> bool {
    let quoted = note.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let is_row = |path: &str| DEPRECATED.iter().any(|row| row.0 == format!("values.{path}"));
    quoted.is_some_and(|(path, _)| is_row(path))
}

#[cfg(test)]
mod tests {
    use mainstay_yaml::Map;

    use super::*;
    use crate::merge::put;

    type Check = fn(&Subject<'_>, &mut Diagnostics);

    /// Returns the diagnostics of a configuration that sets only `path`.
    fn check(check: Check, path: &str) -> String {
        let (mut operator, values) = (Map::new(), Map::new());
        let mut keys = vec!["spec"];
        keys.extend(split_keys(path));
        put(&mut operator, &keys, true.into());
        let subject = Subject {
            operator: &operator,
            values: &values,
        };
        let mut found = Diagnostics::default();
        check(&subject, &mut found);
        found.to_string()
    }

    /// istioctl 1.23 has 27 rows, and 16 removed values that Mainstay does not install as add-ons; four of
    /// them exist below `meshConfig` and `values.meshConfig`.
    #[test]
    fn every_row_is_reported() {
        assert_eq!((DEPRECATED.len(), REMOVED.len()), (27 + 1, 16 + 4));
        for (path, _) in DEPRECATED {
            // A row may contain another one.
            let is_set = |row: &&(&str, &str)| *path == row.0 || path.starts_with(&format!("{}.", row.0));
            let rows = DEPRECATED.iter().filter(is_set);
            let expected: Vec<String> = rows
                .map(|row| format!("warning: spec.{}: is deprecated\n  hint: use {}", row.0, row.1))
                .collect();
            assert_eq!(check(deprecated, path), expected.join("\n"));
        }
        for path in REMOVED {
            let expected = format!("error: spec.{path}: is removed and has no effect\n  hint: remove it");
            assert_eq!(check(removed, path), expected);
        }
    }

    #[test]
    fn an_unknown_field_has_its_replacement_as_hint() {
        let hint = |path: &str| with_replacement(Diagnostic::error(spec_path(path), "unknown field")).hint;
        for (path, replacement) in DEPRECATED {
            assert_eq!(hint(path), Some(format!("use {replacement}")));
        }
        let both = "use the PeerAuthentication resource or meshConfig.enableAutoMtls";
        assert_eq!(hint("values.global.mtls").as_deref(), Some(both));
        let removed = Some("remove it: it no longer has an effect");
        assert_eq!(hint("values.grafana").as_deref(), removed);
        assert_eq!(hint("values.grafanas"), None);
    }
}
