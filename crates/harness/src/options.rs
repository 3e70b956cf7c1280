//! Settings of a simulated cluster.

use jiff::Timestamp;
use mainstay_operator::DEFAULT_MAX_CONCURRENT_RECONCILES;
use mainstay_sim::Options as SimOptions;

/// Maximum speed of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Speed {
    /// Time advances directly from one event to the next.
    #[default]
    Unlimited,
    /// Time advances by at most this many seconds per second of the wall clock.
    Factor(f64),
}

/// Settings of a [`SimulatedCluster`](crate::SimulatedCluster).
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct ClusterOptions {
    /// Seed of all random choices.
    pub seed: u64,
    /// Initial virtual time.
    pub start: Timestamp,
    /// Number of nodes that pods are scheduled to.
    pub nodes: usize,
    /// Maximum speed of virtual time.
    pub speed: Speed,
    /// Whether to record a trace line for each API call.
    pub trace: bool,
    /// Whether controllers write Event objects.
    pub events: bool,
    /// Whether istiods inject pods that match their webhooks.
    pub inject: bool,
    /// Whether webhooks without a server admit every request. Otherwise they are unreachable.
    pub admit_unserved: bool,
    /// Whether operators take part in leader election. Otherwise they are leaders immediately.
    pub leader_elect: bool,
    /// Maximum number of plans that an operator executes concurrently.
    pub max_concurrent: usize,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        let sim = SimOptions::default();
        Self {
            seed: sim.seed,
            start: Timestamp::from_microsecond(sim.start.as_micros()).unwrap_or(Timestamp::UNIX_EPOCH),
            nodes: 3,
            speed: Speed::Unlimited,
            trace: false,
            events: false,
            inject: true,
            admit_unserved: false,
            leader_elect: false,
            max_concurrent: DEFAULT_MAX_CONCURRENT_RECONCILES,
        }
    }
}
