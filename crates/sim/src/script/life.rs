//! A pod's life by its script: takes the script and the time, gives the stage it is in and when the next one begins.

use std::time::Duration;

use serde_json::Value;

use super::Script;
use crate::clock::Instant;
use crate::tree;

/// Whether containers that ended start again.
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
    /// What a pod asks for.
    #[must_use]
    pub fn for_pod(pod: &Value) -> Self {
        match tree::text(pod, &["spec", "restartPolicy"]) {
            "Never" => Self::Never,
            "OnFailure" => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

/// What the containers are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerPhase {
    /// Being made.
    Creating,
    /// The image did not come; first the error, then the pause before the next try.
    NoImage {
        /// Whether it is the pause.
        pausing: bool,
    },
    /// Running.
    Running {
        /// Whether they are ready.
        ready: bool,
    },
    /// Ended, and about to start again after a pause.
    BackOff,
    /// Ended for good.
    Ended(CompletedRun),
}

/// A run that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedRun {
    /// When it began.
    pub started: Instant,
    /// When it ended.
    pub finished: Instant,
    /// What it ended with.
    pub exit_code: i32,
}

const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// A run of this length makes good for earlier crashes.
const RELIABLE: Duration = Duration::from_mins(10);

/// One pod's containers, which all do the same.
#[derive(Clone, Debug)]
pub struct ContainerLifecycle {
    script: Script,
    restart: RestartPolicy,
    phase: ContainerPhase,
    /// When the stage began; for running, when the run began.
    since: Instant,
    /// How often the containers were started again.
    pub restarts: u32,
    /// The run before this one.
    pub last: Option<CompletedRun>,
    pause: Duration,
}

impl ContainerLifecycle {
    /// Begins when the pod has its node.
    #[must_use]
    pub fn new(script: Script, restart: RestartPolicy, now: Instant) -> Self {
        Self {
            script,
            restart,
            phase: ContainerPhase::Creating,
            since: now,
            restarts: 0,
            last: None,
            pause: Duration::ZERO,
        }
    }

    /// What the containers are doing.
    #[must_use]
    pub fn phase(&self) -> ContainerPhase {
        self.phase
    }

    /// When that began; for running, when the run began.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// How long the containers take to stop.
    #[must_use]
    pub fn stop(&self) -> Duration {
        self.script.stop
    }

    /// When the next stage begins by itself.
    #[must_use]
    pub fn next_transition(&self) -> Option<Instant> {
        let script = &self.script;
        match self.phase {
            ContainerPhase::Creating => Some(self.since.plus(script.start)),
            ContainerPhase::NoImage { .. } | ContainerPhase::BackOff => Some(self.since.plus(self.pause)),
            ContainerPhase::Running { ready } => {
                let end = script.end.map(|end| end.after);
                let ready_at = script.ready;
                let falter = ready_at
                    .zip(script.falter)
                    .map(|(ready, falter)| ready.saturating_add(falter));
                let turn = if ready {
                    falter
                } else {
                    ready_at.filter(|_| !self.faltered())
                };
                end.into_iter()
                    .chain(turn)
                    .min()
                    .map(|after| self.since.plus(after))
            }
            ContainerPhase::Ended(_) => None,
        }
    }

    /// Whether this run has lost its readiness for good: it was ready, and is not.
    fn faltered(&self) -> bool {
        self.pause == Duration::MAX
    }

    /// Goes through everything that is due; says whether the stage changed.
    pub fn advance_to(&mut self, now: Instant) -> bool {
        let mut changed = false;
        while let Some(at) = self.next_transition().filter(|at| *at <= now) {
            self.turn(at);
            changed = true;
        }
        changed
    }

    /// Enters the next stage at `at`.
    fn turn(&mut self, at: Instant) {
        match self.phase {
            ContainerPhase::Creating if self.script.no_image => self.lack_image(at, false),
            ContainerPhase::NoImage { pausing } => self.lack_image(at, !pausing),
            ContainerPhase::Creating => self.run(at),
            ContainerPhase::BackOff => {
                self.restarts = self.restarts.saturating_add(1);
                self.run(at);
            }
            ContainerPhase::Running { ready } => {
                let end = self.script.end.filter(|end| self.since.plus(end.after) <= at);
                if let Some(end) = end {
                    self.end(at, end.exit_code);
                    return;
                }
                if ready {
                    self.pause = Duration::MAX;
                }
                self.phase = ContainerPhase::Running { ready: !ready };
            }
            ContainerPhase::Ended(_) => {}
        }
    }

    fn run(&mut self, at: Instant) {
        self.since = at;
        self.phase = ContainerPhase::Running { ready: false };
    }

    fn lack_image(&mut self, at: Instant, pausing: bool) {
        self.since = at;
        self.phase = ContainerPhase::NoImage { pausing };
        // The error shows for a moment, the pause doubles.
        self.pause = if pausing {
            self.restarts = self.restarts.saturating_add(1);
            grown(FIRST_PAUSE, self.restarts)
        } else {
            Duration::from_secs(1)
        };
    }

    fn end(&mut self, at: Instant, exit_code: i32) {
        let stopped = CompletedRun {
            started: self.since,
            finished: at,
            exit_code,
        };
        let again = match self.restart {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => exit_code != 0,
            RestartPolicy::Never => false,
        };
        if !again {
            self.phase = ContainerPhase::Ended(stopped);
            self.since = at;
            return;
        }
        let reliable = at.since(self.since) >= RELIABLE;
        self.pause = match self.pause {
            Duration::ZERO | Duration::MAX => FIRST_PAUSE,
            _ if reliable => FIRST_PAUSE,
            pause => (pause * 2).min(LONGEST_PAUSE),
        };
        self.last = Some(stopped);
        self.phase = ContainerPhase::BackOff;
        self.since = at;
    }

    /// Where a real process stands behind the pod: a probe found it ready, or not any more.
    pub fn set_ready(&mut self, ready: bool) {
        if let ContainerPhase::Running { ready: shown } = &mut self.phase {
            *shown = ready;
        }
    }

    /// Where a real process stands behind the pod: it ended.
    pub fn exit(&mut self, at: Instant, exit_code: i32) {
        if matches!(self.phase, ContainerPhase::Running { .. }) {
            self.end(at, exit_code);
        }
    }

    /// How often pulling failed shows as restarts of nothing.
    #[must_use]
    pub fn shown_restarts(&self) -> u32 {
        match self.phase {
            ContainerPhase::NoImage { .. } => 0,
            _ => self.restarts,
        }
    }
}

fn grown(first: Duration, times: u32) -> Duration {
    let factor = 1_u32 << times.saturating_sub(1).min(10);
    first.saturating_mul(factor).min(LONGEST_PAUSE)
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
                ContainerPhase::NoImage { pausing } => format!("no image, pausing {pausing}"),
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
    fn a_pod_gets_ready_and_stays_so() {
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
    fn crashes_are_spaced_further_and_further() {
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
    fn a_missing_image_is_asked_for_again() {
        check(
            Script::image_pull_error(),
            RestartPolicy::Always,
            &[
                (0, "no image, pausing false"),
                (1, "no image, pausing true"),
                (11, "no image, pausing false"),
                (12, "no image, pausing true"),
                (32, "no image, pausing false"),
            ],
        );
    }
}
