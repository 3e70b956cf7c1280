//! Abbreviation and wrapping of text by bytes, as in Go's goutils package.

use mainstay_template::Type::{Int, String};
use mainstay_template::{Call, Failure, Function, LimitExceeded, Value};

use crate::table::fixed;
use crate::text::LimitedBuffer;

pub(super) const TABLE: &[Function] = &[
    fixed("abbrev", &[Int, String], abbrev),
    fixed("abbrevboth", &[Int, Int, String], abbrevboth),
    fixed("wrap", &[Int, String], wrap),
    fixed("wrapWith", &[Int, String, String], wrap_with),
];

fn abbrev(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (width, text) = (call.int(0), call.str(1));
    if width < 4 {
        return Ok(Value::String(text));
    }
    call.meter.reserve_string(text.len())?;
    Ok(Value::string(abbreviate_bytes(&text, 0, width)))
}

fn abbrevboth(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (left, right, text) = (call.int(0), call.int(1), call.str(2));
    if right < 4 || left > 0 && right < 7 {
        return Ok(Value::String(text));
    }
    call.meter.reserve_string(text.len())?;
    Ok(Value::string(abbreviate_bytes(&text, left, right)))
}

/// Returns at most `width` bytes of `text`, with dots in place of the text omitted before `offset` and at
/// the end. Offsets wrap around as integers do in Go.
fn abbreviate_bytes(text: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let len = text.len() as i64;
    if len <= width {
        return text.to_vec();
    }
    let mut offset = offset.min(len);
    if len.wrapping_sub(offset) < width - 3 {
        offset = len - (width - 3);
    }
    if offset <= 4 {
        return [slice(text, 0, width - 3), b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset + width - 3 < len {
        let rest = abbreviate_bytes(slice(text, offset, len), 0, width - 3);
        return [b"...".as_slice(), &rest].concat();
    }
    [b"...", slice(text, len - (width - 3), len)].concat()
}

fn slice(text: &[u8], from: i64, to: i64) -> &[u8] {
    text.get(from as usize..to as usize).unwrap_or_default()
}

fn wrap(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (width, text) = (call.int(0), call.str(1));
    let mut out = LimitedBuffer::new(call.meter);
    Wrap {
        text: &text,
        width: at_least_one(width),
        newline: b"\n",
        split_words: false,
    }
    .run(&mut out)?;
    out.finish()
}

fn wrap_with(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (width, newline, text) = (call.int(0), call.str(1), call.str(2));
    let newline: &[u8] = if newline.is_empty() { b"\n" } else { &newline };
    let mut out = LimitedBuffer::new(call.meter);
    Wrap {
        text: &text,
        width: at_least_one(width),
        newline,
        split_words: true,
    }
    .run(&mut out)?;
    out.finish()
}

fn at_least_one(width: i64) -> usize {
    usize::try_from(width).unwrap_or(1).max(1)
}

struct Wrap<'a> {
    text: &'a [u8],
    width: usize,
    newline: &'a [u8],
    split_words: bool,
}

impl Wrap<'_> {
    fn run(&self, out: &mut LimitedBuffer<'_>) -> Result<(), LimitExceeded> {
        let mut left = self.text;
        while left.len() > self.width {
            if let Some((b' ', rest)) = left.split_first() {
                left = rest;
                continue;
            }
            let Some((line, skip)) = self.next_line(left) else {
                return out.push(left);
            };
            out.push(line)?;
            out.push(self.newline)?;
            left = left.get(line.len() + skip..).unwrap_or_default();
        }
        out.push(left)
    }

    /// Returns the next line of `left` and the number of bytes to skip after it. `left` must be longer than
    /// a line. Returns `None` if it has no break.
    fn next_line<'b>(&self, left: &'b [u8]) -> Option<(&'b [u8], usize)> {
        let window = left.get(..=self.width).unwrap_or(left);
        if let Some(space) = memchr::memrchr(b' ', window) {
            return Some((left.get(..space)?, 1));
        }
        if self.split_words {
            return Some((left.get(..self.width)?, 0));
        }
        let space = memchr::memchr(b' ', left.get(self.width..)?)?;
        Some((left.get(..self.width + space)?, 1))
    }
}
