//! What a person should know before the upgrade: takes what happened and what was there, gives findings with remedies, worst first.

mod availability;
mod mesh;
mod values;
mod webhooks;
mod workloads;

use crate::compose::Play;
use crate::report::{Finding, FindingKind, Report, Severity};

/// All findings: worst first, then by sort, subject and words.
pub(crate) fn findings(play: &Play<'_>, report: &Report) -> Vec<Finding> {
    let mut found = Vec::new();
    workloads::find(play, report, &mut found);
    availability::find(play, report, &mut found);
    mesh::find(play, &mut found);
    webhooks::find(play, &mut found);
    values::find(play, &mut found);
    missing(play, &mut found);
    found.sort_by(|a, b| {
        (b.severity, a.kind, &a.subject, &a.what).cmp(&(a.severity, b.kind, &b.subject, &b.what))
    });
    found.dedup();
    found
}

/// One finding.
fn finding(
    (severity, kind): (Severity, FindingKind),
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

fn missing(play: &Play<'_>, found: &mut Vec<Finding>) {
    let sort = (Severity::Info, FindingKind::MissingInput);
    for (kind, why) in &play.input.missing {
        let plural = crate::input::KINDS.iter().find(|known| known.kind == *kind);
        let plural = plural.map_or("", |known| known.plural);
        let (what, remedy) = if why.starts_with("there is none") {
            (
                format!("no {kind} is in the snapshot; what depends on them was not rehearsed"),
                format!("if the cluster has some, add them: kubectl get {plural} -A -o yaml"),
            )
        } else {
            (
                format!("no {kind} could be read: {why}"),
                format!("allow this user to list {plural}"),
            )
        };
        found.push(finding(sort, "input", what, remedy));
    }
    for name in &play.input.foreign_webhooks {
        let what = "it is not Istio's, and was not asked in the rehearsal".to_owned();
        found.push(finding(
            sort,
            format!("MutatingWebhookConfiguration {name}"),
            what,
            String::new(),
        ));
    }
    for supposed in &play.plot.suppositions {
        let subject = format!("Istio {}", play.plot.istio.name());
        let sort = (Severity::Info, FindingKind::Supposition);
        found.push(finding(
            sort,
            subject,
            supposed.clone(),
            "set it in the Istio before the upgrade, or nothing moves by itself",
        ));
    }
}
