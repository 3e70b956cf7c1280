//! Parses the egress annotation: listen addresses and their upstreams.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddrV4;
use std::ops::Range;

use super::address::{parse_listen_address, parse_upstream};
use super::entry::{Piece, split_entries};
use super::ingress::check_name_whitespace;
use super::number::check_reserved;
use super::{Dialect, Flaw, FlawCode, Read};

/// An egress entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// Name of the listener and the cluster in Envoy.
    pub name: String,
    /// Address that the application connects to.
    pub listen: SocketAddrV4,
    /// Upstream host.
    pub host: String,
    /// Upstream port.
    pub port: u16,
    /// Byte range of the listen address in the annotation's text.
    pub range: Range<usize>,
}

const SHAPE: &str = "NAME#LISTEN_IP:PORT#HOST:PORT";

/// Parses an egress annotation.
#[must_use]
pub fn parse_egress(text: &str, dialect: Dialect) -> Read<Vec<Egress>> {
    let mut flaws = Vec::new();
    if text.is_empty() && dialect == Dialect::Later {
        flaws.push(
            Flaw::new(
                FlawCode::EmptyEgress,
                0..0,
                "an egress configuration must not be empty",
            )
            .help("set the ingress annotation to \"\" instead for a mesh with default settings"),
        );
    }
    let (mut earlier, mut egress) = (EarlierEntries::default(), Vec::new());
    for parts in split_entries(text, SHAPE, &mut flaws) {
        egress.extend(parse_entry(&parts, &mut earlier, &mut flaws));
    }
    flaws.sort_by_key(|flaw| flaw.range.start);
    Read { value: egress, flaws }
}

/// Names and listen addresses of earlier entries.
#[derive(Default)]
struct EarlierEntries<'a> {
    names: HashSet<&'a str>,
    addresses: HashMap<SocketAddrV4, &'a str>,
}

fn parse_entry<'a>(
    parts: &[Piece<'a>; 3],
    earlier: &mut EarlierEntries<'a>,
    flaws: &mut Vec<Flaw>,
) -> Option<Egress> {
    let [name, address, target] = parts;
    let target_start = target.start;
    flaws.extend(check_name_whitespace(name));
    flaws.extend(check_name(name, !earlier.names.insert(name.text)));
    let target = parse_upstream(target).map_err(|flaw| flaws.push(flaw)).ok();
    let listen = parse_listen_address(address)
        .map_err(|flaw| flaws.push(flaw))
        .ok()?;
    flaws.extend(check_reserved(listen.port(), address.range()));
    if let Some(other) = earlier.addresses.insert(listen, name.text) {
        let message = format!("{listen} is already used by {other:?}");
        flaws.push(Flaw::new(FlawCode::DuplicateListen, address.range(), message));
    }
    let (host, port) = target?;
    if host.is_empty() {
        flaws.push(Flaw::new(
            FlawCode::Odd,
            target_start..target_start,
            "an egress entry without a host",
        ));
    }
    Some(Egress {
        name: name.text.to_owned(),
        listen,
        host: host.to_owned(),
        port,
        range: address.range(),
    })
}

fn check_name(name: &Piece<'_>, is_used: bool) -> Option<Flaw> {
    if name.text.is_empty() {
        let flaw = Flaw::new(FlawCode::Odd, name.range(), "an egress entry without a name");
        return Some(flaw.help("add a name: it becomes the name of an Envoy cluster"));
    }
    is_used.then(|| {
        let message = format!("two egress entries are called {:?}", name.text);
        Flaw::new(FlawCode::DuplicateName, name.range(), message)
            .help("choose another name: it becomes the name of an Envoy listener, which must be unique")
    })
}
