//! Parses ports and booleans as Go does.

use std::ops::Range;

use super::entry::Piece;
use super::{Flaw, FlawCode, RESERVED_PORTS};

/// Parses a port as `strconv.Atoi` does, but reports a number that does not fit into 16 bits.
pub(super) fn parse_port(piece: &Piece<'_>) -> Result<u16, Flaw> {
    let number = parse_integer(piece.text).ok_or_else(|| {
        let message = format!("port {:?} is not a number", piece.text);
        with_space_help(
            Flaw::new(FlawCode::PortNumber, piece.range(), message),
            piece.text,
        )
    })?;
    to_port(number, piece.text, piece.range())
}

/// Parses an integer in the syntax of `strconv.Atoi`: an optional sign and digits. A number that is too
/// long is mapped to one that is out of range.
fn parse_integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size: i128 = digits.parse().unwrap_or(i128::MAX);
    Some(if text.starts_with('-') { -size } else { size })
}

fn to_port(number: i128, text: &str, range: Range<usize>) -> Result<u16, Flaw> {
    u16::try_from(number)
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| {
            let message = format!("port {text} is not between 1 and 65535");
            Flaw::new(FlawCode::PortRange, range, message)
        })
}

/// Parses a boolean as `strconv.ParseBool` does.
pub(super) fn parse_boolean(piece: &Piece<'_>) -> Result<bool, Flaw> {
    match piece.text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        text => {
            let message = format!("{text:?} is not a boolean: want true or false");
            let flaw = Flaw::new(FlawCode::Bool, piece.range(), message).help(
                "use true for plain text that bypasses the proxy, false for TLS without a client certificate",
            );
            Err(with_space_help(flaw, text))
        }
    }
}

/// Returns a flaw if the proxy itself listens on this port.
pub(super) fn check_reserved(port: u16, range: Range<usize>) -> Option<Flaw> {
    RESERVED_PORTS.contains(&port).then(|| {
        let message = format!("port {port} is reserved for the proxy");
        Flaw::new(FlawCode::ReservedPort, range, message)
            .help("choose another port: 15006 and 15007 are reserved for the proxy")
    })
}

/// Adds help about white space, which is hard to see in a message and is often an additional line break in
/// YAML.
pub(super) fn with_space_help(flaw: Flaw, text: &str) -> Flaw {
    if text.ends_with('\n') {
        return flaw.help("begin the block with `|-` or `>-`: the text ends with a line break");
    }
    if text.contains(char::is_whitespace) {
        return flaw.help("remove the white space from the configuration");
    }
    flaw
}
