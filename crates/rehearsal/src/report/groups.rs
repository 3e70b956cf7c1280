//! Groups findings by severity and kind. Equal findings about several objects are merged.

use super::{Finding, FindingKind, Severity};

/// Findings of one severity and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindingGroup<'a> {
    /// Severity of all findings in the group.
    pub severity: Severity,
    /// Kind of all findings in the group.
    pub kind: FindingKind,
    /// Findings in their original order.
    pub entries: Vec<GroupedFinding<'a>>,
}

/// A finding about one or more objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupedFinding<'a> {
    /// Objects that the finding is about.
    pub subjects: Vec<&'a str>,
    /// Description of the problem.
    pub what: &'a str,
    /// Suggested fix; empty if there is none.
    pub remedy: &'a str,
}

impl FindingGroup<'_> {
    /// Returns the number of findings.
    #[must_use]
    pub fn count(&self) -> usize {
        self.entries.iter().map(|entry| entry.subjects.len()).sum()
    }
}

/// Groups findings, most severe first. Groups of equal severity have the order of their first findings.
#[must_use]
pub fn group_findings(findings: &[Finding]) -> Vec<FindingGroup<'_>> {
    let mut groups: Vec<FindingGroup<'_>> = Vec::new();
    for finding in findings {
        let is_same =
            |group: &&mut FindingGroup<'_>| group.severity == finding.severity && group.kind == finding.kind;
        match groups.iter_mut().find(is_same) {
            Some(group) => group.add(finding),
            None => groups.push(FindingGroup {
                severity: finding.severity,
                kind: finding.kind,
                entries: vec![GroupedFinding::new(finding)],
            }),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.severity));
    groups
}

impl<'a> FindingGroup<'a> {
    fn add(&mut self, finding: &'a Finding) {
        let is_same =
            |entry: &&mut GroupedFinding<'_>| entry.what == finding.what && entry.remedy == finding.remedy;
        match self.entries.iter_mut().find(is_same) {
            Some(entry) => entry.subjects.push(&finding.subject),
            None => self.entries.push(GroupedFinding::new(finding)),
        }
    }
}

impl<'a> GroupedFinding<'a> {
    fn new(finding: &'a Finding) -> Self {
        Self {
            subjects: vec![&finding.subject],
            what: &finding.what,
            remedy: &finding.remedy,
        }
    }
}

impl FindingKind {
    /// Returns the heading of a group.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::WorkloadFails => "Workloads that fail",
            Self::ControlPlaneFails => "The control plane fails",
            Self::Interruption => "Interrupted Services",
            Self::DisruptionBudget => "Disruption budgets",
            Self::UpdateStrategy => "Update strategies",
            Self::NoReplicas => "Workloads without replicas",
            Self::MissingLabel => "Workloads without an injection label",
            Self::Skipped => "Skipped workloads",
            Self::UnmanagedPod => "Pods without a workload",
            Self::WebhookOverlap => "Overlapping webhooks",
            Self::VersionSkew => "Version skew",
            Self::Values => "Values",
            Self::Tag => "Tags",
            Self::Held => "The migration is on hold",
            Self::NotPruned => "The old revision is not removed",
            Self::NotManaged => "Control planes without an operator",
            Self::MissingInput => "Missing input",
            Self::Supposition => "Assumptions",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity, kind: FindingKind, subject: &str, what: &str) -> Finding {
        Finding {
            severity,
            kind,
            subject: subject.to_owned(),
            what: what.to_owned(),
            remedy: String::new(),
        }
    }

    #[test]
    fn equal_findings_are_merged() {
        let findings = [
            finding(
                Severity::Warning,
                FindingKind::NoReplicas,
                "Deployment a/b",
                "no replicas",
            ),
            finding(
                Severity::Error,
                FindingKind::WorkloadFails,
                "Deployment a/x",
                "late",
            ),
            finding(
                Severity::Warning,
                FindingKind::NoReplicas,
                "Deployment a/c",
                "no replicas",
            ),
            finding(
                Severity::Warning,
                FindingKind::NoReplicas,
                "Deployment a/d",
                "scaled down",
            ),
        ];
        let groups = group_findings(&findings);
        let shown: Vec<(usize, Vec<usize>)> = groups
            .iter()
            .map(|group| {
                let sizes = group.entries.iter().map(|entry| entry.subjects.len());
                (group.count(), sizes.collect())
            })
            .collect();
        assert_eq!(shown, [(1, vec![1]), (3, vec![2, 1])]);
        assert_eq!(groups.first().unwrap().severity, Severity::Error);
    }
}
