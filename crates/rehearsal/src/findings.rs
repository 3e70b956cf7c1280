//! Findings about an upgrade with suggested fixes, most severe first.

mod availability;
mod mesh;
mod values;
mod webhooks;
mod workloads;

use crate::compose::Rehearsal;
use crate::input::MISSING_IN_SNAPSHOT;
use crate::report::{Finding, FindingKind, Report, Severity};

/// Returns all findings, sorted by descending severity, kind, subject and text.
pub(crate) fn findings(rehearsal: &Rehearsal<'_>, report: &Report) -> Vec<Finding> {
    let mut found = Vec::new();
    workloads::add_findings(rehearsal, report, &mut found);
    availability::add_findings(rehearsal, report, &mut found);
    mesh::add_findings(rehearsal, &mut found);
    webhooks::add_findings(rehearsal, &mut found);
    values::add_findings(rehearsal, &mut found);
    add_input_findings(rehearsal, &mut found);
    found.sort_by(|a, b| {
        (b.severity, a.kind, &a.subject, &a.what).cmp(&(a.severity, b.kind, &b.subject, &b.what))
    });
    found.dedup();
    found
}

/// Severity and kind of a finding.
#[derive(Clone, Copy)]
struct Class {
    severity: Severity,
    kind: FindingKind,
}

impl Class {
    const fn error(kind: FindingKind) -> Self {
        Self {
            severity: Severity::Error,
            kind,
        }
    }

    const fn warning(kind: FindingKind) -> Self {
        Self {
            severity: Severity::Warning,
            kind,
        }
    }

    const fn info(kind: FindingKind) -> Self {
        Self {
            severity: Severity::Info,
            kind,
        }
    }
}

fn finding(
    Class { severity, kind }: Class,
    subject: impl Into<String>,
    what: impl Into<String>,
    remedy: impl Into<String>,
) -> Finding {
    Finding {
        severity,
        kind,
        subject: subject.into(),
        what: what.into(),
        remedy: remedy.into(),
    }
}

fn add_input_findings(rehearsal: &Rehearsal<'_>, found: &mut Vec<Finding>) {
    let class = Class::info(FindingKind::MissingInput);
    for (kind, why) in &rehearsal.input.missing {
        let plural = crate::input::KINDS.iter().find(|known| known.kind == *kind);
        let plural = plural.map_or("", |known| known.plural);
        let (what, remedy) = if why == MISSING_IN_SNAPSHOT {
            (
                format!("the snapshot contains no {kind}; effects that depend on it were not rehearsed"),
                format!("if the cluster has some, add the output of kubectl get {plural} -A -o yaml"),
            )
        } else {
            (
                format!("cannot read {kind}: {why}"),
                format!("allow this user to list {plural}"),
            )
        };
        found.push(finding(class, "input", what, remedy));
    }
    for name in &rehearsal.input.foreign_webhooks {
        let what = "not an Istio webhook; it was not called in the rehearsal".to_owned();
        found.push(finding(
            class,
            format!("MutatingWebhookConfiguration {name}"),
            what,
            String::new(),
        ));
    }
    for plane in &rehearsal.planned.adopted {
        let class = Class::info(FindingKind::NotManaged);
        found.push(finding(
            class,
            format!("Istio {}", plane.revision),
            format!(
                "no operator manages the {}; rehearsed as if it were adopted",
                plane.what
            ),
            "run `mainstay adopt` to see what an adoption writes, then `mainstay adopt --apply`",
        ));
    }
    for assumption in &rehearsal.planned.suppositions {
        let subject = format!("Istio {}", rehearsal.planned.istio.name());
        let class = Class::info(FindingKind::Supposition);
        found.push(finding(
            class,
            subject,
            assumption.clone(),
            "set it in the Istio before the upgrade; otherwise workloads are not migrated",
        ));
    }
}
