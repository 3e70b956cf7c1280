//! Findings that follow from the report about a cluster.

use std::collections::BTreeMap;

use serde::Serialize;

use super::MemberReport;

/// Maximum clock difference without a finding, in milliseconds.
const MAX_CLOCK_SKEW_MILLIS: i64 = 10_000;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Rollouts can fail.
    Error,
    /// Some rollouts can fail, or times are wrong.
    Warning,
}

/// A problem of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Severity of the finding.
    pub severity: Severity,
    /// Description of the problem.
    pub message: String,
    /// Remedy.
    pub hint: String,
}

impl MemberReport {
    /// Returns the findings, the most severe first.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = self.missing_permissions();
        findings.extend(self.clock_finding());
        findings.sort_by_key(|finding| finding.severity);
        findings
    }

    /// Returns one finding per resource with missing permissions.
    fn missing_permissions(&self) -> Vec<Finding> {
        let mut missing = BTreeMap::<(&str, &str), Vec<&str>>::new();
        for permission in self
            .permissions
            .iter()
            .filter(|permission| !permission.is_allowed)
        {
            let resource = (permission.group.as_str(), permission.resource.as_str());
            missing.entry(resource).or_default().push(&permission.verb);
        }
        let finding = |((group, resource), verbs): ((&str, &str), Vec<&str>)| {
            let is_routing = self.routing.iter().any(|kinds| kinds.group() == group);
            let shown = if group.is_empty() {
                resource.to_owned()
            } else {
                format!("{resource}.{group}")
            };
            Finding {
                severity: if is_routing {
                    Severity::Warning
                } else {
                    Severity::Error
                },
                message: format!("the account cannot {} {shown}", verbs.join(", ")),
                hint: "grant it to the account, or use `mainstay cluster add --create-account`: its account has the \
                       required role"
                    .to_owned(),
            }
        };
        missing.into_iter().map(finding).collect()
    }

    fn clock_finding(&self) -> Option<Finding> {
        let skew = self.clock_skew_millis?;
        let seconds = skew.unsigned_abs().div_ceil(1000);
        let direction = if skew > 0 { "ahead of" } else { "behind" };
        (skew.abs() > MAX_CLOCK_SKEW_MILLIS).then(|| Finding {
            severity: Severity::Warning,
            message: format!("the clock of the API server is {seconds} s {direction} this machine's"),
            hint: "synchronize the clocks: tokens, certificates and times of conditions depend on them"
                .to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use mainstay_api::delivery::Provider;

    use super::*;
    use crate::remote::{Permission, RoutingKinds};

    fn report() -> MemberReport {
        let permission = |group: &str, resource: &str, verb: &str, is_allowed| Permission {
            group: group.to_owned(),
            resource: resource.to_owned(),
            verb: verb.to_owned(),
            is_allowed,
        };
        MemberReport {
            version: "v1.36.0".to_owned(),
            round_trip_millis: 3,
            clock_skew_millis: Some(0),
            permissions: vec![
                permission("", "services", "get", true),
                permission("networking.istio.io", "virtualservices", "patch", false),
                permission("apps", "deployments", "create", false),
                permission("apps", "deployments", "delete", false),
            ],
            routing: vec![RoutingKinds {
                provider: Provider::Istio,
                api_version: "networking.istio.io/v1".to_owned(),
                served: vec!["virtualservices".to_owned()],
                missing: Vec::new(),
            }],
        }
    }

    #[test]
    fn permissions_are_grouped_and_errors_come_first() {
        let shown: Vec<(Severity, String)> = report()
            .findings()
            .into_iter()
            .map(|finding| (finding.severity, finding.message))
            .collect();
        assert_eq!(
            shown,
            [
                (
                    Severity::Error,
                    "the account cannot create, delete deployments.apps".to_owned()
                ),
                (
                    Severity::Warning,
                    "the account cannot patch virtualservices.networking.istio.io".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn a_large_clock_difference_is_a_warning() {
        for (skew, expected) in [
            (9_000, None),
            (
                -10_001,
                Some("the clock of the API server is 11 s behind this machine's"),
            ),
            (
                61_000,
                Some("the clock of the API server is 61 s ahead of this machine's"),
            ),
        ] {
            let report = MemberReport {
                clock_skew_millis: Some(skew),
                permissions: Vec::new(),
                ..report()
            };
            let found = report.findings();
            assert_eq!(found.first().map(|finding| finding.message.as_str()), expected);
        }
    }
}
