//! Percent-encoding of URL components.

use super::UrlError;

/// A component of a URL. It determines which bytes are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// A whole path.
    Path,
    /// One segment of a path.
    PathSegment,
    /// A host with its port.
    Host,
    /// The zone of an IPv6 address.
    Zone,
    /// A user name or password.
    User,
    /// A key or value of a query.
    Query,
    /// A fragment.
    Fragment,
}

impl Component {
    /// Returns the bytes that are not escaped, apart from letters, digits and `-._~`.
    fn unescaped(self) -> &'static [u8] {
        match self {
            Self::Path => b"$&+,/:;=@",
            Self::PathSegment => b"$&+:=@",
            Self::Host | Self::Zone => b"!\"$&'()*+,:;<=>[]",
            Self::User => b"$&+,;=",
            Self::Query => b"",
            Self::Fragment => b"!$&()*+,/:;=?@",
        }
    }

    fn must_escape(self, byte: u8) -> bool {
        !(byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || self.unescaped().contains(&byte))
    }

    fn is_host(self) -> bool {
        matches!(self, Self::Host | Self::Zone)
    }
}

/// Escapes `text` for a query (`url.QueryEscape`): a space becomes `+`.
#[must_use]
pub fn query_escape(text: &str) -> String {
    escape_text(text, Component::Query)
}

/// Escapes `text` for one segment of a path (`url.PathEscape`).
#[must_use]
pub fn path_escape(text: &str) -> String {
    escape_text(text, Component::PathSegment)
}

fn escape_text(text: &str, component: Component) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match escape_byte(byte, component) {
            Escaped::Plain(byte) => out.push(char::from(byte)),
            Escaped::Percent(code) => out.extend(code.map(char::from)),
        }
    }
    out
}

enum Escaped {
    Plain(u8),
    Percent([u8; 3]),
}

fn escape_byte(byte: u8, component: Component) -> Escaped {
    if byte == b' ' && component == Component::Query {
        return Escaped::Plain(b'+');
    }
    if !component.must_escape(byte) {
        return Escaped::Plain(byte);
    }
    let digit = |value: u8| {
        if value < 10 {
            b'0' + value
        } else {
            b'A' + value - 10
        }
    };
    Escaped::Percent([b'%', digit(byte >> 4), digit(byte & 15)])
}

/// Escapes the bytes of `text` that `component` must not contain.
#[must_use]
pub fn escape(text: &[u8], component: Component) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match escape_byte(*byte, component) {
            Escaped::Plain(byte) => out.push(byte),
            Escaped::Percent(code) => out.extend(code),
        }
    }
    out
}

/// Decodes a key or value of a query (`url.QueryUnescape`).
pub fn query_unescape(text: &[u8]) -> Result<Vec<u8>, UrlError> {
    unescape(text, Component::Query)
}

/// Decodes a segment of a path (`url.PathUnescape`).
pub fn path_unescape(text: &[u8]) -> Result<Vec<u8>, UrlError> {
    unescape(text, Component::PathSegment)
}

/// Decodes the escapes of `text`. Fails on a malformed escape and on bytes that a host must not contain.
pub fn unescape(text: &[u8], component: Component) -> Result<Vec<u8>, UrlError> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => {
                out.push(decode_hex_byte(after, component)?);
                rest = after.get(2..).unwrap_or_default();
            }
            b'+' if component == Component::Query => out.push(b' '),
            _ if component.is_host() && byte.is_ascii() && component.must_escape(*byte) => {
                return Err(UrlError::HostCharacter(*byte));
            }
            _ => out.push(*byte),
        }
    }
    Ok(out)
}

/// Decodes the two hexadecimal digits at the start of `rest`, the text after a percent sign.
fn decode_hex_byte(rest: &[u8], component: Component) -> Result<u8, UrlError> {
    let code = rest.get(..2).unwrap_or(rest);
    let error = || UrlError::Escape([b"%", code].concat());
    let &[high, low] = code else {
        return Err(error());
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let (high, low) = digit(high).zip(digit(low)).ok_or_else(error)?;
    let value = (high << 4 | low) as u8;
    let rejected = match component {
        // In a host, only bytes beyond ASCII and the percent sign may be escaped.
        Component::Host => value < 0x80 && value != b'%',
        Component::Zone => value != b'%' && value != b' ' && Component::Host.must_escape(value),
        _ => false,
    };
    if rejected { Err(error()) } else { Ok(value) }
}

/// Whether `path` is a valid encoding of a path, not necessarily the default one.
pub(super) fn is_valid_encoding(path: &[u8]) -> bool {
    path.iter()
        .all(|byte| b"!$&'()*+,;=:@[]%".contains(byte) || !Component::Path.must_escape(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_by_component() {
        assert_eq!(query_escape("a b/c+d é~"), "a+b%2Fc%2Bd+%C3%A9~");
        assert_eq!(path_escape("a b/c+d:é;"), "a%20b%2Fc+d:%C3%A9%3B");
        assert_eq!(escape(b"/a b?", Component::Path), b"/a%20b%3F");
        assert_eq!(escape(b"a/b?#", Component::Fragment), b"a/b?%23");
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(query_unescape(b"a+b%2f%C3%A9").unwrap(), "a b/é".as_bytes());
        assert_eq!(path_unescape(b"a+b%2F").unwrap(), b"a+b/");
        let error = |text: &[u8]| path_unescape(text).unwrap_err().to_string();
        assert_eq!(error(b"a%zzb"), r#"invalid URL escape "%zz""#);
        assert_eq!(error(b"a%2"), r#"invalid URL escape "%2""#);
    }
}
