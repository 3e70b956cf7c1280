//! Parses the ingress annotation: ports with their TLS settings.

use std::collections::HashMap;
use std::ops::Range;

use super::entry::{Piece, split_entries};
use super::number::{check_reserved, parse_boolean, parse_port, with_space_help};
use super::{Dialect, Flaw, FlawCode, Read};

/// Parsed ingress annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ingress {
    /// Ports with their own settings. All other ports require a client certificate.
    Ports(Vec<IngressPort>),
    /// No traffic is redirected to the proxy.
    Disabled,
}

/// A port with its own settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressPort {
    /// Name of the entry; may be empty.
    pub name: String,
    /// Port number.
    pub port: u16,
    /// Whether traffic bypasses the proxy as plain text; otherwise the port uses TLS without a client
    /// certificate.
    pub bypass: bool,
    /// Byte range of the port in the annotation's text.
    pub range: Range<usize>,
}

const SHAPE: &str = "NAME#PORT#BYPASS";

/// Parses an ingress annotation.
#[must_use]
pub fn parse_ingress(text: &str, dialect: Dialect) -> Read<Ingress> {
    if text == "DISABLED" {
        let flaws = match dialect {
            Dialect::Later => Vec::new(),
            Dialect::Rfc => vec![unsupported_disabled(text)],
        };
        return Read {
            value: Ingress::Disabled,
            flaws,
        };
    }
    let mut flaws = Vec::new();
    let mut names = HashMap::new();
    let mut ports = Vec::new();
    for parts in split_entries(text, SHAPE, &mut flaws) {
        ports.extend(parse_ingress_port(&parts, &mut names, &mut flaws));
    }
    flaws.sort_by_key(|flaw| flaw.range.start);
    Read {
        value: Ingress::Ports(ports),
        flaws,
    }
}

fn unsupported_disabled(text: &str) -> Flaw {
    let message = format!("{text:?} is supported by later proxies only");
    Flaw::new(FlawCode::Disabled, 0..text.len(), message).help("use --profile later")
}

/// Parses an entry. `names` contains the names of earlier entries by port.
fn parse_ingress_port<'a>(
    parts: &[Piece<'a>; 3],
    names: &mut HashMap<u16, &'a str>,
    flaws: &mut Vec<Flaw>,
) -> Option<IngressPort> {
    let [name, number, bypass] = parts;
    flaws.extend(check_name_whitespace(name));
    let bypass = parse_boolean(bypass).map_err(|flaw| flaws.push(flaw)).ok();
    let port = parse_port(number).map_err(|flaw| flaws.push(flaw)).ok()?;
    flaws.extend(check_reserved(port, number.range()));
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

/// Reports white space around a name: the proxy accepts it, but it is probably not intended.
pub(super) fn check_name_whitespace(name: &Piece<'_>) -> Option<Flaw> {
    (name.text.trim() != name.text).then(|| {
        let message = format!("the name {:?} has white space around it", name.text);
        with_space_help(Flaw::new(FlawCode::Odd, name.range(), message), name.text)
    })
}
