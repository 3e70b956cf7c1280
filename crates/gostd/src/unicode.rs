//! Character classes and simple case mappings of Unicode 15.0.0, the version of Go 1.26; Rust's tables are
//! newer.
//!
//! The class functions accept any code point, because Go runes may be surrogates or out of range.

// The tables have a dense layout.
#[rustfmt::skip]
#[allow(clippy::unreadable_literal)]
mod tables;

use std::cmp::Ordering;

use tables::{ALTERNATE, CASES};

/// Whether `rune` is printable (`strconv.IsPrint`, which equals `unicode.IsPrint`).
#[inline]
#[must_use]
pub fn is_print(rune: impl Into<u32>) -> bool {
    match rune.into() {
        code @ ..0x80 => (0x20..0x7f).contains(&code),
        code => in_ranges(tables::PRINT, code),
    }
}

/// Whether `rune` is a letter: category L (`unicode.IsLetter`).
#[inline]
#[must_use]
pub fn is_letter(rune: impl Into<u32>) -> bool {
    match rune.into() {
        code @ ..0x80 => (code as u8).is_ascii_alphabetic(),
        code => in_ranges(tables::LETTER, code),
    }
}

/// Whether `rune` is a decimal digit: category Nd (`unicode.IsDigit`).
#[inline]
#[must_use]
pub fn is_digit(rune: impl Into<u32>) -> bool {
    match rune.into() {
        code @ ..0x80 => (code as u8).is_ascii_digit(),
        code => in_ranges(tables::DIGIT, code),
    }
}

/// Whether `rune` is a number: category N (`unicode.IsNumber`).
#[must_use]
pub fn is_number(rune: char) -> bool {
    in_steps(tables::NUMBER, rune)
}

/// Whether `rune` is an upper case letter (`unicode.IsUpper`).
#[must_use]
pub fn is_upper(rune: char) -> bool {
    if rune.is_ascii() {
        rune.is_ascii_uppercase()
    } else {
        in_steps(tables::UPPER, rune)
    }
}

/// Whether `rune` is a lower case letter (`unicode.IsLower`).
#[must_use]
pub fn is_lower(rune: char) -> bool {
    if rune.is_ascii() {
        rune.is_ascii_lowercase()
    } else {
        in_steps(tables::LOWER, rune)
    }
}

/// Whether `rune` is a title case letter (`unicode.IsTitle`).
#[must_use]
pub fn is_title(rune: char) -> bool {
    in_steps(tables::TITLE, rune)
}

/// Whether `rune` is punctuation: category P (`unicode.IsPunct`).
#[must_use]
pub fn is_punct(rune: char) -> bool {
    in_steps(tables::PUNCT, rune)
}

/// Whether `rune` is white space (`unicode.IsSpace`).
#[must_use]
pub fn is_space(rune: char) -> bool {
    match rune {
        '\t'..='\r' | ' ' => true,
        _ if rune.is_ascii() => false,
        _ => in_steps(tables::SPACE, rune),
    }
}

/// Maps `rune` to upper case (`unicode.ToUpper`).
#[must_use]
pub fn to_upper(rune: char) -> char {
    if rune.is_ascii() {
        rune.to_ascii_uppercase()
    } else {
        to_case(rune, 0)
    }
}

/// Maps `rune` to lower case (`unicode.ToLower`).
#[must_use]
pub fn to_lower(rune: char) -> char {
    if rune.is_ascii() {
        rune.to_ascii_lowercase()
    } else {
        to_case(rune, 1)
    }
}

/// Maps `rune` to title case (`unicode.ToTitle`).
#[must_use]
pub fn to_title(rune: char) -> char {
    if rune.is_ascii() {
        rune.to_ascii_uppercase()
    } else {
        to_case(rune, 2)
    }
}

/// Applies column `case` of the case table: 0 upper, 1 lower, 2 title.
fn to_case(rune: char, case: u32) -> char {
    let code = u32::from(rune);
    let row = CASES.binary_search_by(|&(first, last, _)| compare_range(first, last, code));
    let Some(&(first, _, deltas)) = row.ok().and_then(|row| CASES.get(row)) else {
        return rune;
    };
    let Some(&delta) = deltas.get(case as usize) else {
        return rune;
    };
    let changed = if delta == ALTERNATE {
        first + ((code - first) & !1 | case & 1)
    } else {
        code.wrapping_add_signed(delta)
    };
    char::from_u32(changed).unwrap_or(rune)
}

fn in_ranges(table: &[(u32, u32)], code: u32) -> bool {
    table
        .binary_search_by(|&(first, last)| compare_range(first, last, code))
        .is_ok()
}

fn in_steps(table: &[(u32, u32, u32)], rune: char) -> bool {
    let code = u32::from(rune);
    let row = table.binary_search_by(|&(first, last, _)| compare_range(first, last, code));
    row.ok()
        .and_then(|row| table.get(row))
        .is_some_and(|&(first, _, step)| (code - first).is_multiple_of(step))
}

fn compare_range(first: u32, last: u32, code: u32) -> Ordering {
    if last < code {
        Ordering::Less
    } else if first > code {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_newer_than_unicode_15_are_not_printable() {
        assert!(!is_print('\u{2FFC}'));
        assert!(!is_print('\u{1C89}'));
        assert!(!is_letter('\u{1C89}'));
    }

    #[test]
    fn ascii_space_is_the_only_printable_space() {
        assert!(is_print(' '));
        assert!(!is_print('\u{A0}'));
        assert!(!is_print('\u{AD}'));
        assert!(is_print('\u{301}'));
        assert!(!is_print(0xD800_u32));
        assert!(!is_print(0x0011_0000_u32));
    }

    #[test]
    fn case_mappings_return_single_runes() {
        assert_eq!(to_upper('ß'), 'ß');
        assert_eq!(to_upper('ǆ'), 'Ǆ');
        assert_eq!(to_title('ǆ'), 'ǅ');
        assert_eq!(to_lower('Ā'), 'ā');
    }
}
