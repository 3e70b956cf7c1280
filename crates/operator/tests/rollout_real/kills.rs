//! The operator's process is killed at a write to any of the three servers. Each time its successor reaches
//! the end state of a rollout without a kill.

use serde_json::{Value, json};

use crate::final_state::FinalState;
use crate::is_whole;
use crate::objects::{deployment_of, with_traffic};
use crate::process::CRASH_FAULTS;
use crate::scene::{DEPLOYMENTS, Scene, V1, V2};
use crate::servers::{HOST, MEMBERS};

/// Kills: by default, and in the whole proof.
const KILLS: [usize; 2] = [3, 30];

/// The revision in all clusters.
fn deployment(revision: &str) -> Value {
    let places: &[(&str, u32)] = &[(HOST, 1), (MEMBERS[0], 1), (MEMBERS[1], 1)];
    let mut deployment = with_traffic(deployment_of(&[(revision, places)]), "Istio", &[(revision, 100)]);
    deployment["spec"]["traffic"]["drainSeconds"] = json!(1);
    deployment
}

/// A rollout from one revision to the other without a kill: its number of writes and its end state.
struct Baseline {
    writes: usize,
    end: Vec<FinalState>,
}

async fn complete(scene: &Scene) {
    scene.until_phase("Healthy").await;
    scene.until_idle().await;
    scene.kill_operator();
}

async fn baseline(scene: &Scene, revision: &str) -> Baseline {
    let before = scene.servers.writes().len();
    scene.set_spec(DEPLOYMENTS, &deployment(revision)).await;
    scene.start_operator();
    complete(scene).await;
    Baseline {
        writes: scene.servers.writes().len() - before,
        end: scene.end_state().await,
    }
}

/// Returns the write of a kill, so that kills are spread over the rollout. The number of writes varies a
/// little, so the last tenth is left out.
fn write_of_kill(number: usize, kills: usize, writes: usize) -> usize {
    1 + number * (writes * 9 / 10) / kills
}

pub(crate) async fn every_kill_converges() {
    let kills = KILLS[usize::from(is_whole())];
    let scene = Scene::start("kills").await;
    scene.record_two_revisions().await;
    scene.create(DEPLOYMENTS, deployment(V1)).await;
    complete(&scene).await;
    let baselines = [baseline(&scene, V2).await, baseline(&scene, V1).await];
    let (mut hits, mut by_fault, mut wrong) = (0, [0; CRASH_FAULTS.len()], Vec::new());
    for number in 0..kills {
        let (revision, baseline) = ([V2, V1][number % 2], &baselines[number % 2]);
        let write = write_of_kill(number, kills, baseline.writes);
        let fault = number % CRASH_FAULTS.len();
        scene.set_spec(DEPLOYMENTS, &deployment(revision)).await;
        if scene.run_operator_until_killed((write, fault)).await {
            hits += 1;
            by_fault[fault] += 1;
        }
        scene.start_operator();
        complete(&scene).await;
        let end = scene.end_state().await;
        let mut differences = baseline
            .end
            .iter()
            .zip(&end)
            .filter_map(|(one, other)| one.difference(other));
        if let Some(difference) = differences.next() {
            wrong.push(format!(
                "{:?} at write {write} of {revision}: {difference}",
                CRASH_FAULTS[fault]
            ));
        }
    }
    println!(
        "servers kills: {kills} rollouts of {} or {} writes to 3 servers, {hits} operators killed ({} before, {} during, {} after a write), {} ended as without a kill",
        baselines[0].writes,
        baselines[1].writes,
        by_fault[0],
        by_fault[1],
        by_fault[2],
        kills - wrong.len(),
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(hits, kills, "a rollout was over before its kill");
}
