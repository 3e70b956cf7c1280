//! Status of the meshes in a cluster as plain data, derived from a survey.

mod problem;
mod referrers;
mod unmanaged;

use std::collections::BTreeSet;

use jiff::Timestamp;
use mainstay_api::{ConditionType, Istio, IstioRevision, Kind, Reason, Resource, Status as _, names};
use mainstay_cluster::survey::Survey;
use mainstay_mesh::snapshot::Source;
use mainstay_mesh::{PruneDecision, Snapshot, active_revision_name, grace_period, prune_decisions};
use serde::Serialize;

use crate::kubeconfig::NamespaceFlags;
pub(crate) use problem::{Problem, problems};
pub(crate) use referrers::{Use, named, referrers, tag_referrers};
pub(crate) use unmanaged::{
    ADOPT_HINT, UnmanagedReport, report as unmanaged_report, section as unmanaged_section,
};

/// Status of all meshes in a cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// Time of the survey.
    pub(crate) at: String,
    pub(crate) operator: Operator,
    pub(crate) istios: Vec<IstioReport>,
    pub(crate) revisions: Vec<RevisionReport>,
    pub(crate) tags: Vec<TagReport>,
    pub(crate) components: Vec<Component>,
    /// Control planes that no operator manages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unmanaged: Vec<UnmanagedReport>,
    /// Kinds that could not be read; facts that depend on them are unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_read: Vec<String>,
    pub(crate) problems: Vec<Problem>,
}

/// State of the operator.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Operator {
    pub(crate) running: Option<bool>,
    /// `running`, `not running` or `unknown`, with the detail.
    pub(crate) message: String,
    /// The leader, or the reason why the state is unknown.
    #[serde(skip)]
    detail: String,
}

