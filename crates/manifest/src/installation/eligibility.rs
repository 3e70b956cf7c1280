//! Checks whether an upgrade may start: order and skew of versions, the Kubernetes version, end of life.

use mainstay_catalog::Version;

use crate::diagnostic::Severity;
use crate::package::Minor;
use crate::translate::Translator;

/// A month of a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Month {
    /// Year.
    pub year: i16,
    /// Number of the month, starting at 1.
    pub month: i8,
}

impl Month {
    const fn new(year: i16, month: i8) -> Self {
        Self { year, month }
    }
}

/// First month in which istioctl reports the end of life of a minor version of Istio 1. There is no row for
/// 1.28, because its constant in istioctl is that of an older version.
const END_OF_LIFE: &[(u64, Month)] = &[
    (24, Month::new(2025, 7)),
    (25, Month::new(2025, 10)),
    (26, Month::new(2026, 2)),
    (27, Month::new(2026, 5)),
    (29, Month::new(2026, 11)),
    (30, Month::new(2027, 2)),
];

/// A running control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlPlane {
    /// Revision; `default` if the control plane has none.
    pub revision: String,
    /// Version, if known.
    pub version: Option<Version>,
}

/// The upgrade to check, and the state of the cluster.
#[derive(Clone, Debug)]
pub struct UpgradeRequest<'a> {
    /// Revision to upgrade.
    pub revision: &'a str,
    /// Version to install.
    pub target: &'a Version,
    /// Control planes in the cluster.
    pub installed: &'a [ControlPlane],
    /// Whether a missing control plane of the revision is an error; `false` for a first installation.
    pub must_be_installed: bool,
    /// Minor version of the cluster's Kubernetes 1.
    pub kube_minor: u64,
    /// Current month.
    pub month: Month,
    /// Newest release whose charts are available, if any.
    pub newest_available: Option<&'a Version>,
}

/// A reason against an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EligibilityFinding {
    /// Severity. An error prevents the upgrade unless it is forced.
    pub severity: Severity,
    /// Description of the reason.
    pub message: String,
    /// Suggested fix.
    pub hint: Option<String>,
}

