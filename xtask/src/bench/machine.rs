//! Description of the machine of a bench, and the load of other programs during the runs.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

/// Minimum load of other programs, in processors, at which a machine counts as busy.
const BUSY_LOAD: f64 = 0.1;
/// Duration of the kernel's unit of time in `/proc/stat`.
const TICK: Duration = Duration::from_millis(10);

/// The machine and its other load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Model of the processor.
    pub(crate) processor: String,
    /// Number of processors.
    pub(crate) processors: usize,
    /// Average number of processors that other programs used during the runs.
    pub(crate) foreign_load: f64,
}

/// Compares the CPU time of the machine with that of this process and its children.
pub(crate) struct Monitor {
    begin: Instant,
    total: Duration,
    own: Duration,
}

impl Monitor {
    /// Starts to observe the machine. Programs must be built before.
    pub(crate) fn start() -> Self {
        Self {
            begin: Instant::now(),
            total: total_time(),
            own: own_time(),
        }
    }

    /// Describes the machine and its other load since the start. All children must have exited: the CPU time
    /// of running ones counts as other load.
    pub(crate) fn machine(&self) -> Machine {
        let total = total_time().saturating_sub(self.total);
        let own = own_time().saturating_sub(self.own);
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Machine {
            processor: processor(&cpuinfo),
            processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            foreign_load: foreign_load(total, own, self.begin.elapsed()),
        }
    }
}

impl Machine {
    /// Whether other programs used the machine.
    pub(crate) fn is_busy(&self) -> bool {
        self.foreign_load >= BUSY_LOAD
    }

    /// Describes the machine in sentences.
    pub(crate) fn text(&self) -> String {
        let state = if self.is_busy() {
            "The machine was busy with other programs: wall times include waiting, CPU times do not"
        } else {
            "The machine was idle otherwise"
        };
        format!(
            "{}, {} processors. {state} (other programs used {:.2} processors on average).",
            self.processor, self.processors, self.foreign_load
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

fn foreign_load(total: Duration, own: Duration, elapsed: Duration) -> f64 {
    total.saturating_sub(own).as_secs_f64() / elapsed.as_secs_f64().max(1e-9)
}

/// Returns the CPU time of all processes of the machine, and the time that a hypervisor took from them.
fn total_time() -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    busy_ticks(&stat).map_or(Duration::ZERO, |ticks| TICK * ticks)
}

/// Returns the ticks of `user`, `nice`, `system` and `steal`. Interrupts are left out, because no process is
/// charged for them.
fn busy_ticks(stat: &str) -> Option<u32> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let columns: Vec<u32> = line
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    match columns.as_slice() {
        [user, nice, system, _idle, _iowait, _irq, _softirq, steal, ..] => Some(user + nice + system + steal),
        _ => None,
    }
}

/// Returns the CPU time of this process and of its descendants that have exited.
fn own_time() -> Duration {
    let time = |usage: Usage| duration(usage.user_time()) + duration(usage.system_time());
    [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
        .into_iter()
        .filter_map(|who| getrusage(who).ok())
        .map(time)
        .sum()
}

fn duration(time: TimeVal) -> Duration {
    Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1_000)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_kernel_describes_the_machine() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: A B\n"), "A B");
        assert_eq!(processor(""), "unknown processor");
        let stat = "cpu  100 20 30 4000 50 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy_ticks(stat), Some(158));
        assert_eq!(busy_ticks("cpu  100 20\n"), None);
        assert!(total_time() > Duration::ZERO);
    }

    #[test]
    fn only_the_load_of_other_programs_counts() {
        let load = |total, own| {
            foreign_load(
                Duration::from_secs(total),
                Duration::from_secs(own),
                Duration::from_secs(10),
            )
        };
        let percents = [load(9, 9), load(9, 10), load(15, 5)].map(|load: f64| (load * 100.0) as u32);
        assert_eq!(percents, [0, 0, 100]);
        let machine = |foreign_load| Machine {
            foreign_load,
            ..Machine::default()
        };
        assert!(!machine(0.05).is_busy() && machine(0.05).text().contains("idle otherwise"));
        assert!(machine(0.2).is_busy() && machine(0.2).text().contains("was busy"));
    }

    #[test]
    fn the_time_of_a_child_is_our_own() {
        let before = own_time();
        let digest = "head -c 50000000 /dev/zero | cksum";
        let status = Command::new("sh")
            .args(["-c", digest])
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        assert!(own_time() >= before + Duration::from_millis(10));
    }
}
