//! The acts: takes the stage, plays the upgrade from the empty cluster to the old revision's end. Everything said is read from the cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;
use mainstay_api::MigrationState;
use mainstay_mesh::{Settings, preview};
use mainstay_operator::Options as OperatorOptions;
use mainstay_sim::script::Script;
use serde_json::{Value, json};

use super::cast::{self, ACTORS, Actor, FAILING, NEW, NEW_IMAGE, NEW_VERSION, OLD, SKIPPED, SPACES};
use super::outcome::{self, Facts};
use super::world::{ISTIO, Revisions, World};
use crate::commands::migration::{page, supposed};
use crate::error::{CliError, Kind};
use crate::table;

/// All of them.
pub(super) async fn play(world: &World) -> Result<(), CliError> {
    world.teller.begin(
        world.now(),
        "An embedded Kubernetes API in this process, three nodes, no containers: pods are simulated, and istiod's injection\nis a stand-in that marks them. \
         The operator, Istio's charts, the planner and these pages are the real ones.",
    )?;
    let operator = install(world).await?;
    let before = workloads(world).await?;
    let failed = upgrade(world).await?;
    repair(world).await?;
    restart_skipped(world).await?;
    pruned(world).await?;
    let facts = Facts { before, failed };
    let done = finish(world, &facts).await;
    operator.stop().await?;
    done
}

async fn install(world: &World) -> Result<mainstay_harness::RunningOperator, CliError> {
    let (stage, teller) = (&world.stage, &world.teller);
    teller.chapter(world.now(), "An operator, and Istio 1.28.2")?;
    teller.typed(
        world.now(),
        "helm install mainstay deploy/chart -n sail-operator --create-namespace",
    )?;
    for name in [mainstay_harness::OPERATOR_NAMESPACE, "istio-system"] {
        stage.create_namespace(name, json!({})).await?;
    }
    set_scripts(world);
    let operator = stage.start_operator(Settings::default(), OperatorOptions::default());
    teller.typed(world.now(), "kubectl create namespace istio-system")?;
    teller.typed(world.now(), "kubectl apply -f istio.yaml")?;
    let istio = cast::istio();
    teller.page(world.now(), "manifest", &cast::text(&istio)?, &istio)?;
    stage.create(&istio).await?;
    world
        .until("Istio is healthy", async |world| {
            Ok(state(world, ISTIO).await? == "Healthy" && tags_lead_to(world, OLD).await?)
        })
        .await?;
    teller.say(
        world.now(),
        &format!("Istio default is Healthy: revision {OLD}, tags default and prod"),
    )?;
    Ok(operator)
}

/// How long pods take.
fn set_scripts(world: &World) {
    let usual = Script {
        start: Duration::from_secs(2),
        ..Script::ready_after(Duration::from_secs(4))
    };
    world.stage.sim().with(|state| {
        state.scripts.set_default(usual.clone());
        for actor in &ACTORS {
            let script = Script {
                ready: Some(actor.readiness()),
                ..usual.clone()
            };
            state.scripts.add_workload(actor.space, actor.name, script);
        }
    });
}

async fn state(world: &World, path: &str) -> Result<String, CliError> {
    let object = world.stage.get(path).await?.unwrap_or_default();
    let state = object.pointer("/status/state").and_then(Value::as_str);
    Ok(state.unwrap_or_default().to_owned())
}

