//! Container lifecycle: computes the current phase and the time of the next transition from a script.

use std::time::Duration;

use serde_json::Value;

use super::Script;
use crate::clock::Instant;
use crate::tree;

/// The pod's `restartPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    /// `Always`.
    Always,
    /// `OnFailure`.
    OnFailure,
    /// `Never`.
    Never,
}

impl RestartPolicy {
    /// Returns the policy of a pod.
    #[must_use]
    pub fn for_pod(pod: &Value) -> Self {
        match tree::text(pod, &["spec", "restartPolicy"]) {
            "Never" => Self::Never,
            "OnFailure" => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

/// The state of a pod's containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerPhase {
    /// The containers are being created.
    Creating,
    /// The image cannot be pulled. The error and the back-off alternate.
    NoImage {
        /// Whether the pull is in back-off; otherwise the error is reported.
        backing_off: bool,
    },
    /// The containers are running.
    Running {
        /// Whether the containers are ready.
        ready: bool,
    },
    /// The containers have terminated and restart after a back-off.
    BackOff,
    /// The containers have terminated permanently.
    Ended(CompletedRun),
}

/// A completed run of the containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedRun {
    /// Start of the run.
    pub started: Instant,
    /// End of the run.
    pub finished: Instant,
    /// The exit code.
    pub exit_code: i32,
}

const INITIAL_BACKOFF: Duration = Duration::from_secs(10);
const MAX_BACKOFF: Duration = Duration::from_mins(5);
/// Duration of a run that resets the back-off.
const BACKOFF_RESET_AFTER: Duration = Duration::from_mins(10);

/// The lifecycle of a pod's containers, which all behave identically.
#[derive(Clone, Debug)]
pub struct ContainerLifecycle {
    script: Script,
    restart: RestartPolicy,
    phase: ContainerPhase,
    /// Start of the phase; in `Running`, the start of the run.
    since: Instant,
    /// Number of restarts.
    pub restarts: u32,
    /// Previous run; `None` during the first one.
    pub last: Option<CompletedRun>,
    /// Duration of the back-off or of the pull error; zero before the first one.
    backoff: Duration,
    /// Whether the current run was ready and has become permanently unready.
    faltered: bool,
}

impl ContainerLifecycle {
    /// Creates the lifecycle of a pod that is bound at `now`.
    #[must_use]
    pub fn new(script: Script, restart: RestartPolicy, now: Instant) -> Self {
        Self {
            script,
            restart,
            phase: ContainerPhase::Creating,
            since: now,
            restarts: 0,
            last: None,
            backoff: Duration::ZERO,
            faltered: false,
        }
    }

    /// Returns the current phase.
    #[must_use]
    pub fn phase(&self) -> ContainerPhase {
        self.phase
    }

    /// Returns the start of the phase; in `Running`, the start of the run.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Returns the time that the containers take to stop.
    #[must_use]
    pub fn stop(&self) -> Duration {
        self.script.stop
    }

    /// Returns the time of the next transition, or `None` if the phase is final.
    #[must_use]
    pub fn next_transition(&self) -> Option<Instant> {
        let script = &self.script;
        match self.phase {
            ContainerPhase::Creating => Some(self.since.plus(script.start)),
            ContainerPhase::NoImage { .. } | ContainerPhase::BackOff => Some(self.since.plus(self.backoff)),
            ContainerPhase::Running { ready } => {
                let end = script.end.map(|end| end.after);
                let ready_at = script.ready;
                let falter = ready_at
                    .zip(script.falter)
                    .map(|(ready, falter)| ready.saturating_add(falter));
                let transition = if ready {
                    falter
                } else {
                    ready_at.filter(|_| !self.faltered)
                };
                end.into_iter()
                    .chain(transition)
                    .min()
                    .map(|after| self.since.plus(after))
            }
            ContainerPhase::Ended(_) => None,
        }
    }

    /// Performs all transitions that are due. Returns whether the phase changed.
    pub fn advance_to(&mut self, now: Instant) -> bool {
        let mut changed = false;
        while let Some(at) = self.next_transition().filter(|at| *at <= now) {
            self.perform_transition(at);
            changed = true;
        }
        changed
    }

    /// Performs the transition that is due at `at`.
    fn perform_transition(&mut self, at: Instant) {
        match self.phase {
            ContainerPhase::Creating if self.script.no_image => self.fail_image_pull(at, false),
            ContainerPhase::NoImage { backing_off } => self.fail_image_pull(at, !backing_off),
            ContainerPhase::Creating => self.start_run(at),
            ContainerPhase::BackOff => {
                self.restarts = self.restarts.saturating_add(1);
                self.start_run(at);
            }
            ContainerPhase::Running { ready } => {
                let end = self.script.end.filter(|end| self.since.plus(end.after) <= at);
                if let Some(end) = end {
                    self.end_run(at, end.exit_code);
                    return;
                }
                self.faltered = ready;
                self.phase = ContainerPhase::Running { ready: !ready };
            }
            ContainerPhase::Ended(_) => {}
        }
    }

    fn start_run(&mut self, at: Instant) {
        self.since = at;
        self.faltered = false;
        self.phase = ContainerPhase::Running { ready: false };
    }

    fn fail_image_pull(&mut self, at: Instant, backing_off: bool) {
        self.since = at;
        self.phase = ContainerPhase::NoImage { backing_off };
        // The error is reported for one second. The back-off doubles with each failure.
        self.backoff = if backing_off {
            self.restarts = self.restarts.saturating_add(1);
            exponential_backoff(INITIAL_BACKOFF, self.restarts)
        } else {
            Duration::from_secs(1)
        };
    }

