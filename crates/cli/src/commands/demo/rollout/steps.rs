//! The steps of the rollout demo. All printed facts are read from the clusters.

use std::time::Duration;

use jiff::Timestamp;
use mainstay_api::delivery::{
    ActionSpec, ActionVerb, ApplicationDeployment, DeploymentPhase, DeploymentStatus,
};
use mainstay_api::{ConditionType, Reason};
use mainstay_harness::Fleet;
use mainstay_sim::script::Script;
use serde_json::{Value, json};

use super::super::printer::Printer;
use super::fixtures::{self, CLUSTERS, DEPLOYMENT, NAMESPACE, V1, V2};
use super::progress::{Floor, Progress};
use crate::commands::rollout::action::action_object;
use crate::commands::rollout::page;
use crate::error::{CliError, Kind};
use crate::ui::table;

/// Polling interval in cluster time.
const STEP: Duration = Duration::from_secs(1);
/// Maximum wait in cluster time.
const MAX_WAIT: Duration = Duration::from_mins(15);

/// Width of an indented page.
const PAGE_WIDTH: usize = 72;

/// Measured success rate while the second revision is broken, and afterwards.
const BROKEN: f64 = 0.912;
const WORKING: f64 = 0.999;

/// The clusters and the printer.
pub(super) struct DemoFleet<'a> {
    fleet: Fleet,
    printer: &'a Printer,
    floor: Floor,
}

impl<'a> DemoFleet<'a> {
    pub(super) fn new(fleet: Fleet, printer: &'a Printer) -> Self {
        Self {
            fleet,
            printer,
            floor: Floor::default(),
        }
    }

    fn now(&self) -> Timestamp {
        self.fleet.host().now()
    }

    fn command(&self, command: &str) -> Result<(), CliError> {
        self.printer.command(self.now(), command)
    }

    fn deployment(&self) -> Result<ApplicationDeployment, CliError> {
        let stored = self
            .fleet
            .object("", "applicationdeployments.delivery.mainstay.dev", DEPLOYMENT);
        let unread = |error: serde_json::Error| CliError::new(Kind::Cluster, error.to_string());
        serde_json::from_value(stored.unwrap_or_default()).map_err(unread)
    }

    fn has_revision(&self, name: &str) -> bool {
        let table = "applicationrevisions.delivery.mainstay.dev";
        self.fleet.object("", table, name).is_some()
    }

    /// Waits until a condition holds.
    async fn until(
        &mut self,
        what: &str,
        mut holds: impl FnMut(&mut Self) -> Result<bool, CliError>,
    ) -> Result<(), CliError> {
        let started = self.now();
        while !holds(self)? {
            if self.now().duration_since(started).unsigned_abs() > MAX_WAIT {
                let message = format!(
                    "timed out after {} minutes waiting for {what}",
                    MAX_WAIT.as_secs() / 60
                );
                return Err(CliError::new(Kind::Cluster, message));
            }
            self.fleet.sleep(STEP).await;
        }
        Ok(())
    }

    /// Prints a line per change until the rollout has ended or waits for a promotion, as `mainstay rollout
    /// watch` does.
    async fn watch(&mut self, end: fn(&DeploymentStatus) -> bool) -> Result<(), CliError> {
        self.command(&format!("mainstay rollout watch {DEPLOYMENT} -n {NAMESPACE}"))?;
        let mut last = None;
        self.until("the rollout", |demo| {
            let deployment = demo.deployment()?;
            let progress = Progress::read(&demo.fleet, &deployment);
            demo.floor.observe(&progress);
            let is_current = deployment.status.observed_generation == deployment.metadata.generation;
            if is_current && last.as_ref() != Some(&progress) {
                let data = json!(progress);
                demo.printer
                    .line(demo.now(), "progress", &progress.line(), &data)?;
                last = Some(progress);
            }
            Ok(is_current && end(&deployment.status))
        })
        .await
    }

    async fn set_spec(&self, plural: &str, object: &Value) -> Result<(), CliError> {
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let change = json!({"spec": object.get("spec")});
        self.fleet
            .host()
            .merge_patch(&self.fleet.path(plural, name), &change)
            .await?;
        Ok(())
    }