async fn tags_lead_to(world: &World, revision: &str) -> Result<bool, CliError> {
    for tag in ["default", "prod"] {
        let path = format!("/apis/sailoperator.io/v1/istiorevisiontags/{tag}");
        let tag = world.stage.get(&path).await?.unwrap_or_default();
        if tag.pointer("/status/istioRevision").and_then(Value::as_str) != Some(revision) {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn workloads(world: &World) -> Result<Revisions, CliError> {
    let teller = &world.teller;
    teller.chapter(world.now(), "Twelve workloads in five namespaces")?;
    teller.typed(world.now(), "kubectl apply -f workloads.yaml")?;
    for object in cast::workloads() {
        world.stage.create(&object).await?;
    }
    world
        .until("the workloads are ready", async |world| {
            for actor in &ACTORS {
                if !world.is_settled(actor).await? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await?;
    let mut rows = vec![
        ["NAMESPACE", "ITS REVISION IS CHOSEN BY", "WORKLOADS"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for space in &SPACES {
        let here = ACTORS.iter().filter(|actor| actor.space == space.name);
        let names: Vec<&str> = here.map(|actor| actor.name).collect();
        rows.push(vec![space.name.into(), space.chosen_by.into(), names.join(", ")]);
    }
    teller.page(world.now(), "workloads", &table::lines("", &rows), &json!(rows))?;
    for actor in ACTORS.iter().filter(|actor| !actor.remark.is_empty()) {
        teller.say(
            world.now(),
            &format!("{}/{}: {}", actor.space, actor.name, actor.remark),
        )?;
    }
    lose_image(world);
    world.revisions().await
}

/// Running pods do not notice; whoever starts anew does.
fn lose_image(world: &World) {
    let (space, name) = FAILING;
    world.stage.sim().with(|state| {
        state
            .scripts
            .add_workload(space, name, Script::image_pull_error());
    });
}

async fn upgrade(world: &World) -> Result<BTreeSet<String>, CliError> {
    let teller = &world.teller;
    teller.chapter(world.now(), "What an upgrade to 1.29.1 would do, and the upgrade")?;
    teller.typed(
        world.now(),
        &format!("mainstay migration plan --to {NEW_VERSION} --ready-after 8s"),
    )?;
    plan(world).await?;
    teller.typed(
        world.now(),
        &format!(
            "kubectl patch istio default --type merge -p '{{\"spec\":{{\"version\":\"{NEW_VERSION}\"}}}}'"
        ),
    )?;
    world
        .stage
        .merge_patch(ISTIO, &json!({"spec": {"version": NEW_VERSION}}))
        .await?;
    world
        .until(
            "the new control plane is ready and the migration begins",
            async |world| {
                let look = world.look().await?;
                Ok(look.is_some_and(|look| {
                    look.status.target_revision == NEW && look.status.state == MigrationState::InProgress
                }))
            },
        )
        .await?;
    teller.say(
        world.now(),
        &format!("{NEW} is ready, the tags have moved to it, and the migration begins"),
    )?;
    teller.typed(world.now(), "mainstay migration watch")?;
    watch(world, &[MigrationState::Failed, MigrationState::Completed]).await
}

async fn plan(world: &World) -> Result<(), CliError> {
    let mut found = world.survey().await?;
    let istio = World::istio(&found)?;
    let (preview, notes) = supposed(&mut found, istio, Some(NEW_VERSION))?;
    let each = SignedDuration::from_secs(8);
    world.teller.page(
        world.now(),
        "plan",
        &page::plan(&preview, &notes, each),
        &page::plan_data(&preview, each),
    )
}

/// Follows the migration until it is in one of these states; gives whoever failed meanwhile.
async fn watch(world: &World, ends: &[MigrationState]) -> Result<BTreeSet<String>, CliError> {
    let mut display = world.teller.display();
    let mut failed = BTreeSet::new();
    world
        .until("the migration ends", async |world| {
            let Some(look) = world.look().await? else {
                return Ok(false);
            };
            let state = look.status.state;
            failed.extend(
                look.status
                    .failures
                    .iter()
                    .map(|one| format!("{}/{}", one.namespace, one.name)),
            );
            world.teller.progress(world.now(), &mut display, look)?;
            Ok(ends.contains(&state))
        })
        .await?;
    Ok(failed)
}

/// The actor of this name.
fn actor((space, name): (&str, &str)) -> Result<&'static Actor, CliError> {
    let found = ACTORS
        .iter()
        .find(|actor| (actor.space, actor.name) == (space, name));
    found.ok_or_else(|| CliError::new(Kind::Cluster, format!("nobody is called {space}/{name}")))
}

async fn repair(world: &World) -> Result<(), CliError> {
    let (teller, (space, name)) = (&world.teller, FAILING);
    let actor = actor(FAILING)?;
    teller.chapter(
        world.now(),
        "One has failed: its old pods still serve, and keep the old revision",
    )?;
    teller.typed(world.now(), &format!("kubectl get pods -n {space} -l app={name}"))?;
    let rows = world.pod_rows(actor).await?;
    teller.page(world.now(), "pods", &table::lines("", &rows), &json!(rows))?;
    world.status().await?;
    teller.typed(
        world.now(),
        &format!("kubectl set image -n {space} deployment/{name} {name}={NEW_IMAGE}"),
    )?;
    let script = Script::ready_after(actor.readiness());
    world
        .stage
        .sim()
        .with(|state| state.scripts.add_workload(space, name, script));
    let change =
        json!({"spec": {"template": {"spec": {"containers": [{"name": name, "image": NEW_IMAGE}]}}}});
    world.stage.merge_patch(&actor.path(), &change).await?;
    teller.typed(
        world.now(),
        &format!("kubectl rollout status -n {space} deployment/{name}"),
    )?;
    world
        .until("what failed has moved after all", async |world| {
            let look = world.look().await?;
            Ok(look.is_some_and(|look| look.status.state == MigrationState::Completed))
        })
        .await?;
    teller.typed(world.now(), "mainstay migration status")?;
    let found = world.survey().await?;
    let istio = World::istio(&found)?;
    let text = page::status(&istio, preview(&found.snapshot, &istio).as_ref());
    teller.page(
        world.now(),
        "migration",
        &text,
        &json!(istio.status.workload_migration),
    )
}

async fn restart_skipped(world: &World) -> Result<(), CliError> {
    let (teller, (space, name)) = (&world.teller, SKIPPED);
    let actor = actor(SKIPPED)?;
    teller.chapter(
        world.now(),
        "One was left alone on its owner's wish: now the owner restarts it",
    )?;
    teller.typed(
        world.now(),
        &format!("kubectl rollout restart -n {space} deployment/{name}"),
    )?;
    let mark = json!({"kubectl.kubernetes.io/restartedAt": world.now().to_string()});
    let change = json!({"spec": {"template": {"metadata": {"annotations": mark}}}});
    world.stage.merge_patch(&actor.path(), &change).await?;
    world
        .until("the skipped workload is restarted", async |world| {
            world.is_settled(actor).await
        })
        .await?;
    teller.say(world.now(), &format!("{space}/{name} has come up on {NEW}"))
}

async fn pruned(world: &World) -> Result<(), CliError> {
    let teller = &world.teller;
    teller.chapter(world.now(), "Nothing refers to the old revision any more")?;
    teller.typed(
        world.now(),
        &format!("kubectl wait --for=delete istiorevision/{OLD} --timeout=5m"),
    )?;
    world
        .until("the old revision is pruned", async |world| is_gone(world).await)
        .await?;
    teller.say(world.now(), &format!("{OLD} is pruned, its istiod with it"))
}

/// Whether nothing is left of the old control plane.
pub(super) async fn is_gone(world: &World) -> Result<bool, CliError> {
    for path in [
        format!("/apis/sailoperator.io/v1/istiorevisions/{OLD}"),
        format!("/apis/apps/v1/namespaces/istio-system/deployments/istiod-{OLD}"),
    ] {
        if world.stage.get(&path).await?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn finish(world: &World, facts: &Facts) -> Result<(), CliError> {
    world.teller.chapter(world.now(), "How it stands")?;
    world.status().await?;
    let outcome = outcome::read(world, facts).await?;
    world
        .teller
        .say(world.now(), "What became of the twelve, by their pods")?;
    world
        .teller
        .page(world.now(), "outcome", &outcome.table(), &json!(outcome.rows))?;
    outcome.check()?;
    world.teller.end(world.now(), &outcome.sentence(), outcome.data())
}