impl Operator {
    fn new(running: Option<bool>, detail: String) -> Self {
        let state = match running {
            Some(true) => "running",
            Some(false) => "not running",
            None => "unknown",
        };
        Self {
            running,
            message: format!("{state}: {detail}"),
            detail,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IstioReport {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) strategy: String,
    pub(crate) active_revision: String,
    pub(crate) state: String,
    pub(crate) revisions: Vec<String>,
    pub(crate) tags: Vec<String>,
    /// Message of a migration in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) migration: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RevisionReport {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) istio: String,
    pub(crate) state: String,
    pub(crate) ready: String,
    pub(crate) control_plane: String,
    pub(crate) in_use_by: Use,
    #[serde(rename = "prospect")]
    pub(crate) pruning: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pruned_at: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TagReport {
    pub(crate) name: String,
    pub(crate) target: String,
    pub(crate) revision: String,
    pub(crate) state: String,
    pub(crate) owner: String,
    pub(crate) in_use_by: Use,
}

/// A CNI plugin or a ztunnel.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Component {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) state: String,
    pub(crate) ready: String,
}

impl Report {
    /// Keeps the control planes of the selected namespaces, with their tags and problems.
    pub(crate) fn restricted_to(mut self, namespaces: &NamespaceFlags) -> Self {
        if namespaces.namespace().is_none() {
            return self;
        }
        let (mut dropped, selects) = (BTreeSet::new(), |it: &str| namespaces.selects(it));
        let mut keeps = |kind: &str, name: &str, is_kept: bool| {
            if !is_kept {
                dropped.insert(format!("{kind}/{name}"));
            }
            is_kept
        };
        self.istios
            .retain(|it| keeps("Istio", &it.name, selects(&it.namespace)));
        self.revisions
            .retain(|it| keeps("IstioRevision", &it.name, selects(&it.namespace)));
        self.components
            .retain(|it| keeps(&it.kind, &it.name, selects(&it.namespace)));
        let revisions: BTreeSet<&str> = self.revisions.iter().map(|it| it.name.as_str()).collect();
        self.tags.retain(|it| {
            keeps(
                "IstioRevisionTag",
                &it.name,
                revisions.contains(it.revision.as_str()),
            )
        });
        self.unmanaged.retain(|it| selects(&it.namespace));
        self.problems.retain(|it| !dropped.contains(&it.object));
        self
    }

    /// Creates a report from a survey.
    pub(crate) fn from_survey(survey: &Survey) -> Self {
        let snapshot = &survey.snapshot;
        let operator = operator(survey);
        let mut problems = problems(survey);
        problems.extend(problem::operator_problem(&operator));
        Self {
            at: second(snapshot.now),
            operator,
            istios: snapshot
                .istios()
                .iter()
                .map(|istio| istio_report(snapshot, istio))
                .collect(),
            revisions: revisions(snapshot),
            tags: tags(snapshot),
            components: components(snapshot),
            unmanaged: unmanaged::reports(survey),
            not_read: not_read(snapshot),
            problems,
        }
    }

    /// Returns the revisions of an Istio.
    pub(crate) fn revisions_of<'a>(&'a self, istio: &'a str) -> impl Iterator<Item = &'a RevisionReport> {
        self.revisions
            .iter()
            .filter(move |revision| revision.istio == istio)
    }
}

fn operator(survey: &Survey) -> Operator {
    let now = survey.snapshot.now;
    let leaders = match &survey.leaders {
        Ok(leaders) => leaders,
        Err(error) => return Operator::new(None, error.to_string()),
    };
    let alive = leaders.iter().find(|leader| leader.is_alive(now));
    let detail = match (alive, leaders.first()) {
        (Some(leader), _) => format!("leader {} in namespace {}", leader.holder, leader.namespace),
        (None, Some(last)) if last.holder.is_empty() => {
            let since = last.renewed.map_or_else(|| "some time".to_owned(), second);
            format!(
                "the last leader in namespace {} stopped at {since}",
                last.namespace
            )
        }
        (None, Some(last)) => {
            let since = last.renewed.map_or_else(|| "never".to_owned(), second);
            format!(
                "leader {} in namespace {} last renewed its lease at {since}",
                last.holder, last.namespace
            )
        }
        (None, None) => {
            let lease = names::LEASE;
            let detail = format!(
                "no Lease {lease} found in any namespace; an operator with --leader-elect=false has none"
            );
            return Operator::new(None, detail);
        }
    };
    Operator::new(Some(alive.is_some()), detail)
}

fn istio_report(snapshot: &Snapshot, istio: &Istio) -> IstioReport {
    let owned = snapshot.revisions().owned_by(&istio.metadata.uid);
    let tags = snapshot.tags().owned_by(&istio.metadata.uid);
    IstioReport {
        name: istio.name().to_owned(),
        version: istio.spec.version.clone(),
        namespace: istio.spec.namespace.clone(),
        strategy: format!("{:?}", istio.spec.strategy()),
        active_revision: active(snapshot, istio),
        state: state(istio),
        revisions: owned.map(|revision| revision.name().to_owned()).collect(),
        tags: tags.map(|tag| tag.name().to_owned()).collect(),
        migration: migration(istio),
    }
}

/// Returns the message of a migration in progress.
fn migration(istio: &Istio) -> Option<String> {
    let condition = istio.status.conditions.find(&ConditionType::WorkloadsMigrated)?;
    (condition.reason == Reason::MigrationInProgress).then(|| condition.message.clone())
}

/// Returns the revision that the operator would activate, or the last active one if that is unknown.
fn active(snapshot: &Snapshot, istio: &Istio) -> String {
    active_revision_name(snapshot, istio).unwrap_or_else(|_| istio.status.active_revision_name.clone())
}

fn revisions(snapshot: &Snapshot) -> Vec<RevisionReport> {
    snapshot
        .revisions()
        .iter()
        .map(|revision| revision_report(snapshot, revision))
        .collect()
}

/// Returns the status of a revision.
pub(crate) fn revision_report(snapshot: &Snapshot, revision: &IstioRevision) -> RevisionReport {
    let owner = owner(snapshot, revision);
    let decision = owner.and_then(|istio| prune_decision(snapshot, istio, revision));
    let (pruning, pruned_at) = describe_pruning(snapshot, decision);
    RevisionReport {
        name: revision.name().to_owned(),
        version: revision.spec.version.clone(),
        namespace: revision.spec.namespace.clone(),
        istio: owner.map(|istio| istio.name().to_owned()).unwrap_or_default(),
        state: state(revision),
        ready: holds(revision, &ConditionType::Ready),
        control_plane: control_plane(snapshot, revision),
        in_use_by: Use::for_revision(snapshot, revision),
        pruning,
        pruned_at: pruned_at.map(second),
    }
}

fn owner<'a>(snapshot: &'a Snapshot, revision: &IstioRevision) -> Option<&'a Istio> {
    let owners = &revision.metadata.owner_references;
    snapshot
        .istios()
        .iter()
        .find(|istio| owners.iter().any(|owner| owner.uid == istio.metadata.uid))
}

fn prune_decision(snapshot: &Snapshot, istio: &Istio, revision: &IstioRevision) -> Option<PruneDecision> {
    let active = active(snapshot, istio);
    let found = prune_decisions(snapshot, istio, &active, grace_period(istio))
        .find(|(one, _)| one.name() == revision.name());
    found.map(|(_, decision)| decision)
}

