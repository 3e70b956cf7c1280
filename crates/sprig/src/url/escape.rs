//! Percent-escapes: takes bytes and the part of a URL they are in, gives them escaped or plain, or Go's error.

use super::UrlError;
use crate::quote::quote;

/// The part of a URL, which decides what may stand there unescaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Path,
    Host,
    Zone,
    User,
    Fragment,
}

impl Part {
    /// What may stand unescaped besides letters, digits and `-._~`.
    fn extra(self) -> &'static [u8] {
        match self {
            Self::Path => b"$&+,/:;=@",
            Self::Host | Self::Zone => b"!\"$&'()*+,:;<=>[]",
            Self::User => b"$&+,;=",
            Self::Fragment => b"!$&()*+,/:;=?@",
        }
    }

    pub(super) fn must_escape(self, byte: u8) -> bool {
        !(byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || self.extra().contains(&byte))
    }

    fn is_host(self) -> bool {
        matches!(self, Self::Host | Self::Zone)
    }
}

/// `text` with everything escaped that may not stand in `part`.
pub(super) fn escape(text: &[u8], part: Part) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if part.must_escape(*byte) {
            out.push(b'%');
            out.extend([byte >> 4, byte & 15].map(|digit| {
                b"0123456789ABCDEF"
                    .get(usize::from(digit))
                    .copied()
                    .unwrap_or(b'0')
            }));
        } else {
            out.push(*byte);
        }
    }
    out
}

/// `text` without its escapes; fails on a broken one, and on what a host may not hold.
pub(super) fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, UrlError> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'%' {
            out.push(escaped(rest, part)?);
            rest = rest.get(3..).unwrap_or_default();
            continue;
        }
        if part.is_host() && byte.is_ascii() && part.must_escape(*byte) {
            return Err(UrlError(format!(
                "invalid character {} in host name",
                quote(&[*byte])
            )));
        }
        out.push(*byte);
        rest = after;
    }
    Ok(out)
}

fn escaped(rest: &[u8], part: Part) -> Result<u8, UrlError> {
    let escape = rest.get(..3).unwrap_or(rest);
    let wrong = || UrlError(format!("invalid URL escape {}", quote(escape)));
    let &[_, high, low] = escape else {
        return Err(wrong());
    };
    let value = digit(high)
        .zip(digit(low))
        .map(|(high, low)| high << 4 | low)
        .ok_or_else(wrong)?;
    let percent = value == b'%';
    let refused = match part {
        // A host may hold escapes of bytes beyond ASCII only.
        Part::Host => value < 0x80 && !percent,
        Part::Zone => !percent && value != b' ' && Part::Host.must_escape(value),
        _ => false,
    };
    if refused { Err(wrong()) } else { Ok(value) }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