    async fn create_action(&self, verb: ActionVerb) -> Result<(), CliError> {
        let rollout = self.deployment()?.status.rollout.unwrap_or_default();
        let spec = ActionSpec {
            deployment_name: DEPLOYMENT.to_owned(),
            verb,
            step_hash: Some(rollout.step_hash).filter(|hash| verb == ActionVerb::Promote && !hash.is_empty()),
        };
        self.fleet.host().create(&action_object(&spec, NAMESPACE)).await?;
        Ok(())
    }

    fn status(&self) -> Result<(), CliError> {
        self.command(&format!("mainstay rollout status {DEPLOYMENT} -n {NAMESPACE}"))?;
        let deployment = self.deployment()?;
        let data = json!(deployment.status);
        self.printer
            .page(self.now(), "status", &wrap_lines(&page::page(&deployment)), &data)
    }
}

fn is_healthy(status: &DeploymentStatus) -> bool {
    status.phase == DeploymentPhase::Healthy
}

fn is_aborted(status: &DeploymentStatus) -> bool {
    status.phase == DeploymentPhase::Aborted
}

fn waits_for_promotion(status: &DeploymentStatus) -> bool {
    let progressing = status.conditions.find(&ConditionType::Progressing);
    progressing.is_some_and(|condition| condition.reason == Reason::WaitingForPromotion)
}

/// Wraps lines that exceed 80 columns with the indentation of the demo.
fn wrap_lines(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut width = 0;
        for word in line.split_inclusive(' ') {
            let length = console::measure_text_width(word);
            if width > 0 && width + console::measure_text_width(word.trim_end()) > PAGE_WIDTH {
                out.truncate(out.trim_end().len());
                out.push_str("\n  ");
                width = 2;
            }
            out.push_str(word);
            width += length;
        }
        out.push('\n');
    }
    out
}

/// Sets the time until pods are ready: some seconds, different in each cluster.
fn set_readiness(fleet: &Fleet) {
    for ((name, _), seconds) in CLUSTERS.iter().zip([4, 6, 9]) {
        let Some(cluster) = fleet.clusters.get(*name) else {
            continue;
        };
        for revision in [V1, V2] {
            let script = Script::ready_after(Duration::from_secs(seconds));
            let workload = format!("{revision}-web");
            let scripts = |state: &mut mainstay_sim::State| {
                state.scripts.add_workload(NAMESPACE, &workload, script);
            };
            cluster.sim().with(scripts);
        }
    }
}

/// Runs all steps.
pub(super) async fn run(demo: &mut DemoFleet<'_>) -> Result<(), CliError> {
    demo.printer.begin(
        demo.now(),
        "Three simulated Kubernetes clusters in this process: the host and two members,\n\
         east and west. Pods and metrics are simulated; the controllers, the planner\n\
         and all output are real.",
    )?;
    set_readiness(&demo.fleet);
    demo.fleet.start_controllers();
    record_revisions(demo).await?;
    deploy_first(demo).await?;
    failing_canary(demo).await?;
    working_canary(demo).await?;
    finish(demo)
}

async fn record_revisions(demo: &mut DemoFleet<'_>) -> Result<(), CliError> {
    demo.printer
        .section(demo.now(), "Record two revisions of an application")?;
    for (number, revision) in [(1, V1), (2, V2)] {
        demo.command(&format!("mainstay rollout apply -f shop-{number}.yaml"))?;
        let application = fixtures::application(&format!("registry.example.com/shop:{number}"));
        if number == 1 {
            demo.fleet.host().create(&application).await?;
        } else {
            demo.set_spec("applications", &application).await?;
        }
        demo.until(revision, |demo| Ok(demo.has_revision(revision)))
            .await?;
        demo.printer.note(
            demo.now(),
            &format!("{revision} is recorded; nothing is deployed"),
        )?;
    }
    Ok(())
}

