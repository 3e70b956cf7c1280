//! `mainstay revision describe`: prints the details of a revision.

mod unmanaged;

use std::fmt::Write as _;

use mainstay_api::{Condition, IstioRevision};
use mainstay_cluster::survey::{OwnedObject, Survey, owned_objects, survey};
use mainstay_mesh::Snapshot;
use serde::Serialize;

use super::{Common, Format, empty_snapshot, structured};
use crate::commands::print_styled;
use crate::error::{CliError, Kind};
use crate::report::{Problem, RevisionReport, problems, referrers, revision_report};
use crate::ui::style::HINT;
use crate::ui::table;

/// Maximum number of referrers without `-o wide`.
const MAX_REFERRERS: usize = 20;

/// Arguments of `revision describe`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Name of the revision
    name: String,

    #[command(flatten)]
    common: Common,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    #[serde(flatten)]
    revision: RevisionReport,
    conditions: Vec<Condition>,
    referrers: Vec<Referrer>,
    installed: Vec<Object>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_read: Vec<String>,
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct Referrer {
    who: String,
    why: String,
}

#[derive(Serialize)]
struct Object {
    kind: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> Result<(), CliError> {
    let common = &args.common;
    let client = common.cluster.client().await?;
    let found = survey(&client, empty_snapshot(&common.charts, &common.at)?).await?;
    let Some(revision) = found.snapshot.revisions().get(&args.name) else {
        let plane = found.unmanaged.iter().find(|plane| plane.revision == args.name);
        let plane = plane.ok_or_else(|| unknown(&found, &args.name))?;
        return print_styled(&unmanaged::page(&found, plane, common.output)?);
    };
    let (installed, unread) = owned_objects(&client, &revision.metadata.uid).await;
    let object = format!("IstioRevision/{}", revision.name());
    let problems = problems(&found)
        .into_iter()
        .filter(|problem| problem.object == object);
    let description = Description {
        problems: problems.collect(),
        installed: installed.into_iter().map(object_of).collect(),
        not_read: unread
            .into_iter()
            .map(|(kind, error)| format!("{kind}: {error}"))
            .collect(),
        ..describe(&found.snapshot, revision)
    };
    let text = match common.output {
        Format::Text | Format::Wide => page(&description, common.output == Format::Wide),
        other => structured(&description, other)?,
    };
    print_styled(&text)
}

fn describe(snapshot: &Snapshot, revision: &IstioRevision) -> Description {
    let referrers = referrers(snapshot, revision.name());
    Description {
        revision: revision_report(snapshot, revision),
        conditions: revision.status.conditions.0.clone(),
        referrers: referrers
            .into_iter()
            .map(|(who, why)| Referrer { who, why })
            .collect(),
        installed: Vec::new(),
        not_read: Vec::new(),
        problems: Vec::new(),
    }
}

fn object_of(owned: OwnedObject) -> Object {
    Object {
        kind: owned.kind,
        namespace: owned.namespace,
        name: owned.name,
    }
}

fn unknown(found: &Survey, name: &str) -> CliError {
    let snapshot = &found.snapshot;
    let revisions = snapshot.revisions().iter().map(IstioRevision::name);
    let unmanaged = found.unmanaged.iter().map(|plane| plane.revision.as_str());
    let known: Vec<&str> = revisions.chain(unmanaged).collect();
    let error = CliError::new(Kind::Cluster, format!("IstioRevision {name:?} not found"));
    if known.is_empty() {
        error.hint("run `mainstay revision list`: the cluster has no revisions")
    } else if let Some(tag) = snapshot.tags().get(name) {
        error.hint(format!(
            "use {:?}: {name:?} is a tag of it",
            tag.status.istio_revision
        ))
    } else {
        error.hint(format!("use one of {}", known.join(", ")))
    }
}

fn or_dash(text: &str) -> String {
    match text {
        "" => "-".to_owned(),
        text => text.to_owned(),
    }
}

/// Formats facts as lines of names and values.
fn facts(facts: &[(&str, String)]) -> String {
    let rows: Vec<Vec<String>> = facts
        .iter()
        .map(|(key, value)| vec![format!("{key}:"), value.clone()])
        .collect();
    table::lines("", &rows)
}

fn page(description: &Description, wide: bool) -> String {
    let revision = &description.revision;
    let when = revision
        .pruned_at
        .as_ref()
        .map(|at| format!(" ({at})"))
        .unwrap_or_default();
    let mut out = facts(&[
        ("Name", revision.name.clone()),
        ("Version", revision.version.clone()),
        ("Namespace", revision.namespace.clone()),
        ("Istio", or_dash(&revision.istio)),
        ("State", revision.state.clone()),
        ("Control plane", revision.control_plane.clone()),
        ("In use by", revision.in_use_by.to_string()),
        ("Pruning", format!("{}{when}", revision.pruning)),
    ]);
    out.push_str(&conditions(description));
    out.push_str(&used_by(&description.referrers, wide));
    out.push_str(&installed(description));
    for problem in &description.problems {
        let _ = writeln!(
            out,
            "\n{}: {}\n{HINT}hint:{HINT:#} {}",
            problem.reason,
            table::one_line(&problem.message),
            problem.remedy
        );
    }
    out
}

fn conditions(description: &Description) -> String {
    let mut rows = vec![
        ["TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for condition in &description.conditions {
        let since = condition.last_transition_time.map(|time| time.to_string());
        rows.push(vec![
            condition.kind.to_string(),
            format!("{:?}", condition.status),
            since.unwrap_or_else(|| "-".to_owned()),
            condition.reason.to_string(),
            condition.message.clone(),
        ]);
    }
    format!("\nConditions\n{}", table::lines("  ", &rows))
}

fn used_by(all: &[Referrer], wide: bool) -> String {
    if all.is_empty() {
        return "\nReferrers: none\n".to_owned();
    }
    let max = if wide { all.len() } else { MAX_REFERRERS };
    let rows: Vec<Vec<String>> = all
        .iter()
        .take(max)
        .map(|one| vec![one.who.clone(), one.why.clone()])
        .collect();
    let mut out = format!("\nReferrers\n{}", table::lines("  ", &rows));
    if all.len() > max {
        let _ = writeln!(out, "  and {} more (-o wide)", all.len() - max);
    }
    out
}

fn installed(description: &Description) -> String {
    let mut out = format!("\nInstalled: {} objects\n", description.installed.len());
    let full = |object: &Object| match object.namespace.as_str() {
        "" => object.name.clone(),
        namespace => format!("{namespace}/{}", object.name),
    };
    let rows: Vec<Vec<String>> = description
        .installed
        .iter()
        .map(|one| vec![one.kind.to_owned(), full(one)])
        .collect();
    out.push_str(&table::lines("  ", &rows));
    for line in &description.not_read {
        let _ = writeln!(out, "  not read: {line}");
    }
    out
}
