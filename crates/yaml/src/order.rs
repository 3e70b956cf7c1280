//! Orders in which Go's writers sort map keys.

use std::cmp::Ordering;

use mainstay_gostd::unicode::{is_digit, is_letter};
use mainstay_gostd::utf8;

use crate::KeyOrder;

impl KeyOrder {
    /// Whether `a` sorts before `b`.
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
    /// The natural orders are not total (`2` < `10` < `1a` < `2`), in which case the standard sort may
    /// panic. For such keys, the result of Go depends on its random map order, and the result of this
    /// function on the original order.
    pub fn sort<T>(self, items: &mut [T], key: impl Fn(&T) -> &[u8]) {
        if self == Self::Bytes {
            items.sort_by(|a, b| key(a).cmp(key(b)));
        } else if !items.is_sorted_by(|a, b| !self.before(key(b), key(a))) {
            merge_sort(items, &|a, b| self.before(key(a), key(b)));
        }
    }
}

/// Compares keys in the order of go-yaml v2, which compares digits as numbers. Returns `Greater` if that
/// order is undefined.
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

/// Merge sort: stable, O(n log n), and safe with any `before`.
fn merge_sort<T>(items: &mut [T], before: &dyn Fn(&T, &T) -> bool) {
    let mut order: Vec<usize> = (0..items.len()).collect();
    let mut merged = Vec::with_capacity(order.len());
    let mut run = 1;
    while run < order.len() {
        merged.clear();
        for pair in order.chunks(run * 2) {
            let (left, right) = pair.split_at(run.min(pair.len()));
            merge(items, left, right, before, &mut merged);
        }
        std::mem::swap(&mut order, &mut merged);
        run *= 2;
    }
    permute(items, order);
}

fn merge<T>(
    items: &[T],
    left: &[usize],
    right: &[usize],
    before: &dyn Fn(&T, &T) -> bool,
    out: &mut Vec<usize>,
) {
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    while let (Some(&&l), Some(&&r)) = (left.peek(), right.peek()) {
        let swap = matches!((items.get(l), items.get(r)), (Some(l), Some(r)) if before(r, l));
        out.extend(if swap { right.next() } else { left.next() });
    }
    out.extend(left);
    out.extend(right);
}

/// Moves item `order[i]` to position `i`, for every `i`.
fn permute<T>(items: &mut [T], mut order: Vec<usize>) {
    for start in 0..order.len() {
        let mut at = start;
        while let Some(slot) = order.get_mut(at) {
            let from = std::mem::replace(slot, at);
            if from == start || from == at {
                break;
            }
            items.swap(at, from);
            at = from;
        }
    }
}

/// Compares keys as Go's `keyList.Less` for strings. `digits` enables v3's rule that a letter after equal
/// digits sorts first.
fn natural_before(a: &[u8], b: &[u8], digits: bool) -> bool {
    if a.is_ascii() && b.is_ascii() {
        let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        return match (a.get(same), b.get(same)) {
            (Some(x), Some(y)) if x.is_ascii_alphabetic() && y.is_ascii_alphabetic() => x < y,
            (Some(_), Some(_)) => is_before_at(&to_chars(a), &to_chars(b), same, digits),
            _ => a.len() < b.len(),
        };
    }
    let runes = |text| utf8::runes(text).map(|(rune, _)| rune).collect::<Vec<_>>();
    let (a, b) = (runes(a), runes(b));
    let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    if same == a.len().min(b.len()) {
        return a.len() < b.len();
    }
    is_before_at(&a, &b, same, digits)
}

/// Compares two keys at their first difference, `at`.
fn is_before_at(a: &[char], b: &[char], at: usize, digits: bool) -> bool {
    let (Some(&x), Some(&y)) = (a.get(at), b.get(at)) else {
        return a.len() < b.len();
    };
    match (is_letter(x), is_letter(y)) {
        (true, true) => return x < y,
        (false, false) => {}
        (x_letter, y_letter) => {
            let after_digit = digits && at > 0 && a.get(at - 1).is_some_and(|c| is_digit(*c));
            return if after_digit { x_letter } else { y_letter };
        }
    }
    // A zero after other digits is not a leading zero: both numbers are extended by a digit before it.
    let inner_zero = (x == '0' || y == '0')
        && a.iter()
            .take(at)
            .rev()
            .take_while(|c| is_digit(**c))
            .any(|c| *c != '0');
    let start = i64::from(inner_zero);
    let (x_number, x_len) = parse_digits(a, at, start);
    let (y_number, y_len) = parse_digits(b, at, start);
    if x_number != y_number {
        x_number < y_number
    } else if x_len != y_len {
        x_len < y_len
    } else {
        x < y
    }
}

fn parse_digits(text: &[char], at: usize, start: i64) -> (i64, usize) {
    let run = text.iter().skip(at).take_while(|c| is_digit(**c));
    run.fold((start, 0), |(number, len), c| {
        let digit = i64::from(*c as u32) - i64::from(b'0');
        (number.wrapping_mul(10).wrapping_add(digit), len + 1)
    })
}

fn to_chars(ascii: &[u8]) -> Vec<char> {
    ascii.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(order: KeyOrder, keys: &str) {
        let expected: Vec<&str> = keys.split(' ').collect();
        let mut sorted = expected.clone();
        sorted.reverse();
        order.sort(&mut sorted, |key| key.as_bytes());
        assert_eq!(sorted, expected);
    }

    #[test]
    fn digits_compare_as_numbers() {
        check(KeyOrder::Natural, "-a .a 1 2 10 A B a a1 a2 a10 a10b b");
        check(KeyOrder::Natural, "a1 a01 a2");
        check(KeyOrder::Bytes, "1 10 2 A a a1 a10 a2");
    }

    #[test]
    fn v3_sorts_a_letter_after_equal_digits_first() {
        check(KeyOrder::Natural, "10 1a");
        check(KeyOrder::NaturalDigits, "1a 10");
    }

    #[test]
    fn keys_without_a_total_order_do_not_panic() {
        let mut keys: Vec<String> = (0..2000)
            .map(|n| format!("{}{}", n % 13, ["", "a", "0"][n % 3]))
            .collect();
        KeyOrder::Natural.sort(&mut keys, |key| key.as_bytes());
        assert_eq!(keys.len(), 2000);
    }
}
