//! Figures of whole processes: wall time, CPU time and peak memory.

use super::figure::{Figure, Goal, Peer, Sample};
use crate::measure::Cost;

/// Goals of one subject.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goals {
    /// Goal for wall time in milliseconds.
    pub(super) wall: Goal,
    /// Goal for CPU time in milliseconds.
    pub(super) cpu: Goal,
    /// Goal for peak memory in MiB.
    pub(super) memory: Goal,
}

/// Runs of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerRuns<'a> {
    /// Name of the peer.
    pub(super) name: &'a str,
    /// Costs of all runs of the peer.
    pub(super) costs: &'a [Cost],
}

/// Returns wall time, CPU time and peak memory of all runs.
pub(super) fn figures(subject: &str, goals: Goals, ours: &[Cost], peer: Option<PeerRuns<'_>>) -> Vec<Figure> {
    let figure = |quantity: &str, unit: &str, goal: Goal, value: fn(&Cost) -> f64| {
        let sample = |costs: &[Cost]| Sample::from_runs(costs.iter().map(value).collect());
        Figure {
            subject: subject.into(),
            quantity: format!("whole process, {quantity}"),
            unit: unit.into(),
            ours: sample(ours),
            peer: peer.map(|peer| Peer {
                name: peer.name.into(),
                sample: sample(peer.costs),
            }),
            goal,
        }
    };
    vec![
        figure("wall time", "ms", goals.wall, wall),
        figure("CPU time", "ms", goals.cpu, cpu),
        figure("peak memory", "MiB", goals.memory, memory),
    ]
}

fn wall(cost: &Cost) -> f64 {
    cost.wall.as_secs_f64() * 1e3
}

fn cpu(cost: &Cost) -> f64 {
    cost.cpu.as_secs_f64() * 1e3
}

/// Returns the peak memory in MiB.
pub(super) fn memory(cost: &Cost) -> f64 {
    cost.peak_kib as f64 / 1024.0
}