async fn deploy_first(demo: &mut DemoFleet<'_>) -> Result<(), CliError> {
    demo.printer
        .section(demo.now(), "Deploy the first revision to three clusters")?;
    let deployment = fixtures::deployment(V1);
    demo.command("mainstay rollout apply -f deployment.yaml")?;
    let text = fixtures::yaml(deployment.get("spec").unwrap_or(&Value::Null))?;
    demo.printer.page(demo.now(), "manifest", &text, &deployment)?;
    demo.fleet.host().create(&fixtures::analysis()).await?;
    demo.fleet.host().create(&deployment).await?;
    demo.watch(is_healthy).await?;
    // The lowest capacity is measured after the first deployment.
    demo.floor = Floor::default();
    Ok(())
}

async fn failing_canary(demo: &mut DemoFleet<'_>) -> Result<(), CliError> {
    demo.printer
        .section(demo.now(), "Start a canary whose requests fail")?;
    demo.fleet.metrics.set(Some(BROKEN));
    demo.command("mainstay rollout apply -f deployment-2.yaml")?;
    demo.set_spec("applicationdeployments", &fixtures::deployment(V2))
        .await?;
    demo.watch(is_aborted).await?;
    let note = format!(
        "{}% of the requests succeeded, 99% required: rolling back to {V1}",
        BROKEN * 100.0
    );
    demo.printer.note(demo.now(), &note)?;
    demo.status()
}

async fn working_canary(demo: &mut DemoFleet<'_>) -> Result<(), CliError> {
    demo.printer
        .section(demo.now(), "Fix the cause and start the canary again")?;
    demo.fleet.metrics.set(Some(WORKING));
    demo.command(&format!("mainstay rollout retry {DEPLOYMENT} -n {NAMESPACE}"))?;
    demo.create_action(ActionVerb::Retry).await?;
    demo.watch(waits_for_promotion).await?;
    demo.command(&format!("mainstay rollout promote {DEPLOYMENT} -n {NAMESPACE}"))?;
    demo.create_action(ActionVerb::Promote).await?;
    demo.watch(is_healthy).await?;
    demo.until("the first revision to be removed", |demo| {
        let progress = Progress::read(&demo.fleet, &demo.deployment()?);
        demo.floor.observe(&progress);
        Ok(is_removed(demo))
    })
    .await
}

/// Whether the objects of the first revision are deleted in all clusters.
fn is_removed(demo: &DemoFleet<'_>) -> bool {
    CLUSTERS.iter().all(|(cluster, _)| {
        let has = |table, name: &str| demo.fleet.object(cluster, table, name).is_some();
        !has("deployments.apps", &format!("{V1}-web")) && !has("services", V1)
    })
}

fn finish(demo: &DemoFleet<'_>) -> Result<(), CliError> {
    demo.printer.section(demo.now(), "Show the result")?;
    demo.status()?;
    let mut rows = vec![
        ["CLUSTER", "REVISION", "DESIRED", "AVAILABLE"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (cluster, _) in CLUSTERS {
        for revision in [V1, V2] {
            if let Some((desired, available)) = demo.fleet.replicas(cluster, &format!("{revision}-web")) {
                let name = page::cluster_name(cluster).to_owned();
                rows.push(vec![
                    name,
                    revision.to_owned(),
                    desired.to_string(),
                    available.to_string(),
                ]);
            }
        }
    }
    demo.printer
        .note(demo.now(), "Workloads, according to the clusters")?;
    demo.printer
        .page(demo.now(), "outcome", &table::lines("", &rows), &json!(rows))?;
    if rows.len() != CLUSTERS.len() + 1 || !demo.floor.is_sufficient() {
        let message = format!("unexpected result; lowest capacity: {}", demo.floor.text());
        return Err(CliError::new(Kind::Cluster, message));
    }
    let words = format!(
        "One canary was rolled back, one succeeded.\nLowest available replicas during both: {}.",
        demo.floor.text()
    );
    let data = json!({"aborted": 1, "completed": 1, "lowestAvailable": demo.floor});
    demo.printer.end(demo.now(), &words, data)
}
