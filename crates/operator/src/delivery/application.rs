//! Plans Applications: revisions, the deployment of the latest one, retention and status. Pure.

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

/// What the plan of an application depends on.
pub(crate) struct ApplicationInput<'a> {
    pub(crate) now: Timestamp,
    pub(crate) application: &'a Application,
    /// The rendered components, or why they cannot be rendered.
    pub(crate) rendered: Result<Vec<RenderedComponent>, ComponentError>,
    /// Revisions in its namespace.
    pub(crate) revisions: &'a [ApplicationRevision],
    /// Deployments in its namespace.
    pub(crate) deployments: &'a [ApplicationDeployment],
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ApplicationAction {
    /// Create a revision.
    CreateRevision(Box<ApplicationRevision>),
    /// Create the deployment of the latest revision.
    CreateDeployment(Box<ApplicationDeployment>),
    /// Replace the revisions of the application's own deployment.
    UpdateDeployment {
        name: String,
        version: Version,
        revisions: Vec<AppRevision>,
    },
    /// Delete a revision that nothing refers to.
    DeleteRevision { name: String, version: Version },
    /// Replace the status.
    WriteStatus(Box<ApplicationStatus>),
}

/// Returns the writes for an application, in order. A failure ends them.
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
            let latest = record(input, components.clone(), &mut actions);
            status.latest_revision.clone_from(&latest);
            let outcome = deploy(input, &latest, &mut actions);
            collect(input, &latest, &mut actions);
            outcome
        }
    };
    let (holds, reason, message) = match outcome {
        Ok(()) => (true, Reason::Ready, ignored(application)),
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

/// Names annotations without effect.
fn ignored(application: &Application) -> String {
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

fn record(
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

/// Replaces the running revision by the latest one, unless changes are only recorded: the application owns a
/// deployment of the same name in the host cluster, with the replicas of its manifests.
fn deploy(
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
                version: version(&known.metadata),
                revisions,
            });
            Ok(())
        }
        Some(_) => Ok(()),
    }
}

fn version(metadata: &mainstay_api::ObjectMeta) -> Version {
    Version {
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
    }
}

/// Deletes the oldest revisions beyond the limit that no deployment refers to.
fn collect(input: &ApplicationInput<'_>, latest: &str, actions: &mut Vec<ApplicationAction>) {
    let mut referenced = referenced_revisions(input.deployments);
    referenced.insert(latest.to_owned());
    for name in obsolete_revisions(input.application, input.revisions, &referenced) {
        if let Some(revision) = input.revisions.iter().find(|revision| revision.name() == name) {
            actions.push(ApplicationAction::DeleteRevision {
                name,
                version: version(&revision.metadata),
            });
        }
    }
}

/// Returns every revision that the spec or the status of a deployment names.
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
