//! Sizes of the `ReplicaSets` of a Deployment.

use serde_json::Value;

use super::super::int_or_percent;
use crate::tree;

/// Returns maximum surge and maximum unavailability as numbers of pods.
pub(super) fn surge_and_unavailable(deployment: &Value) -> (i64, i64) {
    let field = |name| tree::get(deployment, &["spec", "strategy", "rollingUpdate", name]);
    let replicas = tree::int(deployment, &["spec", "replicas"]).unwrap_or(1);
    int_or_percent::resolve_fenceposts(field("maxSurge"), field("maxUnavailable"), replicas)
}

/// Returns the new size of the new set, given its current size and the sum of the replicas of all sets.
pub(super) fn new_size(deployment: &Value, total: i64, current: i64, surge: i64) -> i64 {
    let replicas = tree::int(deployment, &["spec", "replicas"]).unwrap_or(1);
    if tree::text(deployment, &["spec", "strategy", "type"]) == "Recreate" {
        return replicas;
    }
    size_within_surge(replicas, surge, total, current)
}

fn size_within_surge(replicas: i64, surge: i64, total: i64, current: i64) -> i64 {
    let max_total = replicas + surge;
    if total >= max_total {
        return current;
    }
    current + (max_total - total).min(replicas - current)
}

/// Size of a set that is scaled during a rollout.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetSize {
    pub(super) replicas: i64,
    /// Maximum number of pods of the Deployment when the set was last scaled.
    pub(super) max_total: Option<i64>,
    /// Creation time in seconds.
    pub(super) created: i64,
}

/// Returns the new sizes of the sets with their positions. The difference to the desired size is
/// distributed in proportion to the current sizes. `known` is the number of pods in the status of the
/// Deployment.
pub(super) fn proportional_sizes(
    replicas: i64,
    surge: i64,
    known: i64,
    sets: &[SetSize],
) -> Vec<(usize, i64)> {
    let total: i64 = sets.iter().map(|set| set.replicas).sum();
    let allowed = if replicas > 0 { replicas + surge } else { 0 };
    let difference = allowed - total;
    let mut order: Vec<(usize, &SetSize)> = sets
        .iter()
        .enumerate()
        .filter(|(_, set)| set.replicas > 0)
        .collect();
    // Larger sets first. Of sets of the same size, the newer first to scale up, the older first to scale
    // down.
    order.sort_by_key(|(_, set)| {
        let age = if difference > 0 { -set.created } else { set.created };
        (-set.replicas, age)
    });
    let mut distributed = 0;
    let mut plan = Vec::with_capacity(order.len());
    for (at, set) in order {
        let part = if difference == 0 || distributed == difference {
            0
        } else {
            let part = size_difference(replicas, surge, known, set);
            if difference > 0 {
                part.min(difference - distributed)
            } else {
                part.max(difference - distributed)
            }
        };
        distributed += part;
        plan.push((at, set.replicas + part));
    }
    if difference != 0
        && let Some((_, size)) = plan.first_mut()
    {
        *size = (*size + difference - distributed).max(0);
    }
    plan
}

/// Returns the difference to the size of the set in proportion to the new total.
fn size_difference(replicas: i64, surge: i64, known: i64, set: &SetSize) -> i64 {
    if replicas == 0 {
        return -set.replicas;
    }
    let before = set.max_total.filter(|before| *before != 0).unwrap_or(known);
    if before == 0 {
        return 0;
    }
    int_or_percent::ratio(set.replicas, replicas + surge, before) - set.replicas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_set_is_scaled_up_within_the_surge() {
        let table = [
            (10, 3, 10, 0, 3),
            (10, 3, 13, 3, 3),
            (10, 3, 11, 3, 5),
            (10, 0, 10, 0, 0),
            (3, 5, 3, 0, 3),
            (1, 1, 1, 0, 1),
        ];
        for (replicas, surge, total, current, expected) in table {
            assert_eq!(
                size_within_surge(replicas, surge, total, current),
                expected,
                "{replicas}+{surge}, {current} of {total}"
            );
        }
    }

    fn check(replicas: i64, surge: i64, before: i64, sizes: &[i64], expected: &[i64]) {
        let sets: Vec<SetSize> = sizes
            .iter()
            .zip(0..)
            .map(|(size, created)| SetSize {
                replicas: *size,
                max_total: Some(before),
                created,
            })
            .collect();
        let mut plan = proportional_sizes(replicas, surge, 0, &sets);
        plan.sort_unstable();
        let plan: Vec<i64> = plan.into_iter().map(|(_, size)| size).collect();
        assert_eq!(plan, expected, "{sizes:?} to {replicas}+{surge}");
    }

    #[test]
    fn scaling_during_a_rollout_is_proportional() {
        // The example of the Kubernetes documentation: 10 replicas, surge 3, 8 old and 5 new pods, scaled to
        // 15.
        check(15, 3, 13, &[8, 5], &[11, 7]);
        check(5, 0, 10, &[5, 5], &[2, 3]);
        check(0, 3, 13, &[8, 5], &[0, 0]);
        check(10, 0, 10, &[5, 5], &[5, 5]);
        check(13, 0, 10, &[5, 5], &[6, 7]);
    }
}
