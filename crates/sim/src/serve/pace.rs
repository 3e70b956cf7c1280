//! The cluster's clock follows the wall clock, at some speed: takes moments of the runtime's clock, gives advances.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock;
use crate::cluster::Cluster;

/// How long the clock may stand still although something is due.
const TICK: Duration = Duration::from_millis(20);
/// How long it may stand still when nothing is due: watches end and get bookmarks by it.
const IDLE: Duration = Duration::from_millis(250);
/// A cluster that was left alone (a suspended laptop) makes up for at most this much at a time.
const LEAP: Duration = Duration::from_hours(1);

/// Ties a cluster's clock to the runtime's.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    origin: Instant,
    start: clock::Instant,
    speed: f64,
}

impl Pace {
    /// From now on a second takes `1 / speed` seconds.
    pub(super) fn new(cluster: &Cluster, speed: f64) -> Self {
        let speed = if speed.is_finite() {
            speed.clamp(0.0, 1e6)
        } else {
            1.0
        };
        Self {
            origin: Instant::now(),
            start: cluster.now(),
            speed,
        }
    }

    /// What the cluster's clock should show.
    fn target(&self) -> clock::Instant {
        self.start.plus(self.origin.elapsed().mul_f64(self.speed))
    }

    /// Brings the cluster's clock up to date.
    pub(super) fn catch_up(&self, cluster: &Cluster) {
        if self.speed > 0.0 {
            cluster.advance_to(self.target(), LEAP);
        }
    }

    /// Keeps the clock going until told to stop.
    pub(super) async fn run(self, cluster: Cluster, mut stopped: watch::Receiver<bool>) {
        if self.speed <= 0.0 {
            return;
        }
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut idle = Instant::now();
        loop {
            tokio::select! {
                _ = stopped.changed() => return,
                _ = ticks.tick() => {}
            }
            let due = cluster.due().is_some_and(|due| due <= self.target());
            if due || idle.elapsed() >= IDLE {
                idle = Instant::now();
                self.catch_up(&cluster);
            }
        }
    }
}
