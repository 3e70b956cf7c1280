//! Parses addresses as Go does.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::entry::Piece;
use super::number::{parse_port, with_space_help};
use super::{Flaw, FlawCode};

/// Parses the listen address of an egress entry: an IPv4 loopback address and a port.
pub(super) fn parse_listen_address(piece: &Piece<'_>) -> Result<SocketAddrV4, Flaw> {
    let (host, number) = piece
        .text
        .rsplit_once(':')
        .ok_or_else(|| invalid_listen_address(piece, "want IP:PORT"))?;
    let host = Piece {
        text: host,
        start: piece.start,
    };
    let ip: Ipv4Addr = host.text.parse().map_err(|_| invalid_ipv4(&host))?;
    if !ip.is_loopback() {
        let message = format!("{ip} is not in 127.0.0.0/8");
        return Err(Flaw::new(FlawCode::Loopback, host.range(), message).help(LOOPBACK_HELP));
    }
    let number = Piece {
        text: number,
        start: piece.start + host.text.len() + 1,
    };
    if number.text.starts_with(['+', '-']) {
        return Err(Flaw::new(
            FlawCode::PortNumber,
            number.range(),
            format!("port {:?} is not a number", number.text),
        ));
    }
    Ok(SocketAddrV4::new(ip, parse_port(&number)?))
}

const LOOPBACK_HELP: &str = "choose an address in 127.0.0.0/8, such as 127.137.0.1: the application connects to it, and the proxy listens on it";

fn invalid_listen_address(piece: &Piece<'_>, want: &str) -> Flaw {
    let message = format!("{:?} is not an address to listen on: {want}", piece.text);
    with_space_help(Flaw::new(FlawCode::Listen, piece.range(), message), piece.text)
}

fn invalid_ipv4(host: &Piece<'_>) -> Flaw {
    if host.text.starts_with('[') {
        return invalid_listen_address(host, "the proxy listens on IPv4 only").help(LOOPBACK_HELP);
    }
    invalid_listen_address(host, "want an IPv4 address")
}

/// Parses the upstream address of an egress entry, which is split as by Go's `net.SplitHostPort`.
pub(super) fn parse_upstream<'a>(piece: &Piece<'a>) -> Result<(&'a str, u16), Flaw> {
    let text = piece.text;
    let colon = text
        .rfind(':')
        .ok_or_else(|| invalid_upstream(piece, "missing port"))?;
    let (head, tail) = text.split_at(colon);
    let host = match head.strip_prefix('[') {
        Some(inner) => bracketed_host(piece, inner)?,
        None if head.contains(':') => {
            return Err(
                invalid_upstream(piece, "too many colons").help("write IPv6 addresses as [ADDRESS]:PORT")
            );
        }
        None => head,
    };
    if host.contains(['[', ']']) || (head.is_empty() && tail.contains(['[', ']'])) {
        return Err(invalid_upstream(piece, "unexpected bracket"));
    }
    if host.contains(char::is_whitespace) {
        return Err(with_space_help(
            invalid_upstream(piece, "white space in the host"),
            host,
        ));
    }
    let number = Piece {
        text: tail.strip_prefix(':').unwrap_or(tail),
        start: piece.start + colon + 1,
    };
    Ok((host, parse_port(&number)?))
}

/// Returns the host in `[…]`, which must end where the port starts.
fn bracketed_host<'a>(piece: &Piece<'_>, inner: &'a str) -> Result<&'a str, Flaw> {
    match inner.split_once(']') {
        Some((host, "")) => Ok(host),
        Some(_) => Err(invalid_upstream(piece, "text between ] and the port")),
        // The last colon is inside the brackets.
        None if piece.text.ends_with(']') => Err(invalid_upstream(piece, "missing port")),
        None => Err(invalid_upstream(piece, "missing ]")),
    }
}

fn invalid_upstream(piece: &Piece<'_>, why: &str) -> Flaw {
    let message = format!("{:?} is not HOST:PORT: {why}", piece.text);
    Flaw::new(FlawCode::Upstream, piece.range(), message)
}
