//! Parses addresses as Go does.

use std::net::{Ipv4Addr, SocketAddrV4};

use super::entry::Piece;
use super::number::{port, with_space_help};
use super::{Flaw, FlawCode};

/// Where an egress entry listens: an IPv4 loopback address and a port.
pub(super) fn listen(piece: &Piece<'_>) -> Result<SocketAddrV4, Flaw> {
    let (host, number) = piece
        .text
        .rsplit_once(':')
        .ok_or_else(|| not_listen(piece, "want IP:PORT"))?;
    let host = Piece {
        text: host,
        start: piece.start,
    };
    let ip: Ipv4Addr = host.text.parse().map_err(|_| not_ipv4(&host))?;
    if !ip.is_loopback() {
        let message = format!("{ip} is not in 127.0.0.0/8");
        return Err(Flaw::new(FlawCode::Loopback, host.range(), message).help(LOOPBACK));
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
    Ok(SocketAddrV4::new(ip, port(&number)?))
}

const LOOPBACK: &str = "the application connects to this address, the proxy listens there: choose one in 127.0.0.0/8, such as 127.137.0.1";

fn not_listen(piece: &Piece<'_>, want: &str) -> Flaw {
    let message = format!("{:?} is not an address to listen on: {want}", piece.text);
    with_space_help(Flaw::new(FlawCode::Listen, piece.range(), message), piece.text)
}

fn not_ipv4(host: &Piece<'_>) -> Flaw {
    if host.text.starts_with('[') {
        return not_listen(host, "the proxy listens on IPv4 only").help(LOOPBACK);
    }
    not_listen(host, "want an IPv4 address")
}

/// Where an egress entry connects to, split as Go's `net.SplitHostPort` does it.
pub(super) fn upstream<'a>(piece: &Piece<'a>) -> Result<(&'a str, u16), Flaw> {
    let text = piece.text;
    let colon = text
        .rfind(':')
        .ok_or_else(|| not_upstream(piece, "missing port"))?;
    let (head, tail) = text.split_at(colon);
    let host = match head.strip_prefix('[') {
        Some(inner) => bracketed(piece, inner)?,
        None if head.contains(':') => {
            return Err(not_upstream(piece, "too many colons").help("write IPv6 addresses as [ADDRESS]:PORT"));
        }
        None => head,
    };
    if host.contains(['[', ']']) || (head.is_empty() && tail.contains(['[', ']'])) {
        return Err(not_upstream(piece, "unexpected bracket"));
    }
    if host.contains(char::is_whitespace) {
        return Err(with_space_help(
            not_upstream(piece, "white space in the host"),
            host,
        ));
    }
    let number = Piece {
        text: tail.strip_prefix(':').unwrap_or(tail),
        start: piece.start + colon + 1,
    };
    Ok((host, port(&number)?))
}

/// The inside of `[…]`, which must end where the port begins.
fn bracketed<'a>(piece: &Piece<'_>, inner: &'a str) -> Result<&'a str, Flaw> {
    match inner.split_once(']') {
        Some((host, "")) => Ok(host),
        Some(_) => Err(not_upstream(piece, "text between ] and the port")),
        // The last colon was inside the brackets.
        None if piece.text.ends_with(']') => Err(not_upstream(piece, "missing port")),
        None => Err(not_upstream(piece, "missing ]")),
    }
}

fn not_upstream(piece: &Piece<'_>, why: &str) -> Flaw {
    let message = format!("{:?} is not HOST:PORT: {why}", piece.text);
    Flaw::new(FlawCode::Upstream, piece.range(), message)
}
