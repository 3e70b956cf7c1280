//! Sizes of a Deployment's `ReplicaSets`, as pure functions.

use serde_json::Value;

use super::super::int_or_percent;
use crate::tree;

/// Returns maximum surge and unavailability in pods.
pub(super) fn bounds(deployment: &Value) -> (i64, i64) {
    let field = |name| tree::get(deployment, &["spec", "strategy", "rollingUpdate", name]);
    let replicas = tree::int(deployment, &["spec", "replicas"]).unwrap_or(1);
    int_or_percent::resolve_fenceposts(field("maxSurge"), field("maxUnavailable"), replicas)
}

/// Returns the size of the new set, given `total` pods in all sets.
pub(super) fn new_size(deployment: &Value, total: i64, have: i64, surge: i64) -> i64 {
    let replicas = tree::int(deployment, &["spec", "replicas"]).unwrap_or(1);
    if tree::text(deployment, &["spec", "strategy", "type"]) == "Recreate" {
        return replicas;
    }
    grown(replicas, surge, total, have)
}

fn grown(replicas: i64, surge: i64, total: i64, have: i64) -> i64 {
    let most = replicas + surge;
    if total >= most {
        return have;
    }
    have + (most - total).min(replicas - have)
}

/// A set of a Deployment that is scaled during a rollout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) size: i64,
    /// Maximum number of pods of the Deployment when the set was last sized.
    pub(super) most_before: Option<i64>,
    pub(super) created: i64,
}

/// Returns the new sizes of the sets, by position: the difference is distributed in proportion to their
/// sizes.
pub(super) fn proportional(replicas: i64, surge: i64, known: i64, sets: &[Share]) -> Vec<(usize, i64)> {
    let total: i64 = sets.iter().map(|set| set.size).sum();
    let allowed = if replicas > 0 { replicas + surge } else { 0 };
    let add = allowed - total;
    let mut order: Vec<(usize, &Share)> = sets.iter().enumerate().filter(|(_, set)| set.size > 0).collect();
    // Larger sets first; among equals, the newer when scaling up, the older when scaling down.
    order.sort_by_key(|(_, set)| {
        let age = if add > 0 { -set.created } else { set.created };
        (-set.size, age)
    });
    let mut added = 0;
    let mut plan = Vec::with_capacity(order.len());
    for (at, set) in order {
        let part = if add == 0 || added == add {
            0
        } else {
            let part = fraction(replicas, surge, known, set);
            if add > 0 {
                part.min(add - added)
            } else {
                part.max(add - added)
            }
        };
        added += part;
        plan.push((at, set.size + part));
    }
    if add != 0
        && let Some((_, size)) = plan.first_mut()
    {
        *size = (*size + add - added).max(0);
    }
    plan
}

fn fraction(replicas: i64, surge: i64, known: i64, set: &Share) -> i64 {
    if replicas == 0 {
        return -set.size;
    }
    let before = set.most_before.filter(|before| *before != 0).unwrap_or(known);
    if before == 0 {
        return 0;
    }
    int_or_percent::ratio(set.size, replicas + surge, before) - set.size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_set_grows_within_the_surge() {
        let table = [
            (10, 3, 10, 0, 3),
            (10, 3, 13, 3, 3),
            (10, 3, 11, 3, 5),
            (10, 0, 10, 0, 0),
            (3, 5, 3, 0, 3),
            (1, 1, 1, 0, 1),
        ];
        for (replicas, surge, total, have, expected) in table {
            assert_eq!(
                grown(replicas, surge, total, have),
                expected,
                "{replicas}+{surge}, {have} of {total}"
            );
        }
    }

    fn check(replicas: i64, surge: i64, before: i64, sizes: &[i64], expected: &[i64]) {
        let sets: Vec<Share> = sizes
            .iter()
            .zip(0..)
            .map(|(size, created)| Share {
                size: *size,
                most_before: Some(before),
                created,
            })
            .collect();
        let mut plan = proportional(replicas, surge, 0, &sets);
        plan.sort_unstable();
        let plan: Vec<i64> = plan.into_iter().map(|(_, size)| size).collect();
        assert_eq!(plan, expected, "{sizes:?} to {replicas}+{surge}");
    }

    #[test]
    fn scaling_within_a_rollout_is_spread_by_size() {
        // The example of the Kubernetes documentation: 10 replicas, surge 3, 8 old and 5 new pods, scaled to
        // 15.
        check(15, 3, 13, &[8, 5], &[11, 7]);
        check(5, 0, 10, &[5, 5], &[2, 3]);
        check(0, 3, 13, &[8, 5], &[0, 0]);
        check(10, 0, 10, &[5, 5], &[5, 5]);
        check(13, 0, 10, &[5, 5], &[6, 7]);
    }
}
