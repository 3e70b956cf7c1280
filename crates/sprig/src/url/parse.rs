//! Taking a URL apart as Go's net/url does: takes bytes, gives the parts, unescaped where Go unescapes them.

use super::UrlError;
use super::address::check_ipv6;
use super::escape::{Part, unescape};
use crate::quote::quote;

/// The parts of a URL.
#[derive(Debug, Default)]
pub(super) struct Url {
    pub(super) scheme: Vec<u8>,
    /// What follows the scheme where it does not begin with a slash.
    pub(super) opaque: Vec<u8>,
    pub(super) user: Option<User>,
    /// With its port.
    pub(super) host: Vec<u8>,
    pub(super) path: Vec<u8>,
    pub(super) query: Vec<u8>,
    pub(super) fragment: Vec<u8>,
}

/// Who.
#[derive(Debug)]
pub(super) struct User {
    pub(super) name: Vec<u8>,
    pub(super) password: Option<Vec<u8>>,
}

/// Takes `text` apart; the error names what was parsed.
pub(super) fn parse(text: &[u8]) -> Result<Url, UrlError> {
    let (body, fragment) = cut(text, b'#');
    let mut url = parse_body(body).map_err(|error| error.of(body))?;
    if let Some(fragment) = fragment {
        url.fragment = unescape(fragment, Part::Fragment).map_err(|error| error.of(text))?;
    }
    Ok(url)
}

impl UrlError {
    fn of(self, text: &[u8]) -> Self {
        Self(format!("parse {}: {}", quote(text), self.0))
    }
}

fn fail<T>(text: &str) -> Result<T, UrlError> {
    Err(UrlError(text.into()))
}

/// What is before the first `sign`, and what is after it.
fn cut(text: &[u8], sign: u8) -> (&[u8], Option<&[u8]>) {
    let mut parts = text.splitn(2, |b| *b == sign);
    (parts.next().unwrap_or_default(), parts.next())
}

fn parse_body(text: &[u8]) -> Result<Url, UrlError> {
    if text.iter().any(u8::is_ascii_control) {
        return fail("net/url: invalid control character in URL");
    }
    let mut url = Url::default();
    if text == b"*" {
        url.path = text.to_vec();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = cut(rest, b'?');
    url.query = query.unwrap_or_default().to_vec();
    if !rest.starts_with(b"/") {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_vec();
            return Ok(url);
        }
        if cut(rest, b'/').0.contains(&b':') {
            return fail("first path segment in URL cannot contain colon");
        }
    }
    let path = parse_authority(&mut url, rest)?;
    url.path = unescape(path, Part::Path)?;
    Ok(url)
}

fn split_scheme(text: &[u8]) -> Result<(&[u8], &[u8]), UrlError> {
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return fail("missing protocol scheme"),
            b':' => {
                let (scheme, rest) = cut(text, b':');
                return Ok((scheme, rest.unwrap_or_default()));
            }
            _ => break,
        }
    }
    Ok((b"", text))
}

/// Reads `//user@host` off the front of `rest`, gives the path after it.
fn parse_authority<'a>(url: &mut Url, rest: &'a [u8]) -> Result<&'a [u8], UrlError> {
    let rooted = url.scheme.is_empty() && rest.starts_with(b"///");
    let Some(after) = rest.strip_prefix(b"//").filter(|_| !rooted) else {
        return Ok(rest);
    };
    let end = after.iter().position(|b| *b == b'/').unwrap_or(after.len());
    let (authority, path) = after.split_at_checked(end).unwrap_or((after, b""));
    let at = authority.iter().rposition(|b| *b == b'@');
    let host = at.map_or(authority, |at| authority.get(at + 1..).unwrap_or_default());
    url.host = parse_host(&url.scheme, host)?;
    if let Some(user) = at.and_then(|at| authority.get(..at)) {
        url.user = Some(parse_user(user)?);
    }
    Ok(path)
}

fn parse_user(text: &[u8]) -> Result<User, UrlError> {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(b);
    if !text.iter().all(allowed) {
        return fail("net/url: invalid userinfo");
    }
    let (name, password) = cut(text, b':');
    let name = unescape(name, Part::User)?;
    let password = password
        .map(|password| unescape(password, Part::User))
        .transpose()?;
    Ok(User { name, password })
}

fn parse_host(scheme: &[u8], host: &[u8]) -> Result<Vec<u8>, UrlError> {
    match host.iter().rposition(|b| *b == b'[') {
        Some(0) => return parse_bracketed(host),
        Some(_) => return fail("invalid IP-literal"),
        None => {}
    }
    let first = host.iter().position(|b| *b == b':');
    // Only the web's own schemes refuse a second colon.
    let strict = scheme == b"http" || scheme == b"https";
    let colon = if strict {
        first
    } else {
        host.iter().rposition(|b| *b == b':')
    };
    check_port(colon.and_then(|at| host.get(at..)).unwrap_or_default())?;
    unescape(host, Part::Host)
}

fn check_port(port: &[u8]) -> Result<(), UrlError> {
    if is_optional_port(port) {
        return Ok(());
    }
    fail(&format!("invalid port {} after host", quote(port)))
}

/// Empty, or a colon and digits, of which there may be none.
pub(super) fn is_optional_port(port: &[u8]) -> bool {
    port.split_first()
        .is_none_or(|(colon, digits)| *colon == b':' && digits.iter().all(u8::is_ascii_digit))
}

fn parse_bracketed(host: &[u8]) -> Result<Vec<u8>, UrlError> {
    let Some(close) = host.iter().rposition(|b| *b == b']') else {
        return fail("missing ']' in host");
    };
    let port = host.get(close + 1..).unwrap_or_default();
    check_port(port)?;
    let inside = host.get(1..close).unwrap_or_default();
    let zone = inside
        .windows(3)
        .position(|window| window == b"%25")
        .unwrap_or(inside.len());
    let (address, zone) = inside.split_at_checked(zone).unwrap_or((inside, b""));
    let address = [unescape(address, Part::Host)?, unescape(zone, Part::Zone)?].concat();
    check_ipv6(&address)?;
    Ok([b"[", address.as_slice(), b"]", port].concat())
}
