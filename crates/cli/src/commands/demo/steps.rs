//! The steps of the demo, from an empty cluster to the pruning of the old revision. All printed facts are
//! read from the cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;
use mainstay_api::MigrationState;
use mainstay_mesh::{Settings, preview};
use mainstay_operator::Options as OperatorOptions;
use mainstay_sim::script::Script;
use serde_json::{Value, json};

use super::cluster::{DemoCluster, ISTIO, Revisions};
use super::fixtures::{
    self, FAILING, NAMESPACES, NEW, NEW_IMAGE, NEW_VERSION, OLD, SKIPPED, WORKLOADS, Workload,
};
use super::outcome::{self, Facts};
use crate::commands::migration::{page, preview_with_assumptions};
use crate::error::{CliError, Kind};
use crate::ui::table;

/// Runs all steps.
pub(super) async fn run(cluster: &DemoCluster) -> Result<(), CliError> {
    cluster.printer.begin(
        cluster.now(),
        "Simulated Kubernetes cluster in this process with three nodes. Pods and istiod's injection are\nsimulated; \
         the operator, Istio's charts, the planner and all output are real.",
    )?;
    let operator = install(cluster).await?;
    let before = workloads(cluster).await?;
    let failed = upgrade(cluster).await?;
    repair(cluster).await?;
    restart_skipped(cluster).await?;
    wait_for_pruning(cluster).await?;
    let facts = Facts { before, failed };
    let done = finish(cluster, &facts).await;
    operator.stop().await?;
    done
}

async fn install(cluster: &DemoCluster) -> Result<mainstay_harness::RunningOperator, CliError> {
    let (stage, printer) = (&cluster.stage, &cluster.printer);
    printer.section(cluster.now(), "Install the operator and Istio 1.28.2")?;
    printer.command(
        cluster.now(),
        concat!(
            "helm install mainstay mainstay-",
            env!("CARGO_PKG_VERSION"),
            ".tgz -n sail-operator --create-namespace"
        ),
    )?;
    for name in [mainstay_harness::OPERATOR_NAMESPACE, "istio-system"] {
        stage.create_namespace(name, json!({})).await?;
    }
    set_scripts(cluster);
    let operator = stage.start_operator(Settings::default(), OperatorOptions::default());
    printer.command(cluster.now(), "kubectl create namespace istio-system")?;
    printer.command(cluster.now(), "kubectl apply -f istio.yaml")?;
    let istio = fixtures::istio();
    printer.page(cluster.now(), "manifest", &fixtures::text(&istio)?, &istio)?;
    stage.create(&istio).await?;
    cluster
        .until("Istio to be healthy", async |cluster| {
            Ok(state(cluster, ISTIO).await? == "Healthy" && tags_point_to(cluster, OLD).await?)
        })
        .await?;
    printer.note(
        cluster.now(),
        &format!("Istio default is Healthy with revision {OLD} and tags default and prod"),
    )?;
    Ok(operator)
}

/// Sets the readiness time of pods.
fn set_scripts(cluster: &DemoCluster) {
    let usual = Script {
        start: Duration::from_secs(2),
        ..Script::ready_after(Duration::from_secs(4))
    };
    cluster.stage.sim().with(|state| {
        state.scripts.set_default(usual.clone());
        for workload in &WORKLOADS {
            let script = Script {
                ready: Some(workload.readiness()),
                ..usual.clone()
            };
            state
                .scripts
                .add_workload(workload.namespace, workload.name, script);
        }
    });
}

async fn state(cluster: &DemoCluster, path: &str) -> Result<String, CliError> {
    let object = cluster.stage.get(path).await?.unwrap_or_default();
    let state = object.pointer("/status/state").and_then(Value::as_str);
    Ok(state.unwrap_or_default().to_owned())
}