/// Describes the pruning of a revision and returns its time.
fn describe_pruning(snapshot: &Snapshot, decision: Option<PruneDecision>) -> (String, Option<Timestamp>) {
    let text = match decision {
        None => "kept: no Istio owns it",
        Some(PruneDecision::Active) => "active",
        Some(PruneDecision::InUse) => "kept: in use",
        Some(PruneDecision::Deleting) => "being deleted",
        Some(PruneDecision::External) => "kept: other clusters may use it",
        Some(PruneDecision::Unknown) => "kept: usage unknown",
        Some(PruneDecision::DeleteAt(due)) if due <= snapshot.now => {
            return ("due now".to_owned(), Some(due));
        }
        Some(PruneDecision::DeleteAt(due)) => {
            let left = due.as_second() - snapshot.now.as_second();
            return (format!("in {}", span(left)), Some(due));
        }
    };
    (text.to_owned(), None)
}

/// Returns the kinds that could not be read, with the cause.
fn not_read(snapshot: &Snapshot) -> Vec<String> {
    let unread = Source::ALL.into_iter().filter_map(|source| {
        let error = snapshot.readable(source).err()?;
        Some(format!("{}: {error}", source.name()))
    });
    unread.collect()
}

fn control_plane(snapshot: &Snapshot, revision: &IstioRevision) -> String {
    if revision.spec.is_remote() {
        return "in another cluster".to_owned();
    }
    let name = names::istiod(revision.spec.revision());
    match snapshot.deployment(&revision.spec.namespace, &name) {
        Some(fact) => format!("{name}: {} of {} ready", fact.ready, fact.replicas),
        None if snapshot.readable(Source::Deployments).is_err() => format!("{name}: not read"),
        None => format!("{name}: not found"),
    }
}

fn tags(snapshot: &Snapshot) -> Vec<TagReport> {
    let report = |tag: &mainstay_api::IstioRevisionTag| TagReport {
        name: tag.name().to_owned(),
        target: format!("{}/{}", tag.spec.target_ref.kind, tag.spec.target_ref.name),
        revision: tag.status.istio_revision.clone(),
        state: state(tag),
        owner: tag
            .metadata
            .controller()
            .map(|owner| owner.name.clone())
            .unwrap_or_default(),
        in_use_by: Use::for_tag(snapshot, tag.name()),
    };
    snapshot.tags().iter().map(report).collect()
}

fn components(snapshot: &Snapshot) -> Vec<Component> {
    fn component<S: Kind>(object: &Resource<S>, version: &str, namespace: &str, ready: String) -> Component {
        Component {
            kind: S::KIND.name().to_owned(),
            name: object.name().to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            state: state(object),
            ready,
        }
    }
    let nodes = |namespace: &str, name: &str| match snapshot.daemonset(namespace, name) {
        Some(fact) => format!("{} of {} nodes ready", fact.ready, fact.scheduled),
        None if snapshot.readable(Source::DaemonSets).is_err() => "not read".to_owned(),
        None => "not found".to_owned(),
    };
    let cnis = snapshot.cnis().iter().map(|cni| {
        let ready = nodes(&cni.spec.namespace, names::CNI_DAEMONSET);
        component(cni, &cni.spec.version, &cni.spec.namespace, ready)
    });
    let ztunnels = snapshot.ztunnels().iter().map(|ztunnel| {
        let ready = nodes(&ztunnel.spec.namespace, names::ZTUNNEL_DAEMONSET);
        component(ztunnel, &ztunnel.spec.version, &ztunnel.spec.namespace, ready)
    });
    cnis.chain(ztunnels).collect()
}

/// Returns the state of an object; `Pending` before the first reconciliation.
fn state<S: Kind>(object: &Resource<S>) -> String {
    if object.metadata.is_deleting() {
        return "Deleting".to_owned();
    }
    match object.status.state().name() {
        "" => "Pending".to_owned(),
        state => state.to_owned(),
    }
}

fn holds<S: Kind>(object: &Resource<S>, kind: &ConditionType) -> String {
    let word = match object.status.conditions().get(kind).status {
        mainstay_api::ConditionStatus::True => "yes",
        mainstay_api::ConditionStatus::False => "no",
        mainstay_api::ConditionStatus::Unknown => "unknown",
    };
    word.to_owned()
}

/// Formats a timestamp in seconds, like Kubernetes.
pub(crate) fn second(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second())
        .unwrap_or(time)
        .to_string()
}

/// Formats a duration in its two largest units.
pub(crate) fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let shown: Vec<String> = parts
        .iter()
        .skip_while(|(count, _)| *count == 0)
        .take(2)
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    if shown.is_empty() {
        "0s".to_owned()
    } else {
        shown.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn durations_have_at_most_two_units() {
        for (seconds, expected) in [
            (-5, "0s"),
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (61, "1m1s"),
            (3_601, "1h"),
            (90_061, "1d1h"),
        ] {
            assert_eq!(span(seconds), expected);
        }
    }
}
