//! Text output of `mainstay adopt`.

use std::fmt::Write as _;

use mainstay_adopt::{Adoption, Component, ComponentPlan, Dropped, FieldDifference, HelmTransfer, Skipped};
use mainstay_cluster::deploy::document;
use serde::Serialize;
use serde_json::Value;

use crate::ui::style::{HINT, WARNING};
use crate::ui::table;

/// Maximum length of a printed value in characters. Longer values are truncated.
const MAX_VALUE: usize = 60;

/// Summary of an adoption for JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Summary<'a> {
    found: &'a [Component],
    resources: Vec<Value>,
    objects: usize,
    missing: Vec<&'a str>,
    differences: Vec<&'a FieldDifference>,
    dropped: Vec<&'a Dropped>,
    rejected: Vec<String>,
    hidden: Vec<String>,
    left: &'a [Skipped],
}

impl<'a> Summary<'a> {
    /// Summarizes an adoption.
    pub(crate) fn new(adoption: &'a Adoption) -> Self {
        let plans = || adoption.plans.iter();
        let all = || plans().chain(&adoption.rejected);
        Self {
            found: &adoption.found,
            resources: plans()
                .flat_map(|plan| plan.derivation.derived.documents())
                .collect(),
            objects: plans().map(count_changed).sum(),
            missing: plans()
                .flat_map(|plan| &plan.missing)
                .map(String::as_str)
                .collect(),
            differences: all().flat_map(|plan| &plan.differences).collect(),
            rejected: adoption
                .rejected
                .iter()
                .map(|plan| plan.component.describe())
                .collect(),
            dropped: plans().flat_map(|plan| &plan.derivation.dropped).collect(),
            hidden: adoption
                .hidden
                .iter()
                .map(|one| format!("{}/{}", one.namespace, one.name))
                .collect(),
            left: &adoption.skipped,
        }
    }
}

/// Returns the number of objects whose ownership changes.
fn count_changed(plan: &ComponentPlan) -> usize {
    plan.objects.iter().filter(|owned| owned.patch.is_some()).count()
}

/// Formats an adoption.
pub(crate) fn page(adoption: &Adoption, is_applied: bool) -> String {
    let mut out = found_section(adoption);
    if adoption.plans.is_empty() && adoption.rejected.is_empty() {
        out.push_str("\nNothing to adopt.\n");
        return out;
    }
    for plan in &adoption.plans {
        out.push_str(&component(plan));
    }
    for plan in &adoption.rejected {
        let _ = writeln!(
            out,
            "\n{WARNING}Not adopted: the {}{WARNING:#}",
            plan.component.describe()
        );
        out.push_str("  the operator would change it, see below; `--allow-differences` adopts it\n");
    }
    out.push_str(&differences(adoption));
    out.push_str(&releases_and_skipped(adoption));
    if !is_applied {
        let _ = writeln!(
            out,
            "\nNothing was written. {HINT}Run `mainstay adopt --apply` to adopt the mesh; run `mainstay adopt --undo` to revert.{HINT:#}"
        );
    }
    out
}

