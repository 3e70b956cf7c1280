//! Tests for plans of applications.

use mainstay_api::delivery::{ApplicationSpec, Component, ROLLOUT_TEMPLATE, component_type};
use mainstay_rollout::revision::render_component;
use serde_json::json;

use super::*;

fn application(image: &str, is_revision_only: bool) -> Application {
    let component = Component {
        name: "web".into(),
        kind: component_type::WEB_SERVICE.into(),
        properties: json!({"image": image}),
    };
    let spec = ApplicationSpec {
        components: vec![component],
        revision_history_limit: Some(1),
    };
    let mut application = Application::new("shop", "app", spec);
    application.metadata.uid = "app-uid".into();
    if is_revision_only {
        application
            .metadata
            .annotations
            .insert(ROLLOUT_TEMPLATE.into(), "true".into());
    }
    application
}

/// Stored objects. Executes plans like the executor, without an API server.
#[derive(Default)]
struct Host {
    revisions: Vec<ApplicationRevision>,
    deployments: Vec<ApplicationDeployment>,
}

impl Host {
    fn plan(&self, application: &Application) -> Vec<ApplicationAction> {
        let rendered = application
            .spec
            .components
            .iter()
            .map(|component| render_component(component, None));
        let rendered: Result<Vec<_>, _> = rendered.collect();
        plan_application(&ApplicationInput {
            now: Timestamp::UNIX_EPOCH,
            application,
            rendered: rendered.map_err(ComponentError::from),
            revisions: &self.revisions,
            deployments: &self.deployments,
        })
    }

    /// Executes a plan and returns a description of each write.
    fn run(&mut self, application: &mut Application) -> Vec<String> {
        let mut done = Vec::new();
        for action in self.plan(application) {
            done.push(match action {
                ApplicationAction::CreateRevision(revision) => {
                    let name = revision.name().to_owned();
                    self.revisions.push(*revision);
                    format!("create {name}")
                }
                ApplicationAction::CreateDeployment(deployment) => {
                    self.deployments.push(*deployment);
                    "create deployment".into()
                }
                ApplicationAction::UpdateDeployment { revisions, .. } => {
                    self.deployments[0].spec.app_revisions = revisions;
                    "update deployment".into()
                }
                ApplicationAction::DeleteRevision { name, .. } => {
                    self.revisions.retain(|revision| revision.name() != name);
                    format!("delete {name}")
                }
                ApplicationAction::WriteStatus(status) => {
                    application.status = *status;
                    format!("status {}", application.status.latest_revision)
                }
            });
        }
        done
    }
}

#[test]
fn a_change_is_recorded_and_replaces_the_running_revision() {
    let mut host = Host::default();
    let mut app = application("a:1", false);
    assert_eq!(
        host.run(&mut app),
        ["create app-v1", "create deployment", "status app-v1"]
    );
    assert_eq!(host.run(&mut app), [""; 0], "nothing left to do");
    app.spec = application("a:2", false).spec;
    assert_eq!(
        host.run(&mut app),
        ["create app-v2", "update deployment", "status app-v2"]
    );
    assert_eq!(host.deployments[0].spec.app_revisions[0].revision_name, "app-v2");
    assert_eq!(host.run(&mut app), [""; 0]);
}

#[test]
fn with_the_annotation_a_change_is_only_recorded() {
    let mut host = Host::default();
    let mut app = application("a:1", true);
    assert_eq!(host.run(&mut app), ["create app-v1", "status app-v1"]);
    app.spec = application("a:2", true).spec;
    assert_eq!(host.run(&mut app), ["create app-v2", "status app-v2"]);
}

#[test]
fn revisions_in_the_spec_or_status_of_a_deployment_are_kept() {
    let mut host = Host::default();
    let mut app = application("a:1", true);
    host.run(&mut app);
    let mut user = ApplicationDeployment::new("shop", "mine", ApplicationDeploymentSpec::default());
    user.status.rollout = Some(mainstay_api::delivery::RolloutStatus {
        stable: Allocation {
            placement: vec![mainstay_api::delivery::RevisionPlacement {
                revision_name: "app-v1".into(),
                clusters: Vec::new(),
            }],
            routes: Vec::new(),
        },
        ..Default::default()
    });
    host.deployments.push(user);
    let mut deleted = Vec::new();
    for number in 2..=5 {
        app.spec = application(&format!("a:{number}"), true).spec;
        let done = host.run(&mut app);
        deleted.extend(done.into_iter().filter(|line| line.starts_with("delete")));
        deleted.extend(
            host.run(&mut app)
                .into_iter()
                .filter(|line| line.starts_with("delete")),
        );
    }
    assert_eq!(deleted, ["delete app-v2", "delete app-v3"]);
    let left: Vec<&str> = host.revisions.iter().map(ApplicationRevision::name).collect();
    assert_eq!(
        left,
        ["app-v1", "app-v4", "app-v5"],
        "v1 is referenced, v5 is the latest, v4 within the limit"
    );
}

#[test]
fn problems_are_reported_by_a_condition() {
    let mut host = Host::default();
    let mut app = application("a:1", false);
    app.spec.components[0].properties = json!({});
    assert_eq!(host.run(&mut app), ["status "]);
    let ready = app.status.conditions.get(&ConditionType::Ready);
    assert_eq!(ready.reason, Reason::InvalidSpec);
    assert_eq!(ready.message, "component \"web\": properties.image is not set");
    let foreign = ApplicationDeployment::new("shop", "app", ApplicationDeploymentSpec::default());
    host.deployments.push(foreign);
    app.spec = application("a:1", false).spec;
    assert_eq!(host.run(&mut app), ["create app-v1", "status app-v1"]);
    assert_eq!(
        app.status.conditions.get(&ConditionType::Ready).reason,
        Reason::NameConflict
    );
}
