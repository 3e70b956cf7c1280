//! Sends the pending webhook calls of controllers. Calls run concurrently, so that a slow webhook does not
//! delay others.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cluster::Cluster;

/// Interval of checks for pending calls.
const TICK: Duration = Duration::from_millis(20);

/// Sends pending calls until stopped.
pub(super) async fn run(cluster: Cluster, mut stopped: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            _ = ticks.tick() => {}
            Some(_) = running.join_next() => {}
        }
        for call in cluster.take_webhook_calls() {
            let cluster = cluster.clone();
            running.spawn(async move {
                let reply = cluster.call_webhook(&call).await;
                cluster.accept_webhook_reply(&call, reply);
            });
        }
    }
}
