//! An address to pull from: takes text, gives scheme, host and path that were looked at. Opens no connection.

use std::fmt;
use std::net::IpAddr;

use super::error::RemoteError;

/// An `http` or `https` address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    secure: bool,
    /// Host, and port if one is named.
    authority: String,
    /// Begins with a slash; holds no fragment.
    path: String,
    /// May what is not encrypted leave this machine?
    plain_http: bool,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

impl Address {
    /// Reads `text`. Without TLS an address must be a loopback one, unless `plain_http`.
    pub(crate) fn parse(text: &str, plain_http: bool) -> Result<Self, RemoteError> {
        checked(text, plain_http).map_err(|reason| RemoteError::Address {
            address: shown(text),
            reason,
        })
    }

    /// The address of `path` below this one.
    pub(crate) fn below(&self, path: &str) -> Self {
        let (own, _) = self.path.split_once('?').unwrap_or((&self.path, ""));
        Self {
            path: format!("{}/{path}", own.trim_end_matches('/')),
            ..self.clone()
        }
    }

    /// The address of `path` from this host's root.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self.clone()
        }
    }

    /// What a link on the page of this address leads to: whole, from the root, or beside it.
    pub(crate) fn join(&self, link: &str) -> Result<Self, &'static str> {
        let target = if link.contains("://") {
            checked(link, self.plain_http)?
        } else if link.starts_with('/') && !link.starts_with("//") {
            checked(&format!("{}{link}", self.root()), self.plain_http)?
        } else if link.starts_with("//") {
            return Err("it names no scheme");
        } else {
            let (own, _) = self.path.split_once('?').unwrap_or((&self.path, ""));
            let folder = own.rsplit_once('/').map_or("", |(folder, _)| folder);
            checked(&format!("{}{folder}/{link}", self.root()), self.plain_http)?
        };
        if self.secure && !target.secure {
            Err("it leaves TLS")
        } else {
            Ok(target)
        }
    }

    fn root(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    /// The path, without the slash it begins with.
    pub(crate) fn bare_path(&self) -> &str {
        self.path.trim_matches('/')
    }

    /// May a credential for this address be sent to `other`?
    pub(crate) fn same_host(&self, other: &Self) -> bool {
        (self.secure, &self.authority) == (other.secure, &other.authority)
    }
}

fn checked(text: &str, plain_http: bool) -> Result<Address, &'static str> {
    if text.len() > 4096 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("it holds characters that an address cannot");
    }
    let (scheme, rest) = text.split_once("://").ok_or("it names no scheme")?;
    let secure = match scheme {
        "https" => true,
        "http" => false,
        _ => return Err("its scheme is none of https, http and oci"),
    };
    let rest = rest.split('#').next().unwrap_or_default();
    let cut = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(cut);
    if authority.is_empty() {
        return Err("it names no host");
    }
    if authority.contains('@') {
        return Err("credentials in addresses end up in logs and are not taken");
    }
    if !secure && !plain_http && !is_loopback(authority) {
        return Err("without TLS only this machine is spoken to; --plain-http allows it");
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

/// What may be repeated to the user: a password may not.
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
    fn addresses_are_read() {
        check("https://h.example/charts", false, Ok("https://h.example/charts"));
        check("https://h.example", false, Ok("https://h.example/"));
        check("https://h.example?x=1#f", false, Ok("https://h.example/?x=1"));
        check("http://127.0.0.1:80/c", false, Ok("http://127.0.0.1:80/c"));
        check("http://[::1]:80/c", false, Ok("http://[::1]:80/c"));
        check("http://h.example/c", true, Ok("http://h.example/c"));
    }

    #[test]
    fn what_is_no_address_is_told() {
        let no = |text, reason| {
            check(
                text,
                false,
                Err(&format!("{text:?} is no address to pull from: {reason}")),
            );
        };
        no("h.example/charts", "it names no scheme");
        no("ftp://h.example", "its scheme is none of https, http and oci");
        no("file:///etc/passwd", "its scheme is none of https, http and oci");
        no("https:///x", "it names no host");
        no(
            "https://h.example/a b",
            "it holds characters that an address cannot",
        );
        no(
            "http://h.example/c",
            "without TLS only this machine is spoken to; --plain-http allows it",
        );
        no(
            "http://127.0.0.1.h.example/c",
            "without TLS only this machine is spoken to; --plain-http allows it",
        );
    }

    #[test]
    fn a_password_is_not_repeated() {
        check(
            "https://me:secret@h.example/c",
            false,
            Err(
                "\"https://…@h.example/c\" is no address to pull from: credentials in addresses end up in logs and are not taken",
            ),
        );
    }

    #[test]
    fn links_are_followed_from_where_they_stand() {
        let at = Address::parse("https://h.example/charts/index.yaml?x=/y", false).unwrap();
        let join = |link: &str| at.join(link).map(|address| address.to_string());
        assert_eq!(join("a.tgz").as_deref(), Ok("https://h.example/charts/a.tgz"));
        assert_eq!(join("/a.tgz").as_deref(), Ok("https://h.example/a.tgz"));
        assert_eq!(
            join("https://other.example/a.tgz").as_deref(),
            Ok("https://other.example/a.tgz")
        );
        assert_eq!(join("http://127.0.0.1/a.tgz"), Err("it leaves TLS"));
        assert_eq!(join("//other.example/a"), Err("it names no scheme"));
        assert_eq!(
            join("ftp://h.example/a"),
            Err("its scheme is none of https, http and oci")
        );
    }
}