impl EligibilityFinding {
    fn new(severity: Severity, message: String) -> Self {
        Self {
            severity,
            message,
            hint: None,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Returns all reasons against an upgrade. If there are no errors, the upgrade may start.
#[must_use]
pub fn check_upgrade(request: &UpgradeRequest<'_>) -> Vec<EligibilityFinding> {
    let mut findings = Vec::new();
    findings.extend(check_order(request));
    findings.extend(
        request
            .installed
            .iter()
            .filter_map(|other| check_shared(request, other)),
    );
    findings.extend(check_kubernetes(request.target, request.kube_minor));
    findings.extend(is_end_of_life(request.target, request.month).then(|| end_of_life_finding(request)));
    findings
}

/// Whether istioctl of this version reports its end of life in a month.
#[must_use]
pub fn is_end_of_life(version: &Version, month: Month) -> bool {
    let (major, minor) = version.minor();
    let row = END_OF_LIFE.iter().find(|row| major == 1 && row.0 == minor);
    row.is_some_and(|row| month >= row.1)
}

fn end_of_life_finding(request: &UpgradeRequest<'_>) -> EligibilityFinding {
    let message = format!("Istio {} has reached its end of life", request.target);
    let newer = request.newest_available.filter(|newest| *newest > request.target);
    let hint = match newer {
        Some(newer) => format!("choose a newer version, such as --istio-version {newer}"),
        None => {
            "add a newer version with `mainstay charts pull VERSION`, then choose it with --istio-version"
                .to_owned()
        }
    };
    EligibilityFinding::new(Severity::Warning, message).hint(hint)
}

/// Checks the control plane that the upgrade replaces. Downgrades and skipped minor versions are errors.
fn check_order(request: &UpgradeRequest<'_>) -> Option<EligibilityFinding> {
    let (revision, target) = (request.revision, request.target);
    let same = request.installed.iter().find(|one| one.revision == revision);
    let Some(same) = same else {
        if !request.must_be_installed {
            return None;
        }
        let message = format!("no control plane has the revision {revision:?}");
        let hint = "install it with `mainstay install`, or choose a revision with --revision";
        return Some(EligibilityFinding::new(Severity::Error, message).hint(hint));
    };
    let Some(current) = &same.version else {
        let message = format!("the version of the control plane {revision:?} is unknown");
        return Some(EligibilityFinding::new(Severity::Warning, message));
    };
    let (from, to) = (current.minor(), target.minor());
    if target < current {
        let message = format!("{target} is older than the installed version {current}");
        return Some(EligibilityFinding::new(Severity::Error, message).hint("choose a newer version"));
    }
    if to.0 != from.0 || to.1 > from.1 + 1 {
        let message = format!("{current} to {target} skips minor versions");
        let hint = format!("upgrade to {}.{} first", from.0, from.1 + 1);
        return Some(EligibilityFinding::new(Severity::Error, message).hint(hint));
    }
    None
}

/// Checks another revision. CRDs are shared by all revisions, so an older target version replaces CRDs that
/// a newer revision requires.
fn check_shared(request: &UpgradeRequest<'_>, other: &ControlPlane) -> Option<EligibilityFinding> {
    let version = other.version.as_ref()?;
    if other.revision == request.revision || request.target >= version {
        return None;
    }
    let message = format!(
        "the revision {:?} runs {version}, and {} replaces its custom resource definitions",
        other.revision, request.target
    );
    let hint = "set values.base.enableIstioConfigCRDs=false to keep them";
    Some(EligibilityFinding::new(Severity::Warning, message).hint(hint))
}

fn check_kubernetes(target: &Version, kube_minor: u64) -> Option<EligibilityFinding> {
    let (major, minor) = target.minor();
    let oldest = Translator::for_minor(Minor { major, minor }).kube_minor;
    let message =
        format!("Istio {target} requires Kubernetes 1.{oldest} or later, the cluster has 1.{kube_minor}");
    (kube_minor < oldest)
        .then(|| EligibilityFinding::new(Severity::Error, message).hint("upgrade the cluster first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(revision: &str, version: &str) -> ControlPlane {
        ControlPlane {
            revision: revision.into(),
            version: version.parse().ok(),
        }
    }

    /// Checks an upgrade of the revision `default` and compares the messages.
    fn check(installed: &[(&str, &str)], target: &str, expected: &[&str]) {
        check_on(installed, target, 36, Month::new(2026, 6), expected);
    }

    fn check_on(installed: &[(&str, &str)], target: &str, kube_minor: u64, month: Month, expected: &[&str]) {
        let installed: Vec<_> = installed.iter().map(|one| plane(one.0, one.1)).collect();
        let shown = messages(&UpgradeRequest {
            revision: "default",
            target: &target.parse().unwrap(),
            installed: &installed,
            must_be_installed: true,
            kube_minor,
            month,
            newest_available: None,
        });
        assert_eq!(shown, expected, "{installed:?} to {target}");
    }

    fn messages(request: &UpgradeRequest<'_>) -> Vec<String> {
        let findings = check_upgrade(request).into_iter();
        findings
            .map(|one| format!("{}: {}", one.severity, one.message))
            .collect()
    }

    #[test]
    fn one_minor_version_forward_is_allowed() {
        check(&[("default", "1.28.2")], "1.29.1", &[]);
        check(&[("default", "1.29.1")], "1.29.1", &[]);
        check(&[("default", "1.29.0")], "1.29.1", &[]);
    }

    #[test]
    fn the_order_of_versions_is_checked() {
        check(
            &[("default", "1.29.1")],
            "1.28.2",
            &["error: 1.28.2 is older than the installed version 1.29.1"],
        );
        check(
            &[("default", "1.27.9")],
            "1.29.1",
            &["error: 1.27.9 to 1.29.1 skips minor versions"],
        );
        check(
            &[("canary", "1.28.2")],
            "1.29.1",
            &["error: no control plane has the revision \"default\""],
        );
        check(
            &[("default", "unknown")],
            "1.29.1",
            &["warning: the version of the control plane \"default\" is unknown"],
        );
    }

    #[test]
    fn a_first_installation_needs_no_control_plane() {
        let check = |installed: &[ControlPlane], expected: &[&str]| {
            let request = UpgradeRequest {
                revision: "default",
                target: &"1.29.1".parse().unwrap(),
                installed,
                must_be_installed: false,
                kube_minor: 20,
                month: Month::new(2026, 6),
                newest_available: None,
            };
            assert_eq!(messages(&request), expected, "{installed:?}");
        };
        let kubernetes = "error: Istio 1.29.1 requires Kubernetes 1.30 or later, the cluster has 1.20";
        check(&[], &[kubernetes]);
        check(&[plane("canary", "1.28.2")], &[kubernetes]);
        let skipped = "error: 1.27.9 to 1.29.1 skips minor versions";
        check(&[plane("default", "1.27.9")], &[skipped, kubernetes]);
    }

    #[test]
    fn an_older_target_replaces_the_definitions_of_a_newer_revision() {
        check(
            &[("default", "1.28.0"), ("canary", "1.29.1")],
            "1.28.2",
            &[
                "warning: the revision \"canary\" runs 1.29.1, and 1.28.2 replaces its custom resource definitions",
            ],
        );
    }

    #[test]
    fn the_kubernetes_version_and_the_end_of_life_are_checked() {
        check_on(
            &[("default", "1.28.2")],
            "1.29.1",
            20,
            Month::new(2026, 11),
            &[
                "error: Istio 1.29.1 requires Kubernetes 1.30 or later, the cluster has 1.20",
                "warning: Istio 1.29.1 has reached its end of life",
            ],
        );
        let hint = |newest: Option<&str>| {
            let newest = newest.map(|version| version.parse().unwrap());
            let findings = check_upgrade(&UpgradeRequest {
                revision: "default",
                target: &"1.29.1".parse().unwrap(),
                installed: &[],
                must_be_installed: false,
                kube_minor: 36,
                month: Month::new(2026, 11),
                newest_available: newest.as_ref(),
            });
            findings.into_iter().find_map(|one| one.hint).unwrap()
        };
        assert_eq!(
            hint(Some("1.30.3")),
            "choose a newer version, such as --istio-version 1.30.3"
        );
        let pull =
            "add a newer version with `mainstay charts pull VERSION`, then choose it with --istio-version";
        assert_eq!(hint(Some("1.29.1")), pull);
        assert_eq!(hint(None), pull);
        assert!(!is_end_of_life(&"1.29.1".parse().unwrap(), Month::new(2026, 10)));
        assert!(is_end_of_life(&"1.24.2".parse().unwrap(), Month::new(2026, 1)));
    }
}