fn found_section(adoption: &Adoption) -> String {
    if adoption.found.is_empty() {
        return "No control plane found.\n".to_owned();
    }
    let head = ["COMPONENT", "NAMESPACE", "REVISION", "VERSION", "INSTALLED BY"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for component in &adoption.found {
        let version = component.versions.first().map_or("unknown", String::as_str);
        rows.push(vec![
            component.workload.clone(),
            component.namespace.clone(),
            component.revision.clone(),
            version.to_owned(),
            component.installer.to_string(),
        ]);
    }
    let mut out = format!("Found\n{}", table::lines("  ", &rows));
    if let Some(error) = &adoption.secrets_error {
        let _ = writeln!(
            out,
            "  {WARNING}Helm's releases cannot be read: {error}{WARNING:#}"
        );
    }
    out
}

fn component(plan: &ComponentPlan) -> String {
    let mut out = format!("\nAdopt the {}\n", plan.component.describe());
    if !plan.component.values_from.is_empty() {
        let _ = writeln!(out, "  values from {}", plan.component.values_from);
    }
    let _ = writeln!(out, "  change the ownership of {} objects", count_changed(plan));
    for dropped in &plan.derivation.dropped {
        let _ = writeln!(out, "  omit value {}: {}", dropped.path, dropped.reason);
    }
    for missing in &plan.missing {
        let _ = writeln!(out, "  the operator will create {missing}");
    }
    for resource in plan.derivation.derived.documents() {
        let text = document(&resource).unwrap_or_default();
        out.push_str("  create\n");
        for line in text.lines() {
            let _ = writeln!(out, "    {line}");
        }
    }
    out
}

fn differences(adoption: &Adoption) -> String {
    let plans = adoption.plans.iter().chain(&adoption.rejected);
    let all: Vec<&FieldDifference> = plans.flat_map(|plan| &plan.differences).collect();
    difference_table(&all, "the operator")
}

fn difference_table(all: &[&FieldDifference], tool: &str) -> String {
    if all.is_empty() {
        return "\nNo differences: the rendered objects equal the live ones.\n".to_owned();
    }
    let head = ["OBJECT", "FIELD", "LIVE", "RENDERED", "NOTE"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for difference in all {
        rows.push(vec![
            difference.object.clone(),
            difference.field.clone(),
            shown(difference.live.as_ref()),
            shown(difference.desired.as_ref()),
            note(difference),
        ]);
    }
    format!("\nFields that {tool} will change\n{}", table::lines("  ", &rows))
}

fn note(difference: &FieldDifference) -> String {
    match (&difference.harmless, &difference.set) {
        (Some(reason), _) => format!("no effect: {reason}"),
        (None, Some(path)) => format!("set spec.values.{path} to the live value"),
        (None, None) if difference.is_restart() => "restarts pods; no value sets this field".to_owned(),
        (None, None) => "no value sets this field".to_owned(),
    }
}

fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None => return "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let text = table::one_line(&text);
    if text.chars().count() <= MAX_VALUE {
        return text;
    }
    text.chars().take(MAX_VALUE).chain("…".chars()).collect()
}

/// Summary of a hand-over to Helm for structured output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HandOverSummary<'a> {
    releases: Vec<String>,
    objects: usize,
    missing: Vec<&'a str>,
    differences: Vec<&'a FieldDifference>,
    left: &'a [Skipped],
}

impl<'a> HandOverSummary<'a> {
    /// Summarizes a hand-over.
    pub(crate) fn new(plan: &'a HelmTransfer) -> Self {
        let releases = || plan.releases.iter();
        Self {
            releases: releases()
                .map(|one| format!("{}/{}", one.release.namespace, one.release.name))
                .collect(),
            objects: releases().map(|one| one.objects.len()).sum(),
            missing: releases()
                .flat_map(|one| &one.missing)
                .map(String::as_str)
                .collect(),
            differences: releases().flat_map(|one| &one.differences).collect(),
            left: &plan.skipped,
        }
    }
}

/// Formats a hand-over to Helm.
pub(crate) fn hand_over(plan: &HelmTransfer, is_applied: bool) -> String {
    if plan.releases.is_empty() {
        return format!(
            "Nothing to hand over to Helm.\n{}",
            skipped_section(&plan.skipped)
        );
    }
    let head = ["RELEASE", "NAMESPACE", "CHART", "VERSION", "OBJECTS", "CONTENT"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for release in &plan.releases {
        rows.push(vec![
            release.release.name.clone(),
            release.release.namespace.clone(),
            release.release.chart().to_owned(),
            release.release.chart_version().to_owned(),
            release.objects.len().to_string(),
            release.what.clone(),
        ]);
    }
    let mut out = format!("Helm releases\n{}", table::lines("  ", &rows));
    for missing in plan.releases.iter().flat_map(|release| &release.missing) {
        let _ = writeln!(out, "  `helm upgrade` will create {missing}");
    }
    let all: Vec<&FieldDifference> = plan.releases.iter().flat_map(|one| &one.differences).collect();
    out.push_str(&difference_table(&all, "`helm upgrade`"));
    out.push_str(&skipped_section(&plan.skipped));
    if !is_applied {
        let _ = writeln!(
            out,
            "\nNothing was written. {HINT}Run `mainstay adopt --to helm --apply` to hand the mesh to Helm.{HINT:#}"
        );
    }
    out
}

fn skipped_section(skipped: &[Skipped]) -> String {
    if skipped.is_empty() {
        return String::new();
    }
    let rows = skipped
        .iter()
        .map(|one| vec![one.what.clone(), one.reason.clone()]);
    format!("\nNot changed\n{}", table::lines("  ", &rows.collect::<Vec<_>>()))
}

fn releases_and_skipped(adoption: &Adoption) -> String {
    let mut out = String::new();
    for release in &adoption.hidden {
        let _ = writeln!(
            out,
            "\nHelm release {}/{}: Helm will no longer find it (label owner of Secret {})",
            release.namespace, release.name, release.secret
        );
    }
    out.push_str(&skipped_section(&adoption.skipped));
    out
}
