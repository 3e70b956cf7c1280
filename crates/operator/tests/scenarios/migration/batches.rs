//! Batches: size, delay, and reported status.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::support::availability_log::AvailabilityLog;
use crate::support::history::{History, Migration};

const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

pub async fn ten_deployments_three_at_a_time(world: World) -> World {
    create_mesh(&world, batched(&world, 3, json!({}))).await;
    let space = world.namespace(&format!("istio.io/rev={OLD_REVISION}")).await;
    for name in NAMES {
        create_app_with(&world, &space, name, "", json!({"replicas": 1})).await;
    }
    until_served_by(&world, &space, OLD_REVISION).await;
    let log = AvailabilityLog::start(&world).await;
    upgrade(&world).await;
    until_migration(&world, "InProgress").await;
    let status = until_migration(&world, "Completed").await;
    assert_eq!(
        (format_counts(&status), format_batch(&status)),
        ("10+0+0 of 10".into(), "4 of 4".into())
    );
    let history = log.stop_and_check(&world).await;
    let sizes: Vec<usize> = history.batches().iter().map(BTreeSet::len).collect();
    assert_eq!(sizes, [3, 3, 3, 1]);
    assert!(history.max_migrating() <= 3, "at most one batch at a time");
    check_delay(&history.migrations(), Duration::from_secs(delay_seconds(&world)));
    check_statuses(&history);
    world
}

/// Checks that each batch starts at least `delay` after the last workload of the previous one was available.
fn check_delay(sent: &[Migration], delay: Duration) {
    for next in 2..=4 {
        let begin = sent
            .iter()
            .filter(|one| one.batch == next)
            .map(|one| one.at)
            .min()
            .unwrap();
        let before = sent.iter().filter(|one| one.batch == next - 1);
        let end = before.map(|one| one.complete.unwrap().1).max().unwrap();
        let gap = begin.duration_since(end);
        assert!(
            gap >= delay,
            "batch {next} started {gap:?} after the end of the previous one"
        );
    }
}

/// Checks that the statuses contain the start and the end of every batch, and every migrated workload.
fn check_statuses(history: &History) {
    let all = history.statuses();
    let statuses: Vec<&Value> = all.iter().map(|(_, status)| status).collect();
    assert_eq!(history.states(), ["Completed", "Idle", "InProgress", "Completed"]);
    let under_way: Vec<&&Value> = statuses
        .iter()
        .filter(|status| status["state"] == "InProgress")
        .collect();
    let batches: BTreeSet<i64> = under_way
        .iter()
        .filter_map(|status| status["batched"]["currentBatch"].as_i64())
        .collect();
    assert_eq!(batches, BTreeSet::from([1, 2, 3, 4]), "each batch is reported");
    for (batch, migrated) in [(1, 3), (2, 6), (3, 9)] {
        let ended = under_way.iter().any(|status| {
            status["batched"]["currentBatch"] == batch
                && status["migratedWorkloads"] == migrated
                && status["batched"]["nextBatchTime"].is_string()
        });
        assert!(ended, "the end of batch {batch} is reported");
    }
    let migrated: Vec<i64> = under_way
        .iter()
        .map(|status| status["migratedWorkloads"].as_i64().unwrap_or(0))
        .collect();
    assert!(migrated.is_sorted(), "{migrated:?}");
    assert!(
        under_way
            .iter()
            .all(|status| status["batched"]["totalBatches"] == 4),
        "{under_way:?}"
    );
    let start = &under_way[0]["startTime"];
    assert!(start.is_string() && under_way.iter().all(|status| status["startTime"] == *start));
    assert!(under_way.iter().all(|status| status["completionTime"].is_null()));
    let last = statuses.last().unwrap();
    assert_eq!(last["startTime"], *start);
    assert!(last["completionTime"].as_str() > start.as_str(), "{last}");
}
