//! Rules of the mesh configuration as a table. They are the rules that istiod checks at its start.

mod checks;
mod locality;

use mainstay_yaml::Value;

use super::Subject;
use super::rules::{spec_path, values_path};
use crate::diagnostic::Diagnostics;
use crate::path::Path;
use crate::schema::camel_case;

/// Checks the value at a path.
type Check = fn(&Value, &Path, &mut Diagnostics);

/// Fields and their rules. `[]` selects every item of a list.
const MESH_RULES: &[(&str, Check)] = &[
    ("proxyListenPort", checks::port),
    ("proxyInboundListenPort", checks::optional_port),
    ("proxyHttpPort", checks::optional_port),
    ("connectTimeout", checks::connect_timeout),
    ("protocolDetectionTimeout", checks::milliseconds),
    ("dnsRefreshRate", checks::duration),
    ("hboneIdleTimeout", checks::duration),
    ("ca.requestTimeout", checks::duration),
    ("trustDomain", checks::trust_domain),
    ("trustDomainAliases[]", checks::trust_domain),
    ("serviceSettings[].hosts[]", checks::wildcard_domain),
    ("localityLbSetting", locality::locality_setting),
    ("extensionProviders", checks::providers),
    ("meshMTLS.ecdhCurves", checks::no_curves),
    ("tlsDefaults.ecdhCurves", checks::curves),
    ("defaultConfig.configPath", checks::not_empty),
    ("defaultConfig.binaryPath", checks::not_empty),
    ("defaultConfig.serviceCluster", checks::not_empty),
    ("defaultConfig.drainDuration", checks::drain_duration),
    ("defaultConfig.terminationDrainDuration", checks::duration),
    ("defaultConfig.discoveryRefreshDelay", checks::duration),
    ("defaultConfig.fileFlushInterval", checks::duration),
    ("defaultConfig.discoveryAddress", checks::address),
    ("defaultConfig.statsdUdpAddress", checks::optional_address),
    (
        "defaultConfig.envoyMetricsServiceAddress",
        checks::optional_address,
    ),
    (
        "defaultConfig.envoyMetricsService.address",
        checks::optional_address,
    ),
    (
        "defaultConfig.envoyAccessLogService.address",
        checks::optional_address,
    ),
    ("defaultConfig.tracing.zipkin", checks::collector),
    ("defaultConfig.tracing.datadog", checks::collector),
    ("defaultConfig.tracing.lightstep", checks::lightstep),
    ("defaultConfig.tracing.tlsSettings", checks::client_tls),
    ("defaultConfig.tracing.customTags", checks::no_null_entries),
    ("defaultConfig.proxyMetadata", checks::proxy_metadata),
    ("defaultConfig.proxyAdminPort", checks::port),
    ("defaultConfig.statusPort", checks::port),
    ("defaultConfig.privateKeyProvider", checks::private_key_provider),
];

/// Checks `spec.meshConfig` and `spec.values.meshConfig`.
pub(super) fn mesh_config(subject: &Subject<'_>, found: &mut Diagnostics) {
    let places = [
        (spec_path(&["meshConfig"]), subject.spec(&["meshConfig"])),
        (
            values_path(&["meshConfig"]),
            subject.spec(&["values", "meshConfig"]),
        ),
    ];
    for (path, config) in places {
        let Some(config) = config else { continue };
        for (field, check) in MESH_RULES {
            let steps: Vec<&str> = field.split('.').collect();
            check_field(config, &path, &steps, *check, found);
        }
    }
}

/// Calls `check` for the values that `steps` select, unless they are null.
fn check_field(value: &Value, path: &Path, steps: &[&str], check: Check, found: &mut Diagnostics) {
    let Some((step, steps)) = steps.split_first() else {
        return check(value, path, found);
    };
    let name = step.strip_suffix("[]");
    let Some((path, value)) = field(value, name.unwrap_or(step), path) else {
        return;
    };
    if name.is_none() {
        return check_field(value, &path, steps, check, found);
    }
    for (index, item) in value.as_list().unwrap_or_default().iter().enumerate() {
        check_field(item, &path.index(index), steps, check, found);
    }
}

/// Returns a field with its path. Its name may be written in snake case.
fn field<'a>(value: &'a Value, name: &str, path: &Path) -> Option<(Path, &'a Value)> {
    let mut entries = value.as_map()?.iter();
    let (key, value) = entries.find(|(key, _)| *key == name || camel_case(key) == name)?;
    (!value.is_null()).then(|| (path.key(key), value))
}

#[cfg(test)]
mod tests;
