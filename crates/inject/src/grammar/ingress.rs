//! Parses the ingress annotation: ports and their treatment.

use std::collections::HashMap;
use std::ops::Range;

use super::entry::{Piece, entries};
use super::number::{boolean, port, reserved, with_space_help};
use super::{Dialect, Flaw, FlawCode, Read};

/// What happens to connections that come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ingress {
    /// Ports that are not named ask for a client certificate; without entries all of them do.
    Ports(Vec<IngressPort>),
    /// Nothing is redirected to the proxy.
    Disabled,
}

/// One port that is treated unlike the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressPort {
    /// What it is called; may be empty.
    pub name: String,
    /// The port.
    pub port: u16,
    /// Past the proxy in plain text; otherwise TLS without a client certificate.
    pub bypass: bool,
    /// Where the port stands in the text.
    pub range: Range<usize>,
}

const SHAPE: &str = "NAME#PORT#BYPASS";

/// Reads an ingress annotation.
#[must_use]
pub fn parse_ingress(text: &str, dialect: Dialect) -> Read<Ingress> {
    if text == "DISABLED" {
        let flaws = match dialect {
            Dialect::Later => Vec::new(),
            Dialect::Rfc => vec![unknown_disabled(text)],
        };
        return Read {
            value: Ingress::Disabled,
            flaws,
        };
    }
    let mut flaws = Vec::new();
    let mut names = HashMap::new();
    let mut ports = Vec::new();
    for parts in entries(text, SHAPE, &mut flaws) {
        ports.extend(ingress_port(&parts, &mut names, &mut flaws));
    }
    flaws.sort_by_key(|flaw| flaw.range.start);
    Read {
        value: Ingress::Ports(ports),
        flaws,
    }
}

fn unknown_disabled(text: &str) -> Flaw {
    let message = format!("{text:?} is known to later proxies only");
    Flaw::new(FlawCode::Disabled, 0..text.len(), message).help("use --profile later")
}

/// `names` are those of the ports before it.
fn ingress_port<'a>(
    parts: &[Piece<'a>; 3],
    names: &mut HashMap<u16, &'a str>,
    flaws: &mut Vec<Flaw>,
) -> Option<IngressPort> {
    let [name, number, bypass] = parts;
    flaws.extend(odd_name(name));
    let bypass = boolean(bypass).map_err(|flaw| flaws.push(flaw)).ok();
    let port = port(number).map_err(|flaw| flaws.push(flaw)).ok()?;
    flaws.extend(reserved(port, number.range()));
    if let Some(other) = names.insert(port, name.text) {
        let message = format!("port {port} is named twice: {other:?} and {:?}", name.text);
        flaws.push(Flaw::new(FlawCode::DuplicatePort, number.range(), message));
    }
    Some(IngressPort {
        name: name.text.to_owned(),
        port,
        bypass: bypass?,
        range: number.range(),
    })
}

/// The proxy takes any name; one with white space around it was not meant.
pub(super) fn odd_name(name: &Piece<'_>) -> Option<Flaw> {
    (name.text.trim() != name.text).then(|| {
        let message = format!("the name {:?} has white space around it", name.text);
        with_space_help(Flaw::new(FlawCode::Odd, name.range(), message), name.text)
    })
}
