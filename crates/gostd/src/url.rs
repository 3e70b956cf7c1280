//! URLs, parsed, formatted and escaped as in Go's `net/url`.

mod address;
mod escape;
mod parse;

use crate::quote::quote;

pub use address::AddressError;
pub use escape::{Component, escape, path_escape, path_unescape, query_escape, query_unescape, unescape};
pub use parse::{parse, parse_request_uri};

/// A parsed URL. The parts are unescaped, except `raw_path`, `opaque` and `query`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// The scheme in lower case, without the colon.
    pub scheme: Vec<u8>,
    /// The text after the scheme, if it does not start with a slash.
    pub opaque: Vec<u8>,
    /// User name and password before the host, if present.
    pub user: Option<User>,
    /// The host, with its port.
    pub host: Vec<u8>,
    /// Path, unescaped.
    pub path: Vec<u8>,
    /// The path as written, if it differs from the default encoding of `path`.
    pub raw_path: Vec<u8>,
    /// The query, without the leading `?`.
    pub query: Vec<u8>,
    /// The fragment, without the leading `#`.
    pub fragment: Vec<u8>,
}

/// The user information of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// User name, unescaped.
    pub name: Vec<u8>,
    /// The password, if there is a colon after the name.
    pub password: Option<Vec<u8>>,
}

/// Error of parsing a URL. The message is that of Go's `url.Error`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse {}: {reason}", quote(.text))]
pub struct ParseError {
    /// Text that was parsed.
    pub text: Vec<u8>,
    /// Reason why the text is not a URL.
    pub reason: UrlError,
}

/// The reason why a text is not a URL. The messages are Go's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The text contains a control character.
    #[error("net/url: invalid control character in URL")]
    ControlCharacter,
    /// The text is empty.
    #[error("empty url")]
    Empty,
    /// The text starts with a colon.
    #[error("missing protocol scheme")]
    MissingScheme,
    /// The text is neither an absolute URL nor an absolute path.
    #[error("invalid URI for request")]
    NotARequestUri,
    /// The first segment of a relative path contains a colon.
    #[error("first path segment in URL cannot contain colon")]
    ColonInFirstSegment,
    /// A percent sign is not followed by two hexadecimal digits, or the escape is not allowed there.
    #[error("invalid URL escape {}", quote(.0))]
    Escape(Vec<u8>),
    /// A host contains a character that is not allowed there.
    #[error("invalid character {} in host name", quote([*.0]))]
    HostCharacter(u8),
    /// Brackets do not contain an IPv6 address.
    #[error("invalid IP-literal")]
    IpLiteral,
    /// A bracket is not closed.
    #[error("missing ']' in host")]
    MissingBracket,
    /// A port is not a number.
    #[error("invalid port {} after host", quote(.0))]
    Port(Vec<u8>),
    /// The user information contains a character that is not allowed there.
    #[error("net/url: invalid userinfo")]
    UserInfo,
    /// Brackets contain text that is not an address.
    #[error("invalid host: {0}")]
    Host(AddressError),
}

impl Url {
    /// Returns the host without port and brackets (`URL.Hostname`).
    #[must_use]
    pub fn hostname(&self) -> &[u8] {
        self.split_host().0
    }

    /// Returns the port without the colon; empty if there is none (`URL.Port`).
    #[must_use]
    pub fn port(&self) -> &[u8] {
        self.split_host().1
    }

    fn split_host(&self) -> (&[u8], &[u8]) {
        let host = self.host.as_slice();
        let colon = host.iter().rposition(|byte| *byte == b':');
        let (host, port) = colon
            .and_then(|at| host.split_at_checked(at))
            .filter(|(_, port)| parse::is_optional_port(port))
            .map_or((host, &[][..]), |(host, port)| {
                (host, port.get(1..).unwrap_or_default())
            });
        let inner = host.strip_prefix(b"[").and_then(|inner| inner.strip_suffix(b"]"));
        (inner.unwrap_or(host), port)
    }

    /// Returns the path in its escaped form (`URL.EscapedPath`).
    #[must_use]
    pub fn escaped_path(&self) -> Vec<u8> {
        let raw = &self.raw_path;
        let raw_is_valid = !raw.is_empty()
            && escape::is_valid_encoding(raw)
            && unescape(raw, Component::Path).is_ok_and(|path| path == self.path);
        if raw_is_valid {
            return raw.clone();
        }
        if self.path == b"*" {
            return self.path.clone();
        }
        escape(&self.path, Component::Path)
    }

    /// Formats the URL (`URL.String`).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
        if self.opaque.is_empty() {
            self.push_hierarchy(&mut out);
        } else {
            out.extend_from_slice(&self.opaque);
        }
        if !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.extend(escape(&self.fragment, Component::Fragment));
        }
        out
    }

    fn push_hierarchy(&self, out: &mut Vec<u8>) {
        if !self.scheme.is_empty() || !self.host.is_empty() || self.user.is_some() {
            if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
                out.extend_from_slice(b"//");
            }
            if let Some(user) = &self.user {
                out.extend(user.to_bytes());
                out.push(b'@');
            }
            out.extend(escape(&self.host, Component::Host));
        }
        let path = self.escaped_path();
        if path.first().is_some_and(|byte| *byte != b'/') && !self.host.is_empty() {
            out.push(b'/');
        }
        let first_segment = path.split(|byte| *byte == b'/').next();
        if out.is_empty() && first_segment.is_some_and(|segment| segment.contains(&b':')) {
            out.extend_from_slice(b"./");
        }
        out.extend(path);
    }
}

impl User {
    /// Formats the user information (`Userinfo.String`).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = escape(&self.name, Component::User);
        if let Some(password) = &self.password {
            text.push(b':');
            text.extend(escape(password, Component::User));
        }
        text
    }
}
