//! Limits for the YAML and JSON texts of a chart and its values.

use mainstay_yaml::Budget;

/// Returns the limits for one text. They are lower than those for manifests of a cluster: a chart is
/// untrusted, and its values are copied several times.
pub(crate) fn budget() -> Budget {
    Budget {
        bytes: 32 << 20,
        nodes: 500_000,
        alias_expansion: 200_000,
        ..Budget::default()
    }
}