async fn tags_point_to(cluster: &DemoCluster, revision: &str) -> Result<bool, CliError> {
    for tag in ["default", "prod"] {
        let path = format!("/apis/sailoperator.io/v1/istiorevisiontags/{tag}");
        let tag = cluster.stage.get(&path).await?.unwrap_or_default();
        if tag.pointer("/status/istioRevision").and_then(Value::as_str) != Some(revision) {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn workloads(cluster: &DemoCluster) -> Result<Revisions, CliError> {
    let printer = &cluster.printer;
    printer.section(cluster.now(), "Deploy twelve workloads in five namespaces")?;
    printer.command(cluster.now(), "kubectl apply -f workloads.yaml")?;
    for object in fixtures::workloads() {
        cluster.stage.create(&object).await?;
    }
    cluster
        .until("the workloads to be ready", async |cluster| {
            for workload in &WORKLOADS {
                if !cluster.is_settled(workload).await? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await?;
    let mut rows = vec![
        ["NAMESPACE", "REVISION SELECTED BY", "WORKLOADS"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for space in &NAMESPACES {
        let here = WORKLOADS
            .iter()
            .filter(|workload| workload.namespace == space.name);
        let names: Vec<&str> = here.map(|workload| workload.name).collect();
        rows.push(vec![
            space.name.into(),
            space.selected_by.into(),
            names.join(", "),
        ]);
    }
    printer.page(cluster.now(), "workloads", &table::lines("", &rows), &json!(rows))?;
    for workload in WORKLOADS.iter().filter(|workload| !workload.remark.is_empty()) {
        printer.note(
            cluster.now(),
            &format!("{}/{}: {}", workload.namespace, workload.name, workload.remark),
        )?;
    }
    remove_image(cluster);
    cluster.revisions().await
}

/// Makes the image of one workload unavailable: running pods continue, new pods fail.
fn remove_image(cluster: &DemoCluster) {
    let (space, name) = FAILING;
    cluster.stage.sim().with(|state| {
        state
            .scripts
            .add_workload(space, name, Script::image_pull_error());
    });
}

async fn upgrade(cluster: &DemoCluster) -> Result<BTreeSet<String>, CliError> {
    let printer = &cluster.printer;
    printer.section(cluster.now(), "Plan and start the upgrade to 1.29.1")?;
    printer.command(
        cluster.now(),
        &format!("mainstay migration plan --to {NEW_VERSION} --ready-after 8s"),
    )?;
    plan(cluster).await?;
    printer.command(
        cluster.now(),
        &format!(
            "kubectl patch istio default --type merge -p '{{\"spec\":{{\"version\":\"{NEW_VERSION}\"}}}}'"
        ),
    )?;
    cluster
        .stage
        .merge_patch(ISTIO, &json!({"spec": {"version": NEW_VERSION}}))
        .await?;
    cluster
        .until(
            "the new control plane and the start of the migration",
            async |cluster| {
                let progress = cluster.migration().await?;
                Ok(progress.is_some_and(|progress| {
                    progress.status.target_revision == NEW
                        && progress.status.state == MigrationState::InProgress
                }))
            },
        )
        .await?;
    printer.note(
        cluster.now(),
        &format!("{NEW} is ready, its tags are moved, and the migration starts"),
    )?;
    printer.command(cluster.now(), "mainstay migration watch")?;
    watch(cluster, &[MigrationState::Failed, MigrationState::Completed]).await
}

async fn plan(cluster: &DemoCluster) -> Result<(), CliError> {
    let mut found = cluster.survey().await?;
    let istio = DemoCluster::istio(&found)?;
    let (preview, notes) = preview_with_assumptions(&mut found, istio, Some(NEW_VERSION))?;
    let each = SignedDuration::from_secs(8);
    cluster.printer.page(
        cluster.now(),
        "plan",
        &page::plan(&preview, &notes, each),
        &page::plan_data(&preview, &notes, each),
    )
}

/// Watches the migration until it reaches one of these states; returns the workloads that failed.
async fn watch(cluster: &DemoCluster, ends: &[MigrationState]) -> Result<BTreeSet<String>, CliError> {
    let mut display = cluster.printer.display();
    let mut failed = BTreeSet::new();
    cluster
        .until("the migration to end", async |cluster| {
            let Some(progress) = cluster.migration().await? else {
                return Ok(false);
            };
            let state = progress.status.state;
            failed.extend(
                progress
                    .status
                    .failures
                    .iter()
                    .map(|one| format!("{}/{}", one.namespace, one.name)),
            );
            cluster.printer.progress(cluster.now(), &mut display, progress)?;
            Ok(ends.contains(&state))
        })
        .await?;
    Ok(failed)
}

/// Returns the workload of this name.
fn workload(namespace: &str, name: &str) -> Result<&'static Workload, CliError> {
    let found = WORKLOADS
        .iter()
        .find(|workload| (workload.namespace, workload.name) == (namespace, name));
    found.ok_or_else(|| CliError::new(Kind::Cluster, format!("no workload {namespace}/{name}")))
}

async fn repair(cluster: &DemoCluster) -> Result<(), CliError> {
    let (printer, (space, name)) = (&cluster.printer, FAILING);
    let workload = workload(FAILING.0, FAILING.1)?;
    printer.section(
        cluster.now(),
        "Fix the failed workload; its old pods still serve and keep the old revision in use",
    )?;
    printer.command(
        cluster.now(),
        &format!("kubectl get pods -n {space} -l app={name}"),
    )?;
    let rows = cluster.pod_rows(workload).await?;
    printer.page(cluster.now(), "pods", &table::lines("", &rows), &json!(rows))?;
    cluster.status().await?;
    printer.command(
        cluster.now(),
        &format!("kubectl set image -n {space} deployment/{name} {name}={NEW_IMAGE}"),
    )?;
    let script = Script::ready_after(workload.readiness());
    cluster
        .stage
        .sim()
        .with(|state| state.scripts.add_workload(space, name, script));
    let change =
        json!({"spec": {"template": {"spec": {"containers": [{"name": name, "image": NEW_IMAGE}]}}}});
    cluster.stage.merge_patch(&workload.path(), &change).await?;
    printer.command(
        cluster.now(),
        &format!("kubectl rollout status -n {space} deployment/{name}"),
    )?;
    cluster
        .until("the failed workload to be migrated", async |cluster| {
            let progress = cluster.migration().await?;
            Ok(progress.is_some_and(|progress| progress.status.state == MigrationState::Completed))
        })
        .await?;
    printer.command(cluster.now(), "mainstay migration status")?;
    let found = cluster.survey().await?;
    let istio = DemoCluster::istio(&found)?;
    let text = page::status(&istio, preview(&found.snapshot, &istio).as_ref());
    printer.page(
        cluster.now(),
        "migration",
        &text,
        &json!(istio.status.workload_migration),
    )
}

async fn restart_skipped(cluster: &DemoCluster) -> Result<(), CliError> {
    let (printer, (space, name)) = (&cluster.printer, SKIPPED);
    let workload = workload(SKIPPED.0, SKIPPED.1)?;
    printer.section(cluster.now(), "Restart the skipped workload")?;
    printer.command(
        cluster.now(),
        &format!("kubectl rollout restart -n {space} deployment/{name}"),
    )?;
    let mark = json!({"kubectl.kubernetes.io/restartedAt": cluster.now().to_string()});
    let change = json!({"spec": {"template": {"metadata": {"annotations": mark}}}});
    cluster.stage.merge_patch(&workload.path(), &change).await?;
    cluster
        .until("the skipped workload to be restarted", async |cluster| {
            cluster.is_settled(workload).await
        })
        .await?;
    printer.note(cluster.now(), &format!("{space}/{name} is ready on {NEW}"))
}

async fn wait_for_pruning(cluster: &DemoCluster) -> Result<(), CliError> {
    let printer = &cluster.printer;
    printer.section(cluster.now(), "Wait for the old revision to be pruned")?;
    printer.command(
        cluster.now(),
        &format!("kubectl wait --for=delete istiorevision/{OLD} --timeout=5m"),
    )?;
    cluster
        .until("the old revision to be pruned", async |cluster| {
            is_gone(cluster).await
        })
        .await?;
    printer.note(cluster.now(), &format!("{OLD} and its istiod are pruned"))
}

/// Whether the old control plane is removed.
pub(super) async fn is_gone(cluster: &DemoCluster) -> Result<bool, CliError> {
    for path in [
        format!("/apis/sailoperator.io/v1/istiorevisions/{OLD}"),
        format!("/apis/apps/v1/namespaces/istio-system/deployments/istiod-{OLD}"),
    ] {
        if cluster.stage.get(&path).await?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn finish(cluster: &DemoCluster, facts: &Facts) -> Result<(), CliError> {
    cluster.printer.section(cluster.now(), "Show the result")?;
    cluster.status().await?;
    let outcome = outcome::read(cluster, facts).await?;
    cluster
        .printer
        .note(cluster.now(), "Result of each workload, according to its pods")?;
    cluster
        .printer
        .page(cluster.now(), "outcome", &outcome.table(), &json!(outcome.rows))?;
    outcome.check()?;
    cluster
        .printer
        .end(cluster.now(), &outcome.summary(), outcome.data())
}
