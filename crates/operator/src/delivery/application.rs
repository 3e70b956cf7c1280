//! Plans Applications: revisions, the deployment of the latest revision, retention and status. Performs no
//! I/O.

use std::collections::BTreeSet;

use jiff::Timestamp;
use mainstay_api::delivery::{
    Allocation, AppRevision, Application, ApplicationDeployment, ApplicationDeploymentSpec,
    ApplicationRevision, ApplicationStatus, Distribution, Placement, RenderedComponent,
};
use mainstay_api::{Condition, ConditionStatus, ConditionType, Reason};
use mainstay_rollout::revision::{RevisionChange, obsolete_revisions, record_revision};
use mainstay_rollout::snapshot::Version;

use super::chart::ComponentError;
use super::observed::metadata_version;

/// Input of the plan of an application.
pub(crate) struct ApplicationInput<'a> {
    pub(crate) now: Timestamp,
    pub(crate) application: &'a Application,
    /// Rendered components, or the error of rendering them.
    pub(crate) rendered: Result<Vec<RenderedComponent>, ComponentError>,
    /// Revisions in the namespace of the application.
    pub(crate) revisions: &'a [ApplicationRevision],
    /// Deployments in the namespace of the application.
    pub(crate) deployments: &'a [ApplicationDeployment],
}

/// A write of the plan of an application.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ApplicationAction {
    CreateRevision(Box<ApplicationRevision>),
    /// Create the deployment of the latest revision.
    CreateDeployment(Box<ApplicationDeployment>),
    /// Replace the revisions of the application's own deployment.
    UpdateDeployment {
        name: String,
        version: Version,
        revisions: Vec<AppRevision>,
    },
    /// Delete a revision without references.
    DeleteRevision {
        name: String,
        version: Version,
    },
    /// Replace the status.
    WriteStatus(Box<ApplicationStatus>),
}

/// Returns the writes for an application, in order. The executor must stop at the first failure.
pub(crate) fn plan_application(input: &ApplicationInput<'_>) -> Vec<ApplicationAction> {
    let application = input.application;
    if application.metadata.is_deleting() {
        return Vec::new();
    }
    let mut actions = Vec::new();
    let mut status = application.status.clone();
    status.observed_generation = application.metadata.generation;
    let outcome = match &input.rendered {
        Err(error) => Err((Reason::InvalidSpec, error.to_string())),
        Ok(components) => {
            let latest = record_latest_revision(input, components.clone(), &mut actions);
            status.latest_revision.clone_from(&latest);
            let outcome = deploy_revision(input, &latest, &mut actions);
            delete_obsolete_revisions(input, &latest, &mut actions);
            outcome
        }
    };
    let (holds, reason, message) = match outcome {
        Ok(()) => (true, Reason::Ready, ignored_annotations_message(application)),
        Err((reason, message)) => (false, reason, message),
    };
    let condition = Condition::new(
        ConditionType::Ready,
        ConditionStatus::from(holds),
        reason,
        message,
    );
    status.conditions.set(condition, input.now);
    if status != application.status {
        actions.push(ApplicationAction::WriteStatus(Box::new(status)));
    }
    actions
}

/// Returns a message that lists annotations without effect; empty if there are none.
fn ignored_annotations_message(application: &Application) -> String {
    let ignored = application.ignored_annotations();
    if ignored.is_empty() {
        String::new()
    } else {
        format!(
            "without effect, because the value is not \"true\": {}",
            ignored.join(", ")
        )
    }
}

fn record_latest_revision(
    input: &ApplicationInput<'_>,
    components: Vec<RenderedComponent>,
    actions: &mut Vec<ApplicationAction>,
) -> String {
    match record_revision(input.application, components, input.revisions) {
        RevisionChange::Existing(name) => name,
        RevisionChange::Create(revision) => {
            let name = revision.name().to_owned();
            actions.push(ApplicationAction::CreateRevision(revision));
            name
        }
    }
}

