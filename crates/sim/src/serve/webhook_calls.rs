//! What the cluster's controllers want to know from webhooks: takes their questions, asks them outside, gives them the answers. Each question on
//! its own: a webhook that keeps silent holds up nobody else.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cluster::Cluster;

/// How long a question may lie.
const TICK: Duration = Duration::from_millis(20);

/// Runs until told to stop.
pub(super) async fn run(cluster: Cluster, mut stopped: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut under_way = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            _ = ticks.tick() => {}
            Some(_) = under_way.join_next() => {}
        }
        for question in cluster.take_webhook_calls() {
            let cluster = cluster.clone();
            under_way.spawn(async move {
                let reply = cluster.call_webhook(&question).await;
                cluster.accept_webhook_reply(&question, reply);
            });
        }
    }
}
