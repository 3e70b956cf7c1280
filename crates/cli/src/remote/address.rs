//! Parses and validates addresses of repositories and registries.

use std::fmt;
use std::net::IpAddr;

use super::error::RemoteError;

/// An `http` or `https` address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    secure: bool,
    /// Host and optional port.
    authority: String,
    /// Path and query. Starts with a slash; has no fragment.
    path: String,
    /// Whether unencrypted connections to other hosts are allowed.
    plain_http: bool,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

impl Address {
    /// Parses an address. Without TLS it must be a loopback address, unless `plain_http`.
    pub(crate) fn parse(text: &str, plain_http: bool) -> Result<Self, RemoteError> {
        checked(text, plain_http).map_err(|reason| RemoteError::Address {
            address: shown(text),
            reason,
        })
    }

    /// Returns the address of `path` below this one.
    pub(crate) fn below(&self, path: &str) -> Self {
        let (own, _) = self.path.split_once('?').unwrap_or((&self.path, ""));
        Self {
            path: format!("{}/{path}", own.trim_end_matches('/')),
            ..self.clone()
        }
    }

    /// Returns the address of `path` on the same host.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self.clone()
        }
    }

    /// Resolves a link relative to this address.
    pub(crate) fn join(&self, link: &str) -> Result<Self, &'static str> {
        let target = if link.contains("://") {
            checked(link, self.plain_http)?
        } else if link.starts_with('/') && !link.starts_with("//") {
            checked(&format!("{}{link}", self.root()), self.plain_http)?
        } else if link.starts_with("//") {
            return Err("no scheme");
        } else {
            let (own, _) = self.path.split_once('?').unwrap_or((&self.path, ""));
            let parent = own.rsplit_once('/').map_or("", |(parent, _)| parent);
            checked(&format!("{}{parent}/{link}", self.root()), self.plain_http)?
        };
        if self.secure && !target.secure {
            Err("downgrade from TLS")
        } else {
            Ok(target)
        }
    }

    fn root(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    /// Returns the path without its leading slash.
    pub(crate) fn bare_path(&self) -> &str {
        self.path.trim_matches('/')
    }

    /// Returns the host without the port.
    pub(crate) fn host(&self) -> &str {
        match self.authority.rsplit_once(':') {
            // The colon may be part of an IPv6 address.
            Some((host, port)) if !port.contains(']') => host,
            _ => &self.authority,
        }
    }

    /// Whether credentials for this address may be sent to `other`.
    pub(crate) fn same_host(&self, other: &Self) -> bool {
        (self.secure, &self.authority) == (other.secure, &other.authority)
    }
}

fn checked(text: &str, plain_http: bool) -> Result<Address, &'static str> {
    if text.len() > 4096 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("invalid character");
    }
    let (scheme, rest) = text.split_once("://").ok_or("no scheme")?;
    let secure = match scheme {
        "https" => true,
        "http" => false,
        _ => return Err("scheme must be https, http or oci"),
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let cut = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(cut);
    if authority.is_empty() {
        return Err("no host");
    }
    if authority.contains('@') {
        return Err("credentials are not allowed in addresses");
    }
    if !secure && !plain_http && !is_loopback(authority) {
        return Err("TLS is required; use --plain-http to allow unencrypted connections");
    }
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Ok(Address {
        secure,
        authority: authority.to_owned(),
        path,
        plain_http,
    })
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the address without a password.
fn shown(text: &str) -> String {
    let safe = match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        _ => text.to_owned(),
    };
    safe.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, plain_http: bool, expected: Result<&str, &str>) {
        let found = Address::parse(text, plain_http)
            .map(|address| address.to_string())
            .map_err(|error| error.to_string());
        assert_eq!(found.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn addresses_are_parsed() {
        check("https://h.example/charts", false, Ok("https://h.example/charts"));
        check("https://h.example", false, Ok("https://h.example/"));
        check("https://h.example?x=1#f", false, Ok("https://h.example/?x=1"));
        check("http://127.0.0.1:80/c", false, Ok("http://127.0.0.1:80/c"));
        check("http://[::1]:80/c", false, Ok("http://[::1]:80/c"));
        check("http://h.example/c", true, Ok("http://h.example/c"));
    }

    #[test]
    fn invalid_addresses_are_rejected() {
        let no = |text, reason| {
            check(text, false, Err(&format!("invalid address {text:?}: {reason}")));
        };
        no("h.example/charts", "no scheme");
        no("ftp://h.example", "scheme must be https, http or oci");
        no("file:///etc/passwd", "scheme must be https, http or oci");
        no("https:///x", "no host");
        no("https://h.example/a b", "invalid character");
        no(
            "http://h.example/c",
            "TLS is required; use --plain-http to allow unencrypted connections",
        );
        no(
            "http://127.0.0.1.h.example/c",
            "TLS is required; use --plain-http to allow unencrypted connections",
        );
    }

    #[test]
    fn passwords_are_not_printed() {
        check(
            "https://me:secret@h.example/c",
            false,
            Err("invalid address \"https://…@h.example/c\": credentials are not allowed in addresses"),
        );
    }

    #[test]
    fn links_are_resolved_relative_to_their_page() {
        let at = Address::parse("https://h.example/charts/index.yaml?x=/y", false).unwrap();
        let join = |link: &str| at.join(link).map(|address| address.to_string());
        assert_eq!(join("a.tgz").as_deref(), Ok("https://h.example/charts/a.tgz"));
        assert_eq!(join("/a.tgz").as_deref(), Ok("https://h.example/a.tgz"));
        assert_eq!(
            join("https://other.example/a.tgz").as_deref(),
            Ok("https://other.example/a.tgz")
        );
        assert_eq!(join("http://127.0.0.1/a.tgz"), Err("downgrade from TLS"));
        assert_eq!(join("//other.example/a"), Err("no scheme"));
        assert_eq!(
            join("ftp://h.example/a"),
            Err("scheme must be https, http or oci")
        );
    }
}