    fn end_run(&mut self, at: Instant, exit_code: i32) {
        let completed = CompletedRun {
            started: self.since,
            finished: at,
            exit_code,
        };
        let restarts = match self.restart {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => exit_code != 0,
            RestartPolicy::Never => false,
        };
        if !restarts {
            self.phase = ContainerPhase::Ended(completed);
            self.since = at;
            return;
        }
        let resets_backoff = at.since(self.since) >= BACKOFF_RESET_AFTER;
        self.backoff = match self.backoff {
            Duration::ZERO => INITIAL_BACKOFF,
            _ if resets_backoff => INITIAL_BACKOFF,
            backoff => (backoff * 2).min(MAX_BACKOFF),
        };
        self.last = Some(completed);
        self.phase = ContainerPhase::BackOff;
        self.since = at;
    }

    /// Sets readiness as reported by a probe, for pods backed by a real process.
    pub fn set_ready(&mut self, ready: bool) {
        if let ContainerPhase::Running { ready: current } = &mut self.phase {
            *current = ready;
        }
    }

    /// Ends the current run, for pods backed by a real process.
    pub fn exit(&mut self, at: Instant, exit_code: i32) {
        if matches!(self.phase, ContainerPhase::Running { .. }) {
            self.end_run(at, exit_code);
        }
    }

    /// Returns the restart count for the status. Failed image pulls are not restarts.
    #[must_use]
    pub fn reported_restarts(&self) -> u32 {
        match self.phase {
            ContainerPhase::NoImage { .. } => 0,
            _ => self.restarts,
        }
    }
}

fn exponential_backoff(first: Duration, times: u32) -> Duration {
    let factor = 1_u32 << times.saturating_sub(1).min(10);
    first.saturating_mul(factor).min(MAX_BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: Script, restart: RestartPolicy, expected: &[(u64, &str)]) {
        let start = Instant::from_seconds(0);
        let mut life = ContainerLifecycle::new(script, restart, start);
        let mut found = Vec::new();
        while let Some(at) = life.next_transition().filter(|_| found.len() < expected.len()) {
            life.advance_to(at);
            let stage = match life.phase() {
                ContainerPhase::Creating => "creating".to_owned(),
                ContainerPhase::NoImage { backing_off } => format!("no image, backing off {backing_off}"),
                ContainerPhase::Running { ready } => {
                    format!("running, ready {ready}, {} restarts", life.restarts)
                }
                ContainerPhase::BackOff => "back-off".to_owned(),
                ContainerPhase::Ended(stopped) => format!("ended {}", stopped.exit_code),
            };
            found.push((at.since(start).as_secs(), stage));
        }
        let expected: Vec<_> = expected
            .iter()
            .map(|(at, stage)| (*at, (*stage).to_owned()))
            .collect();
        assert_eq!(found, expected);
    }

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn pods_become_ready_and_stay_ready() {
        check(
            Script::ready_after(seconds(3)),
            RestartPolicy::Always,
            &[
                (0, "running, ready false, 0 restarts"),
                (3, "running, ready true, 0 restarts"),
            ],
        );
        check(
            Script::never_ready(),
            RestartPolicy::Always,
            &[(0, "running, ready false, 0 restarts")],
        );
        check(
            Script::falters_after(seconds(5)),
            RestartPolicy::Always,
            &[
                (0, "running, ready false, 0 restarts"),
                (1, "running, ready true, 0 restarts"),
                (6, "running, ready false, 0 restarts"),
            ],
        );
    }

    #[test]
    fn restart_backoff_doubles() {
        check(
            Script::crash_loop(seconds(1)),
            RestartPolicy::Always,
            &[
                (0, "running, ready false, 0 restarts"),
                (1, "back-off"),
                (11, "running, ready false, 1 restarts"),
                (12, "back-off"),
                (32, "running, ready false, 2 restarts"),
                (33, "back-off"),
                (73, "running, ready false, 3 restarts"),
            ],
        );
        check(
            Script::crash_loop(seconds(1)),
            RestartPolicy::Never,
            &[(0, "running, ready false, 0 restarts"), (1, "ended 1")],
        );
        check(
            Script::completes_after(seconds(2)),
            RestartPolicy::OnFailure,
            &[(0, "running, ready true, 0 restarts"), (2, "ended 0")],
        );
    }

    #[test]
    fn restart_backoff_doubles_after_runs_that_became_unready() {
        let script = Script {
            falter: Some(seconds(1)),
            ..Script::fails_after(seconds(3))
        };
        check(
            script,
            RestartPolicy::Always,
            &[
                (0, "running, ready true, 0 restarts"),
                (1, "running, ready false, 0 restarts"),
                (3, "back-off"),
                (13, "running, ready true, 1 restarts"),
                (14, "running, ready false, 1 restarts"),
                (16, "back-off"),
                (36, "running, ready true, 2 restarts"),
                (37, "running, ready false, 2 restarts"),
                (39, "back-off"),
                (79, "running, ready true, 3 restarts"),
            ],
        );
    }

    #[test]
    fn image_pulls_are_retried() {
        check(
            Script::image_pull_error(),
            RestartPolicy::Always,
            &[
                (0, "no image, backing off false"),
                (1, "no image, backing off true"),
                (11, "no image, backing off false"),
                (12, "no image, backing off true"),
                (32, "no image, backing off false"),
            ],
        );
    }
}
