//! A Deployment's rolling update as arithmetic: takes how many pods are old, new and available, gives how many come and go. No pods, no
//! time: what is available is told.

/// What a rollout is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// How many pods are wanted.
    pub(super) want: u32,
    /// How many more there may be.
    pub(super) surge: u32,
    /// How many fewer may be available.
    pub(super) unavailable: u32,
}

/// How many pods there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Crew {
    pub(super) old: u32,
    pub(super) old_available: u32,
    pub(super) new: u32,
    pub(super) new_available: u32,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many new pods come.
    Grow(u32),
    /// So many old pods go: first those that are not available.
    Shrink {
        /// Not available.
        broken: u32,
        /// Available.
        healthy: u32,
    },
    /// Nothing, until something becomes available.
    Wait,
}

/// The next step: up as far as the surge allows, then down as far as availability allows.
pub(super) fn next(rules: &Rules, crew: &Crew) -> Step {
    let most = rules.want.saturating_add(rules.surge);
    let room = most.saturating_sub(crew.old.saturating_add(crew.new));
    let grow = room.min(rules.want.saturating_sub(crew.new));
    if grow > 0 {
        return Step::Grow(grow);
    }
    shrink(rules, crew)
}

fn shrink(rules: &Rules, crew: &Crew) -> Step {
    let least = rules.want.saturating_sub(rules.unavailable);
    let waiting = crew.new.saturating_sub(crew.new_available);
    let total = crew.old.saturating_add(crew.new);
    let most = total.saturating_sub(least).saturating_sub(waiting);
    if crew.old == 0 || most == 0 {
        return Step::Wait;
    }
    let broken = most.min(crew.old.saturating_sub(crew.old_available));
    let available = crew.old_available.saturating_add(crew.new_available);
    let left = crew.old.saturating_sub(broken);
    let healthy = available.saturating_sub(least).min(left);
    if broken + healthy == 0 {
        return Step::Wait;
    }
    Step::Shrink { broken, healthy }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a rollout in which whatever is new becomes available after every wait; gives sizes as `old+new`.
    fn play(want: u32, surge: u32, unavailable: u32) -> String {
        let rules = Rules {
            want,
            surge,
            unavailable,
        };
        let mut crew = Crew {
            old: want,
            old_available: want,
            ..Crew::default()
        };
        let mut shown = vec![format!("{}+0", crew.old)];
        for _ in 0..50 {
            match next(&rules, &crew) {
                Step::Grow(more) => crew.new += more,
                Step::Shrink { broken, healthy } => {
                    crew.old -= broken + healthy;
                    crew.old_available -= healthy;
                }
                Step::Wait if crew.new_available < crew.new => {
                    crew.new_available = crew.new;
                    shown.push(format!("{}+{}", crew.old, crew.new));
                }
                Step::Wait => break,
            }
        }
        shown.join(" ")
    }

    #[test]
    fn rollouts_go_as_far_as_their_bounds_allow() {
        assert_eq!(play(1, 1, 0), "1+0 1+1");
        assert_eq!(play(4, 1, 1), "4+0 3+2 1+4");
        assert_eq!(play(2, 0, 1), "2+0 1+1 0+2");
        assert_eq!(play(3, 3, 0), "3+0 3+3");
        assert_eq!(play(0, 1, 0), "0+0");
    }

    #[test]
    fn what_is_broken_goes_first_and_nothing_goes_below_the_least() {
        let rules = Rules {
            want: 3,
            surge: 1,
            unavailable: 0,
        };
        let crew = |old_available, new, new_available| Crew {
            old: 3,
            old_available,
            new,
            new_available,
        };
        assert_eq!(next(&rules, &crew(3, 1, 0)), Step::Wait);
        assert_eq!(
            next(&rules, &crew(3, 1, 1)),
            Step::Shrink {
                broken: 0,
                healthy: 1
            }
        );
        assert_eq!(
            next(&rules, &crew(2, 1, 1)),
            Step::Shrink {
                broken: 1,
                healthy: 0
            }
        );
        assert_eq!(next(&rules, &crew(0, 1, 0)), Step::Wait);
    }
}
