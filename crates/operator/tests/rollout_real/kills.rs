//! Kills the operator's process at a write to any of the three servers. The next process must reach the
//! same end state as a rollout without a kill.

use serde_json::{Value, json};

use crate::final_state::FinalState;
use crate::is_whole;
use crate::objects::{deployment_of, with_traffic};
use crate::process::CRASH_FAULTS;
use crate::servers::{HOST, MEMBERS};
use crate::test_namespace::{DEPLOYMENTS, TestNamespace, V1, V2};

/// Number of kills by default and in the complete proof.
const KILL_COUNTS: [usize; 2] = [3, 30];

/// Maximum number of rollouts that may end before their kill: the number of writes varies with their timing.
const MAX_MISSED: usize = 3;

/// Returns a deployment of a revision in all clusters.
fn deployment(revision: &str) -> Value {
    let places: &[(&str, u32)] = &[(HOST, 1), (MEMBERS[0], 1), (MEMBERS[1], 1)];
    let mut deployment = with_traffic(deployment_of(&[(revision, places)]), "Istio", &[(revision, 100)]);
    deployment["spec"]["traffic"]["drainSeconds"] = json!(1);
    deployment
}

/// Number of writes and end state of a rollout from one revision to the other without a kill.
struct Baseline {
    writes: usize,
    end: Vec<FinalState>,
}

async fn complete(test: &TestNamespace) {
    test.until_phase("Healthy").await;
    test.until_idle().await;
    test.kill_operator();
}

async fn baseline(test: &TestNamespace, revision: &str) -> Baseline {
    let before = test.servers.writes().len();
    test.set_spec(DEPLOYMENTS, &deployment(revision)).await;
    test.start_operator();
    complete(test).await;
    Baseline {
        writes: test.servers.writes().len() - before,
        end: test.end_state().await,
    }
}

/// Returns the number of the write at which to kill the operator, so that kills are spread over the
/// rollout. The last tenth is excluded, because the total varies slightly.
fn write_of_kill(number: usize, kills: usize, writes: usize) -> usize {
    1 + number * (writes * 9 / 10) / kills
}

pub(crate) async fn every_kill_converges() {
    let kills = KILL_COUNTS[usize::from(is_whole())];
    let test = TestNamespace::start("kills").await;
    test.record_two_revisions().await;
    test.create(DEPLOYMENTS, deployment(V1)).await;
    complete(&test).await;
    let baselines = [baseline(&test, V2).await, baseline(&test, V1).await];
    let (mut hits, mut missed) = (0, 0);
    let (mut by_fault, mut wrong) = ([0; CRASH_FAULTS.len()], Vec::new());
    while hits < kills {
        assert!(missed <= MAX_MISSED, "{missed} rollouts ended before their kill");
        let target = (hits + missed) % 2;
        let (revision, baseline) = ([V2, V1][target], &baselines[target]);
        let write = write_of_kill(hits, kills, baseline.writes).saturating_sub(missed);
        let fault = hits % CRASH_FAULTS.len();
        test.set_spec(DEPLOYMENTS, &deployment(revision)).await;
        let is_killed = test.run_operator_until_killed((write.max(1), fault)).await;
        if is_killed {
            hits += 1;
            by_fault[fault] += 1;
        } else {
            missed += 1;
        }
        test.start_operator();
        complete(&test).await;
        let end = test.end_state().await;
        let mut differences = baseline
            .end
            .iter()
            .zip(&end)
            .filter_map(|(one, other)| one.difference(other));
        let difference = differences.next();
        let outcome = difference.as_deref().unwrap_or("as without a kill");
        let line = format!(
            "{:?} at write {write} of {revision}: {outcome}",
            CRASH_FAULTS[fault]
        );
        let event = if is_killed { "kill" } else { "no kill, after" };
        println!("{event} {hits} of {kills}: {line}");
        wrong.extend(difference.map(|_| line));
    }
    println!(
        "servers kills: {} rollouts of {} or {} writes to 3 servers, {hits} operators killed ({} before, {} during, {} after a write), {} ended as without a kill",
        kills + missed,
        baselines[0].writes,
        baselines[1].writes,
        by_fault[0],
        by_fault[1],
        by_fault[2],
        kills + missed - wrong.len(),
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}
