//! Advances the cluster's clock along with the system clock, at a configurable speed.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock;
use crate::cluster::Cluster;

/// Interval of clock updates while controllers have work.
const TICK: Duration = Duration::from_millis(20);
/// Interval of clock updates without such work. Watches need the updates for deadlines and bookmarks.
const IDLE: Duration = Duration::from_millis(250);
/// Maximum simulated time per update after a long pause, such as a suspended laptop.
const MAX_CATCH_UP: Duration = Duration::from_hours(1);
/// Maximum time that an update delays requests. If the simulation is slower than the system clock, the
/// cluster's clock lags.
const MAX_BUSY: Duration = Duration::from_millis(50);

/// Maps the system clock to the cluster's clock.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    origin: Instant,
    start: clock::Instant,
    speed: f64,
}

impl Pace {
    /// Creates a mapping in which `speed` seconds of cluster time pass per second.
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

    /// Returns the cluster time that corresponds to the current system time.
    fn cluster_time(&self) -> clock::Instant {
        self.start.plus(self.origin.elapsed().mul_f64(self.speed))
    }

    /// Advances the cluster's clock to the time that corresponds to the system time, and does the work that
    /// is due. At speed 0, only work that requests have caused is due.
    pub(super) fn catch_up(&self, cluster: &Cluster) {
        let (started, cluster_time) = (Instant::now(), self.cluster_time());
        let late = cluster_time.since(cluster.now());
        if late > MAX_CATCH_UP {
            cluster.skip(late.saturating_sub(MAX_CATCH_UP));
        }
        while !cluster.advance_once(cluster_time) && started.elapsed() < MAX_BUSY {}
    }

    /// Updates the clock until stopped.
    pub(super) async fn run(self, cluster: Cluster, mut stopped: watch::Receiver<bool>) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        let mut idle = Instant::now();
        loop {
            tokio::select! {
                _ = stopped.changed() => return,
                _ = ticks.tick() => {}
            }
            let due = cluster.due().is_some_and(|due| due <= self.cluster_time());
            if due || idle.elapsed() >= IDLE {
                idle = Instant::now();
                self.catch_up(&cluster);
            }
        }
    }
}