/// Deploys the latest revision, unless the application is annotated to only record revisions: creates or
/// updates a deployment that has the name of the application and is owned by it. It runs in the host
/// cluster, with the replicas of the manifests.
fn deploy_revision(
    input: &ApplicationInput<'_>,
    latest: &str,
    actions: &mut Vec<ApplicationAction>,
) -> Result<(), (Reason, String)> {
    let application = input.application;
    if application.is_revision_only() {
        return Ok(());
    }
    let revisions = vec![AppRevision {
        revision_name: latest.to_owned(),
        placement: vec![Placement {
            cluster_selector: None,
            distribution: Some(Distribution::default()),
        }],
    }];
    let known = input
        .deployments
        .iter()
        .find(|known| known.name() == application.name());
    match known {
        None => {
            let spec = ApplicationDeploymentSpec {
                app_revisions: revisions,
                ..ApplicationDeploymentSpec::default()
            };
            let mut deployment =
                ApplicationDeployment::new(application.namespace(), application.name(), spec);
            deployment
                .metadata
                .owner_references
                .push(application.owner_reference());
            actions.push(ApplicationAction::CreateDeployment(Box::new(deployment)));
            Ok(())
        }
        Some(known) if !known.metadata.is_owned_by(&application.metadata.uid) => Err((
            Reason::NameConflict,
            format!("ApplicationDeployment {:?} has another owner", application.name()),
        )),
        Some(known) if known.spec.app_revisions != revisions => {
            actions.push(ApplicationAction::UpdateDeployment {
                name: known.name().to_owned(),
                version: metadata_version(&known.metadata),
                revisions,
            });
            Ok(())
        }
        Some(_) => Ok(()),
    }
}

/// Deletes the oldest revisions beyond the history limit, except those that a deployment refers to.
fn delete_obsolete_revisions(
    input: &ApplicationInput<'_>,
    latest: &str,
    actions: &mut Vec<ApplicationAction>,
) {
    let mut referenced = referenced_revisions(input.deployments);
    referenced.insert(latest.to_owned());
    for name in obsolete_revisions(input.application, input.revisions, &referenced) {
        if let Some(revision) = input.revisions.iter().find(|revision| revision.name() == name) {
            actions.push(ApplicationAction::DeleteRevision {
                name,
                version: metadata_version(&revision.metadata),
            });
        }
    }
}

/// Returns the names of all revisions in the spec or status of a deployment.
pub(crate) fn referenced_revisions(deployments: &[ApplicationDeployment]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for deployment in deployments {
        let spec = &deployment.spec;
        names.extend(
            spec.app_revisions
                .iter()
                .map(|revision| revision.revision_name.clone()),
        );
        let rules = spec.traffic.iter().flat_map(|traffic| &traffic.http);
        let targets = rules.flat_map(|rule| &rule.weighted_targets);
        names.extend(targets.map(|target| target.revision_name.clone()));
        let status = &deployment.status;
        names.extend(
            status
                .placement
                .iter()
                .map(|placement| placement.revision_name.clone()),
        );
        let routes = status.traffic.iter().flat_map(|traffic| &traffic.routes);
        names.extend(
            routes
                .flat_map(|route| &route.shares)
                .map(|share| share.revision_name.clone()),
        );
        if let Some(rollout) = &status.rollout {
            for allocation in [&rollout.stable, &rollout.source, &rollout.target] {
                names.extend(allocated_revisions(allocation));
            }
        }
    }
    names
}

fn allocated_revisions(allocation: &Allocation) -> impl Iterator<Item = String> {
    let placed = allocation
        .placement
        .iter()
        .map(|placement| placement.revision_name.clone());
    let routes = allocation.routes.iter().flat_map(|route| &route.shares);
    placed.chain(routes.map(|share| share.revision_name.clone()))
}

#[cfg(test)]
mod tests;
