//! Formatting of integers in every base, as characters and as code points.

use super::Printer;
use mainstay_gostd::quote::{quote_rune, quote_rune_to_ascii};
use mainstay_gostd::unicode::is_print;
use mainstay_gostd::utf8;

/// An integer to be formatted.
#[derive(Clone, Copy)]
pub(super) struct Integer {
    pub(super) magnitude: u64,
    pub(super) negative: bool,
    pub(super) signed: bool,
}

impl Integer {
    pub(super) fn signed(value: i64) -> Self {
        Self {
            magnitude: value.unsigned_abs(),
            negative: value < 0,
            signed: true,
        }
    }

    pub(super) fn unsigned(value: u64) -> Self {
        Self {
            magnitude: value,
            negative: false,
            signed: false,
        }
    }

    /// Returns the 64 bits in two's complement, as in Go.
    fn bits(self) -> u64 {
        if self.negative {
            self.magnitude.wrapping_neg()
        } else {
            self.magnitude
        }
    }
}

impl Printer<'_> {
    /// Writes `whole`. Returns `false` if the verb does not apply to integers.
    pub(super) fn integer(&mut self, whole: Integer, verb: u32) -> bool {
        match u8::try_from(verb).unwrap_or(0) {
            b'v' if self.flags.sharp_v && !whole.signed => self.hexadecimal(whole.magnitude, true),
            b'v' | b'd' => self.write_digits(whole, 10, verb),
            b'b' => self.write_digits(whole, 2, verb),
            b'o' | b'O' => self.write_digits(whole, 8, verb),
            b'x' | b'X' => self.write_digits(whole, 16, verb),
            b'c' => self.write_character(whole.bits()),
            b'q' => self.write_quoted_character(whole.bits()),
            b'U' => self.write_code_point(whole.bits()),
            _ => return false,
        }
        true
    }

    /// Writes an address or byte in hexadecimal, optionally with a prefix.
    pub(super) fn hexadecimal(&mut self, value: u64, prefix: bool) {
        let sharp = std::mem::replace(&mut self.flags.sharp, prefix);
        self.write_digits(Integer::unsigned(value), 16, b'v'.into());
        self.flags.sharp = sharp;
    }

    fn write_digits(&mut self, whole: Integer, base: u8, verb: u32) {
        if self.flags.precision == Some(0) && whole.magnitude == 0 {
            let zero = std::mem::take(&mut self.flags.zero);
            self.push_padding(self.flags.width.unwrap_or(0));
            self.flags.zero = zero;
            return;
        }
        let sign = self.sign(whole.negative);
        let upper = verb == u32::from(b'X');
        let mut text = reversed_digits(whole.magnitude, base, upper);
        let wanted = self.min_digits(sign.is_some());
        if text.len() < wanted {
            text.resize(wanted, b'0');
        }
        self.push_prefix(&mut text, base, verb);
        text.extend(sign);
        text.reverse();
        self.pad_with_spaces(&text);
    }

    fn sign(&self, negative: bool) -> Option<u8> {
        match () {
            () if negative => Some(b'-'),
            () if self.flags.plus => Some(b'+'),
            () if self.flags.space => Some(b' '),
            () => None,
        }
    }

    fn min_digits(&self, signed: bool) -> usize {
        match (self.flags.precision, self.flags.width) {
            (Some(precision), _) => precision,
            (None, Some(width)) if self.flags.zero && !self.flags.minus => {
                width.saturating_sub(usize::from(signed))
            }
            _ => 0,
        }
    }

    /// Appends the prefix to `text`, which is in reverse order.
    fn push_prefix(&self, text: &mut Vec<u8>, base: u8, verb: u32) {
        if self.flags.sharp {
            match base {
                2 => text.extend_from_slice(b"b0"),
                8 if text.last() != Some(&b'0') => text.push(b'0'),
                16 if verb == u32::from(b'X') => text.extend_from_slice(b"X0"),
                16 => text.extend_from_slice(b"x0"),
                _ => {}
            }
        }
        if verb == u32::from(b'O') {
            text.extend_from_slice(b"o0");
        }
    }

    fn write_character(&mut self, code: u64) {
        let mut text = Vec::new();
        utf8::push(&mut text, to_rune(code));
        self.pad(&text);
    }

    fn write_quoted_character(&mut self, code: u64) {
        let quoted = if self.flags.plus {
            quote_rune_to_ascii(to_rune(code))
        } else {
            quote_rune(to_rune(code))
        };
        self.pad(quoted.as_bytes());
    }

    fn write_code_point(&mut self, code: u64) {
        let digits = self.flags.precision.unwrap_or(4).max(4);
        let mut text = format!("{code:X}").into_bytes();
        let missing = digits.saturating_sub(text.len());
        text.splice(0..0, std::iter::repeat_n(b'0', missing));
        text.splice(0..0, *b"U+");
        if self.flags.sharp && code <= u64::from(char::MAX) && is_print(code as u32) {
            text.extend_from_slice(b" '");
            utf8::push(&mut text, code as u32);
            text.push(b'\'');
        }
        self.pad_with_spaces(&text);
    }
}

fn to_rune(code: u64) -> u32 {
    u32::try_from(code).unwrap_or(u32::MAX)
}

fn reversed_digits(mut value: u64, base: u8, upper: bool) -> Vec<u8> {
    let letters = if upper { b'A' } else { b'a' };
    let mut text = Vec::with_capacity(24);
    loop {
        let digit = (value % u64::from(base)) as u8;
        text.push(if digit < 10 {
            b'0' + digit
        } else {
            letters + digit - 10
        });
        value /= u64::from(base);
        if value == 0 {
            return text;
        }
    }
}
