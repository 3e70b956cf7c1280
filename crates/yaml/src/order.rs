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
            merge_sort(items, &|a, b| self.before(key(a), key(b)));
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

/// A merge sort: safe with any `before`, stable, n log n.
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

/// Puts the item `order[i]` at `i`, for every `i`.
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

/// Go's `keyList.Less` for strings; `digits` adds v3's rule that a letter after equal digits comes first.
fn natural_before(a: &[u8], b: &[u8], digits: bool) -> bool {
    if a.is_ascii() && b.is_ascii() {
        let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        return match (a.get(same), b.get(same)) {
            (Some(x), Some(y)) if x.is_ascii_alphabetic() && y.is_ascii_alphabetic() => x < y,
            (Some(_), Some(_)) => differ_at(&widen(a), &widen(b), same, digits),
            _ => a.len() < b.len(),
        };
    }
    let (a, b) = (runes(a), runes(b));
    let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    if same == a.len().min(b.len()) {
        return a.len() < b.len();
    }
    differ_at(&a, &b, same, digits)
}

/// Decides between two keys whose first difference is at `at`.
fn differ_at(a: &[char], b: &[char], at: usize, digits: bool) -> bool {
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
    // A zero after other digits is no leading zero: both numbers get a digit before it.
    let inner_zero = (x == '0' || y == '0')
        && a.iter()
            .take(at)
            .rev()
            .take_while(|c| is_digit(**c))
            .any(|c| *c != '0');
    let start = i64::from(inner_zero);
    let (x_number, x_len) = digits_from(a, at, start);
    let (y_number, y_len) = digits_from(b, at, start);
    if x_number != y_number {
        x_number < y_number
    } else if x_len != y_len {
        x_len < y_len
    } else {
        x < y
    }
}

fn digits_from(text: &[char], at: usize, start: i64) -> (i64, usize) {
    let run = text.iter().skip(at).take_while(|c| is_digit(**c));
    run.fold((start, 0), |(number, len), c| {
        let digit = i64::from(*c as u32) - i64::from(b'0');
        (number.wrapping_mul(10).wrapping_add(digit), len + 1)
    })
}

fn widen(ascii: &[u8]) -> Vec<char> {
    ascii.iter().map(|byte| char::from(*byte)).collect()
}

/// The characters of `text`; each byte that is no UTF-8 counts as one U+FFFD.
fn runes(text: &[u8]) -> Vec<char> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (valid, bad) = match std::str::from_utf8(rest) {
            Ok(_) => (rest, &[][..]),
            Err(error) => rest.split_at(error.valid_up_to()),
        };
        out.extend(std::str::from_utf8(valid).unwrap_or_default().chars());
        let Some((_, after)) = bad.split_first() else {
            break;
        };
        out.push(char::REPLACEMENT_CHARACTER);
        rest = after;
    }
    out
}

/// Go's `unicode.IsLetter`: of the alphabetic characters those of category L.
fn is_letter(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    c.is_alphabetic() && !c.is_numeric()
}

/// Go's `unicode.IsDigit`: category Nd, whose characters come in tens.
fn is_digit(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    let code = c as u32;
    c.is_numeric()
        && DIGITS
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&code))
}

/// Category Nd beyond ASCII, as in Go 1.26's tables.
const DIGITS: &[(u32, u32)] = &[
    (0x660, 0x669),
    (0x6F0, 0x6F9),
    (0x7C0, 0x7C9),
    (0x966, 0x96F),
    (0x9E6, 0x9EF),
    (0xA66, 0xA6F),
    (0xAE6, 0xAEF),
    (0xB66, 0xB6F),
    (0xBE6, 0xBEF),
    (0xC66, 0xC6F),
    (0xCE6, 0xCEF),
    (0xD66, 0xD6F),
    (0xDE6, 0xDEF),
    (0xE50, 0xE59),
    (0xED0, 0xED9),
    (0xF20, 0xF29),
    (0x1040, 0x1049),
    (0x1090, 0x1099),
    (0x17E0, 0x17E9),
    (0x1810, 0x1819),
    (0x1946, 0x194F),
    (0x19D0, 0x19D9),
    (0x1A80, 0x1A89),
    (0x1A90, 0x1A99),
    (0x1B50, 0x1B59),
    (0x1BB0, 0x1BB9),
    (0x1C40, 0x1C49),
    (0x1C50, 0x1C59),
    (0xA620, 0xA629),
    (0xA8D0, 0xA8D9),
    (0xA900, 0xA909),
    (0xA9D0, 0xA9D9),
    (0xA9F0, 0xA9F9),
    (0xAA50, 0xAA59),
    (0xABF0, 0xABF9),
    (0xFF10, 0xFF19),
    (0x1_04A0, 0x1_04A9),
    (0x1_0D30, 0x1_0D39),
    (0x1_1066, 0x1_106F),
    (0x1_10F0, 0x1_10F9),
    (0x1_1136, 0x1_113F),
    (0x1_11D0, 0x1_11D9),
    (0x1_12F0, 0x1_12F9),
    (0x1_1450, 0x1_1459),
    (0x1_14D0, 0x1_14D9),
    (0x1_1650, 0x1_1659),
    (0x1_16C0, 0x1_16C9),
    (0x1_1730, 0x1_1739),
    (0x1_18E0, 0x1_18E9),
    (0x1_1950, 0x1_1959),
    (0x1_1C50, 0x1_1C59),
    (0x1_1D50, 0x1_1D59),
    (0x1_1DA0, 0x1_1DA9),
    (0x1_1F50, 0x1_1F59),
    (0x1_6A60, 0x1_6A69),
    (0x1_6AC0, 0x1_6AC9),
    (0x1_6B50, 0x1_6B59),
    (0x1_D7CE, 0x1_D7FF),
    (0x1_E140, 0x1_E149),
    (0x1_E2F0, 0x1_E2F9),
    (0x1_E4F0, 0x1_E4F9),
    (0x1_E950, 0x1_E959),
    (0x1_FBF0, 0x1_FBF9),
];

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
    fn numbers_count_as_numbers() {
        check(KeyOrder::Natural, "-a .a 1 2 10 A B a a1 a2 a10 a10b b");
        check(KeyOrder::Natural, "a1 a01 a2");
        check(KeyOrder::Bytes, "1 10 2 A a a1 a10 a2");
    }

    #[test]
    fn v3_puts_letters_after_digits_first() {
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
