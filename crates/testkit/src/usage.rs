//! Memory and CPU time of a process, from `/proc`.

use std::fs;
use std::time::Duration;

/// Resource usage of a process, identified by its pid in the outermost pid namespace of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Usage(u32);

impl Usage {
    /// Returns the usage of the process with this pid.
    #[must_use]
    pub fn for_process(process: u32) -> Self {
        Self(process)
    }

    /// Returns the usage of the current process.
    #[must_use]
    pub fn for_self() -> Self {
        Self(std::process::id())
    }

    /// Returns the resident memory in MiB, or 0 if the process does not exist.
    #[must_use]
    pub fn resident(self) -> f64 {
        self.memory("VmRSS:")
    }

    /// Returns the peak of the resident memory in MiB.
    #[must_use]
    pub fn peak(self) -> f64 {
        self.memory("VmHWM:")
    }

    fn memory(self, name: &str) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0)).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kibibytes.unwrap_or_default() / 1024.0
    }

    /// Returns the CPU time of all running threads. Threads that have exited are not counted.
    #[must_use]
    pub fn cpu_time(self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.0));
        let nanoseconds = threads.into_iter().flatten().flatten().filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanoseconds.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_cpu_time_are_measured() {
        let own = Usage::for_self();
        let (memory, busy) = (own.resident(), own.cpu_time());
        let block = vec![1_u8; 64 << 20];
        assert!(block.iter().map(|byte| u64::from(*byte)).sum::<u64>() > 0);
        assert!(own.resident() > memory + 32.0 && own.peak() >= own.resident());
        assert!(own.cpu_time() > busy);
    }

    #[test]
    fn a_missing_process_uses_nothing() {
        let gone = Usage::for_process(u32::MAX);
        assert_eq!((gone.resident(), gone.cpu_time()), (0.0, Duration::ZERO));
    }
}
