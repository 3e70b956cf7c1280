//! Validation of IP addresses in brackets, as in Go's `net/netip`.

use super::UrlError;
use crate::quote::quote;

/// Error of parsing an IP address. The message is that of `netip.ParseAddr`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ParseAddr({}): {}{}", quote(.text), .problem.text, format_rest(.problem))]
pub struct AddressError {
    text: Vec<u8>,
    problem: Problem,
}

fn format_rest(problem: &Problem) -> String {
    if problem.rest.is_empty() {
        String::new()
    } else {
        format!(" (at {})", quote(&problem.rest))
    }
}

/// Checks that `text` is an IPv6 address, with or without a zone.
pub(super) fn check_ipv6(text: &[u8]) -> Result<(), UrlError> {
    let fail = |problem: Problem| {
        UrlError::Host(AddressError {
            text: text.to_vec(),
            problem,
        })
    };
    match text.iter().find(|b| matches!(b, b'.' | b':' | b'%')) {
        Some(b'.') => match scan_ipv4(text) {
            Ok(()) => Err(UrlError::IpLiteral),
            Err(problem) => Err(fail(problem)),
        },
        Some(b':') => scan_ipv6(text).map_err(fail),
        Some(_) => Err(fail(Problem::new("missing IPv6 address"))),
        None => Err(fail(Problem::new("unable to parse IP"))),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    text: &'static str,
    /// Text that was not yet parsed. Empty if the message does not include it.
    rest: Vec<u8>,
}

impl Problem {
    fn new(text: &'static str) -> Self {
        Self {
            text,
            rest: Vec::new(),
        }
    }

    fn with_rest(text: &'static str, rest: &[u8]) -> Self {
        Self {
            text,
            rest: rest.to_vec(),
        }
    }
}

fn scan_ipv4(text: &[u8]) -> Result<(), Problem> {
    let (mut value, mut digits, mut fields) = (0_u32, 0, 0);
    for (index, byte) in text.iter().enumerate() {
        let rest = text.get(index..).unwrap_or_default();
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(Problem::new("IPv4 field has octet with leading zero"));
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(Problem::new("IPv4 field has value >255"));
                }
            }
            b'.' if digits == 0 || rest.len() == 1 => {
                return Err(Problem::with_rest(
                    "IPv4 field must have at least one digit",
                    rest,
                ));
            }
            b'.' if fields == 3 => return Err(Problem::new("IPv4 address too long")),
            b'.' => (value, digits, fields) = (0, 0, fields + 1),
            _ => return Err(Problem::with_rest("unexpected character", rest)),
        }
    }
    if fields < 3 {
        Err(Problem::new("IPv4 address too short"))
    } else {
        Ok(())
    }
}

fn scan_ipv6(text: &[u8]) -> Result<(), Problem> {
    let address = match text.iter().position(|b| *b == b'%') {
        Some(at) if at + 1 == text.len() => return Err(Problem::new("zone must be a non-empty string")),
        Some(at) => text.get(..at).unwrap_or_default(),
        None => text,
    };
    let (mut rest, mut ellipsis) = match address.strip_prefix(b"::") {
        Some(b"") => return Ok(()),
        Some(rest) => (rest, true),
        None => (address, false),
    };
    let mut bytes = 0;
    while bytes < 16 {
        let digits = count_hex_digits(rest)?;
        if rest.get(digits) == Some(&b'.') {
            check_embedded_ipv4(rest, bytes, ellipsis)?;
            (rest, bytes) = (&[], bytes + 4);
            break;
        }
        bytes += 2;
        rest = rest.get(digits..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        rest = strip_colon(rest)?;
        if let Some(after) = rest.strip_prefix(b":") {
            if ellipsis {
                return Err(Problem::with_rest("multiple :: in address", rest));
            }
            ellipsis = true;
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    match (rest.is_empty(), bytes < 16, ellipsis) {
        (false, _, _) => Err(Problem::with_rest("trailing garbage after address", rest)),
        (true, true, false) => Err(Problem::new("address string too short")),
        (true, false, true) => Err(Problem::new("the :: must expand to at least one field of zeros")),
        _ => Ok(()),
    }
}

fn count_hex_digits(rest: &[u8]) -> Result<usize, Problem> {
    match rest.iter().take_while(|b| b.is_ascii_hexdigit()).count() {
        0 => Err(Problem::with_rest(
            "each colon-separated field must have at least one digit",
            rest,
        )),
        digits @ 1..=4 => Ok(digits),
        _ => Err(Problem::with_rest("each group must have 4 or less digits", rest)),
    }
}

fn check_embedded_ipv4(rest: &[u8], bytes: usize, ellipsis: bool) -> Result<(), Problem> {
    if !ellipsis && bytes != 12 {
        let text = "embedded IPv4 address must replace the final 2 fields of the address";
        return Err(Problem::with_rest(text, rest));
    }
    if bytes > 12 {
        let text = "too many hex fields to fit an embedded IPv4 at the end of the address";
        return Err(Problem::with_rest(text, rest));
    }
    scan_ipv4(rest)
}

fn strip_colon(rest: &[u8]) -> Result<&[u8], Problem> {
    match rest {
        [b':', after @ ..] if !after.is_empty() => Ok(after),
        [b':', ..] => Err(Problem::with_rest(
            "colon must be followed by more characters",
            rest,
        )),
        _ => Err(Problem::with_rest("unexpected character, want colon", rest)),
    }
}
