//! Description of the machine of a bench, and detection of other load during the runs.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

/// Minimum load average before the first run at which a machine counts as busy.
const BUSY_LOAD: f64 = 0.5;
/// Minimum ratio of the wall time of the loop to its CPU time at which a machine counts as busy.
const BUSY_SLOWDOWN: f64 = 1.05;
/// Number of steps of the loop, which takes some milliseconds.
const STEPS: u64 = 20_000_000;
/// Number of repetitions of the loop, of which the median is used.
const REPETITIONS: usize = 9;

/// The machine and its other load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Model of the processor.
    pub(crate) processor: String,
    /// Number of processors.
    pub(crate) processors: usize,
    /// Load average of the last minute, before the first run.
    pub(crate) load: f64,
    /// Ratio of the wall time of a loop without waits to its CPU time, before and after the runs; 1 without
    /// other load.
    pub(crate) slowdown: [f64; 2],
}

impl Machine {
    /// Describes the machine before the first run.
    pub(crate) fn observe() -> Self {
        let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let slowdown = slowdown();
        Self {
            processor: processor(&file("/proc/cpuinfo")),
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            load: load(&file("/proc/loadavg")),
            slowdown: [slowdown, slowdown],
        }
    }

    /// Measures the slowdown after the last run.
    pub(crate) fn finish(&mut self) {
        self.slowdown[1] = slowdown();
    }

    /// Whether other programs used the machine.
    pub(crate) fn is_busy(&self) -> bool {
        self.load >= BUSY_LOAD || self.slowdown.iter().any(|slowdown| *slowdown >= BUSY_SLOWDOWN)
    }

    /// Describes the machine in sentences.
    pub(crate) fn text(&self) -> String {
        let [before, after] = self.slowdown;
        let state = if self.is_busy() {
            "The machine was busy with other programs: wall times include waiting, CPU times do not"
        } else {
            "The machine was idle otherwise"
        };
        format!(
            "{}, {} processors. {state} (load {:.1} before the first run; a loop without waits took {before:.2} times its CPU time before \
             and {after:.2} times after the runs).",
            self.processor, self.processors, self.load
        )
    }
}

fn processor(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model
        .and_then(|rest| rest.split_once(": "))
        .map(|(_, name)| name.trim());
    model.unwrap_or("unknown processor").to_owned()
}

fn load(loadavg: &str) -> f64 {
    let first = loadavg.split(' ').next();
    first.and_then(|load| load.parse().ok()).unwrap_or_default()
}

/// Returns the median ratio of the wall time of the loop to its CPU time.
fn slowdown() -> f64 {
    let mut found: Vec<f64> = (0..REPETITIONS).map(|_| one_slowdown()).collect();
    found.sort_by(f64::total_cmp);
    found.get(REPETITIONS / 2).copied().unwrap_or(1.0)
}

fn one_slowdown() -> f64 {
    let (wall, cpu) = (Instant::now(), cpu_time());
    let sum = (0..STEPS).fold(1_u64, |sum, step| {
        std::hint::black_box(sum.wrapping_mul(31) ^ step)
    });
    std::hint::black_box(sum);
    let cpu = cpu_time().saturating_sub(cpu).as_secs_f64();
    wall.elapsed().as_secs_f64() / cpu.max(1e-9)
}

fn cpu_time() -> Duration {
    let duration = |time: TimeVal| Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1_000);
    getrusage(UsageWho::RUSAGE_SELF)
        .map(|usage| duration(usage.user_time()) + duration(usage.system_time()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_describes_the_machine() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: A B\n"), "A B");
        assert_eq!(processor(""), "unknown processor");
        assert_eq!(load("1.25 0.50 0.10 2/300 1\n").to_string(), "1.25");
        assert_eq!(load("").to_string(), "0");
    }

    #[test]
    fn a_busy_machine_is_reported() {
        let machine = |load, slowdown| Machine {
            load,
            slowdown: [1.0, slowdown],
            ..Machine::default()
        };
        assert!(!machine(0.1, 1.01).is_busy());
        assert!(machine(0.1, 1.01).text().contains("idle otherwise"));
        for busy in [machine(1.0, 1.0), machine(0.1, 1.5)] {
            assert!(busy.is_busy() && busy.text().contains("was busy"));
        }
    }
}
