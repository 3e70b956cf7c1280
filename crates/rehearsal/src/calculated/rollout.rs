//! Arithmetic of a Deployment's rolling update: computes the numbers of pods to create and to stop from the
//! numbers of pods by state.

/// Limits of a rolling update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RolloutLimits {
    /// Desired number of pods.
    pub(super) desired: u32,
    /// Maximum number of additional pods.
    pub(super) surge: u32,
    /// Maximum number of unavailable pods.
    pub(super) unavailable: u32,
}

/// Number of pods by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PodCounts {
    pub(super) old: u32,
    pub(super) old_available: u32,
    pub(super) new: u32,
    pub(super) new_available: u32,
}

/// Next step of a rolling update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Create this many new pods.
    Grow(u32),
    /// Stop old pods, unavailable ones first.
    Shrink {
        /// Unavailable pods to stop.
        broken: u32,
        /// Available pods to stop.
        healthy: u32,
    },
    /// Wait until a pod becomes available.
    Wait,
}

/// Returns the next step: creates new pods as far as the surge allows, then stops old pods as far as
/// availability allows.
pub(super) fn next_step(rules: &RolloutLimits, pods: &PodCounts) -> Step {
    let max = rules.desired.saturating_add(rules.surge);
    let capacity = max.saturating_sub(pods.old.saturating_add(pods.new));
    let grow = capacity.min(rules.desired.saturating_sub(pods.new));
    if grow > 0 {
        return Step::Grow(grow);
    }
    shrink(rules, pods)
}

fn shrink(rules: &RolloutLimits, pods: &PodCounts) -> Step {
    let least = rules.desired.saturating_sub(rules.unavailable);
    let waiting = pods.new.saturating_sub(pods.new_available);
    let total = pods.old.saturating_add(pods.new);
    let max = total.saturating_sub(least).saturating_sub(waiting);
    if pods.old == 0 || max == 0 {
        return Step::Wait;
    }
    let broken = max.min(pods.old.saturating_sub(pods.old_available));
    let available = pods.old_available.saturating_add(pods.new_available);
    let left = pods.old.saturating_sub(broken);
    let healthy = available.saturating_sub(least).min(left);
    if broken + healthy == 0 {
        return Step::Wait;
    }
    Step::Shrink { broken, healthy }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a rollout in which all new pods become available after every wait. Returns the numbers of pods
    /// as `old+new`.
    fn rollout(desired: u32, surge: u32, unavailable: u32) -> String {
        let rules = RolloutLimits {
            desired,
            surge,
            unavailable,
        };
        let mut pods = PodCounts {
            old: desired,
            old_available: desired,
            ..PodCounts::default()
        };
        let mut shown = vec![format!("{}+0", pods.old)];
        for _ in 0..50 {
            match next_step(&rules, &pods) {
                Step::Grow(more) => pods.new += more,
                Step::Shrink { broken, healthy } => {
                    pods.old -= broken + healthy;
                    pods.old_available -= healthy;
                }
                Step::Wait if pods.new_available < pods.new => {
                    pods.new_available = pods.new;
                    shown.push(format!("{}+{}", pods.old, pods.new));
                }
                Step::Wait => break,
            }
        }
        shown.join(" ")
    }

    #[test]
    fn rollouts_respect_surge_and_unavailable_limits() {
        assert_eq!(rollout(1, 1, 0), "1+0 1+1");
        assert_eq!(rollout(4, 1, 1), "4+0 3+2 1+4");
        assert_eq!(rollout(2, 0, 1), "2+0 1+1 0+2");
        assert_eq!(rollout(3, 3, 0), "3+0 3+3");
        assert_eq!(rollout(0, 1, 0), "0+0");
    }

    #[test]
    fn unavailable_pods_are_stopped_first_and_the_minimum_is_kept() {
        let rules = RolloutLimits {
            desired: 3,
            surge: 1,
            unavailable: 0,
        };
        let pods = |old_available, new, new_available| PodCounts {
            old: 3,
            old_available,
            new,
            new_available,
        };
        assert_eq!(next_step(&rules, &pods(3, 1, 0)), Step::Wait);
        assert_eq!(
            next_step(&rules, &pods(3, 1, 1)),
            Step::Shrink {
                broken: 0,
                healthy: 1
            }
        );
        assert_eq!(
            next_step(&rules, &pods(2, 1, 1)),
            Step::Shrink {
                broken: 1,
                healthy: 0
            }
        );
        assert_eq!(next_step(&rules, &pods(0, 1, 0)), Step::Wait);
    }
}
