//! Divides replicas between clusters by the Sainte-Laguë (Webster) method.
//!
//! The method is monotone: if the total increases, no cluster loses a replica. The largest remainder
//! method, and rounding down and distributing the rest, do not have this property.

use std::cmp::Ordering;

/// A participant of a division.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Name of the cluster or revision. Breaks ties.
    pub name: String,
    /// Relative weight. A participant with weight 0 receives only its minimum.
    pub weight: u32,
    /// Minimum number of replicas, which is assigned before all others.
    pub min: u32,
    /// Maximum number of replicas.
    pub max: Option<u32>,
}

impl Share {
    /// Creates a share without a minimum and a maximum.
    #[must_use]
    pub fn new(name: impl Into<String>, weight: u32) -> Self {
        Self {
            name: name.into(),
            weight,
            min: 0,
            max: None,
        }
    }

    fn limit(&self) -> u32 {
        self.max.unwrap_or(u32::MAX)
    }
}

/// Divides `total` replicas in proportion to the weights and returns the number for each share, in order.
///
/// Minimums are assigned first, in order, as far as `total` allows. If all shares have reached their
/// maximum or have no weight, the rest of `total` is not assigned.
#[must_use]
pub fn divide(total: u32, shares: &[Share]) -> Vec<u32> {
    let minimums = assign_minimums(total, shares);
    if minimums.iter().sum::<u32>() == total {
        return minimums;
    }
    let mut assigned = assign_most(total, shares, &minimums);
    let rest = total - assigned.iter().sum::<u32>();
    for _ in 0..rest {
        let Some(next) = next_share(shares, &assigned) else {
            break;
        };
        if let Some(count) = assigned.get_mut(next) {
            *count += 1;
        }
    }
    assigned
}

fn assign_minimums(total: u32, shares: &[Share]) -> Vec<u32> {
    let mut rest = total;
    let minimum = |share: &Share| {
        let minimum = share.min.min(share.limit()).min(rest);
        rest -= minimum;
        minimum
    };
    shares.iter().map(minimum).collect()
}

/// Assigns all but a few replicas in one step, so that the cost does not grow with the total.
///
/// For a divisor `d`, each share receives `weight / d` replicas, rounded. The method's result for `total`
/// contains the result for every `d` whose sum does not exceed `total`. A binary search finds the smallest
/// such `d`.
fn assign_most(total: u32, shares: &[Share], minimums: &[u32]) -> Vec<u32> {
    /// Divisors are fixed-point numbers with this unit.
    const UNIT: u128 = 1 << 64;
    let assign = |divisor: u128| -> Vec<u32> {
        let count = |(share, minimum): (&Share, &u32)| {
            let rounded = (2 * u128::from(share.weight) * UNIT / divisor).div_ceil(2);
            let rounded = u32::try_from(rounded).unwrap_or(u32::MAX).min(total);
            rounded.min(share.limit()).max(*minimum)
        };
        shares.iter().zip(minimums).map(count).collect()
    };
    let fits = |counts: &[u32]| counts.iter().map(|count| u64::from(*count)).sum::<u64>() <= u64::from(total);
    let heaviest = shares.iter().map(|share| u128::from(share.weight)).max();
    let (mut low, mut high) = (1, 4 * UNIT * heaviest.unwrap_or_default().max(1));
    while low < high {
        let middle = low.midpoint(high);
        if fits(&assign(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    assign(low)
}

/// Returns the share with the highest quotient `weight / (2 * assigned + 1)`. Among equal quotients, the
/// share with fewer replicas is returned, then the one with the smaller name.
fn next_share(shares: &[Share], assigned: &[u32]) -> Option<usize> {
    let candidates = shares
        .iter()
        .zip(assigned)
        .enumerate()
        .filter(|(_, (share, count))| share.weight > 0 && **count < share.limit());
    candidates
        .max_by(|(_, left), (_, right)| compare(*left, *right))
        .map(|(index, _)| index)
}

fn compare(left: (&Share, &u32), right: (&Share, &u32)) -> Ordering {
    let ((left, left_count), (right, right_count)) = (left, right);
    let divisor = |count: u32| 2 * u128::from(count) + 1;
    let quotient = u128::from(left.weight) * divisor(*right_count);
    let other = u128::from(right.weight) * divisor(*left_count);
    quotient
        .cmp(&other)
        .then(right_count.cmp(left_count))
        .then_with(|| right.name.cmp(&left.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: &[u32]) -> Vec<Share> {
        let names = ('a'..='z').map(String::from);
        names
            .zip(weights)
            .map(|(name, weight)| Share::new(name, *weight))
            .collect()
    }

    fn check(total: u32, weights: &[u32], expected: &[u32]) {
        assert_eq!(
            divide(total, &shares(weights)),
            expected,
            "{total} over {weights:?}"
        );
    }

    #[test]
    fn totals_follow_the_weights() {
        check(0, &[1, 1], &[0, 0]);
        check(10, &[1, 1], &[5, 5]);
        // The tenth replica is a tie. It is assigned to the share with fewer replicas.
        check(10, &[3, 1], &[7, 3]);
        check(100, &[50, 20], &[71, 29]);
    }

    #[test]
    fn a_larger_total_never_reduces_a_share() {
        check(5, &[170, 110, 60], &[2, 2, 1]);
        check(6, &[170, 110, 60], &[3, 2, 1]);
        check(3, &[1, 3, 3], &[1, 1, 1]);
        check(4, &[1, 3, 3], &[1, 2, 1]);
    }

    #[test]
    fn cumulative_batches_have_the_prefix_property() {
        let caps = [5, 3, 2];
        let shares: Vec<Share> = shares(&caps)
            .into_iter()
            .zip(caps)
            .map(|(share, cap)| Share {
                max: Some(cap),
                ..share
            })
            .collect();
        let batches: Vec<Vec<u32>> = [1, 3, 5, 7, 10]
            .iter()
            .map(|total| divide(*total, &shares))
            .collect();
        assert_eq!(batches, [[1, 0, 0], [1, 1, 1], [2, 2, 1], [4, 2, 1], [5, 3, 2]]);
    }

    #[test]
    fn bounds_are_kept() {
        let share = |name: &str, weight, min, max| Share {
            name: name.into(),
            weight,
            min,
            max,
        };
        let bounded = [
            share("a", 1, 1, None),
            share("b", 100, 0, Some(3)),
            share("c", 0, 2, None),
        ];
        assert_eq!(divide(10, &bounded), [5, 3, 2]);
        assert_eq!(divide(2, &bounded), [1, 0, 1]);
        assert_eq!(divide(10, &[share("a", 0, 0, None)]), [0]);
    }

    #[test]
    fn large_totals_are_divided_in_few_steps() {
        let total = 4_000_000_000;
        assert_eq!(divide(total, &shares(&[1, 1])), [total / 2, total / 2]);
        let mut capped = shares(&[3, 1, 0]);
        capped[0].max = Some(7);
        assert_eq!(divide(total, &capped), [7, total - 7, 0]);
    }
}
