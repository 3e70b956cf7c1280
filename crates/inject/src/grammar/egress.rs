//! Parses the egress annotation: local addresses and their targets.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddrV4;
use std::ops::Range;

use super::address::{listen, upstream};
use super::entry::{Piece, entries};
use super::ingress::odd_name;
use super::number::reserved;
use super::{Dialect, Flaw, FlawCode, Read};

/// One way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    /// The listener's and the cluster's name in Envoy.
    pub name: String,
    /// Where the application connects to.
    pub listen: SocketAddrV4,
    /// The host it leads to.
    pub host: String,
    /// The port there.
    pub port: u16,
    /// Where the address to listen on stands in the text.
    pub range: Range<usize>,
}

const SHAPE: &str = "NAME#LISTEN_IP:PORT#HOST:PORT";

/// Reads an egress annotation.
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
            .help("for a mesh with defaults set the ingress annotation to \"\" instead"),
        );
    }
    let (mut taken, mut ways) = (Taken::default(), Vec::new());
    for parts in entries(text, SHAPE, &mut flaws) {
        ways.extend(way(&parts, &mut taken, &mut flaws));
    }
    flaws.sort_by_key(|flaw| flaw.range.start);
    Read { value: ways, flaws }
}

/// What earlier entries have taken.
#[derive(Default)]
struct Taken<'a> {
    names: HashSet<&'a str>,
    addresses: HashMap<SocketAddrV4, &'a str>,
}

fn way<'a>(parts: &[Piece<'a>; 3], taken: &mut Taken<'a>, flaws: &mut Vec<Flaw>) -> Option<Egress> {
    let [name, address, target] = parts;
    let target_start = target.start;
    flaws.extend(odd_name(name));
    flaws.extend(bad_name(name, !taken.names.insert(name.text)));
    let target = upstream(target).map_err(|flaw| flaws.push(flaw)).ok();
    let listen = listen(address).map_err(|flaw| flaws.push(flaw)).ok()?;
    flaws.extend(reserved(listen.port(), address.range()));
    if let Some(other) = taken.addresses.insert(listen, name.text) {
        let message = format!("{listen} is taken by {other:?}");
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

fn bad_name(name: &Piece<'_>, taken: bool) -> Option<Flaw> {
    if name.text.is_empty() {
        let flaw = Flaw::new(FlawCode::Odd, name.range(), "an egress entry without a name");
        return Some(flaw.help("the name becomes that of an Envoy cluster"));
    }
    taken.then(|| {
        let message = format!("two egress entries are called {:?}", name.text);
        Flaw::new(FlawCode::DuplicateName, name.range(), message)
            .help("the name becomes that of an Envoy listener, which must be unique")
    })
}
