//! Parsing of URLs.

use super::address::check_ipv6;
use super::escape::{Component, escape, unescape};
use super::{ParseError, Url, UrlError, User};

/// Parses a URL or a relative reference (`url.Parse`).
pub fn parse(text: &[u8]) -> Result<Url, ParseError> {
    let (body, fragment) = cut(text, b'#');
    let mut url = parse_body(body, false).map_err(|reason| reason.in_text(body))?;
    if let Some(fragment) = fragment {
        url.fragment = unescape(fragment, Component::Fragment).map_err(|reason| reason.in_text(text))?;
    }
    Ok(url)
}

/// Parses an absolute URL or an absolute path without a fragment (`url.ParseRequestURI`).
pub fn parse_request_uri(text: &[u8]) -> Result<Url, ParseError> {
    parse_body(text, true).map_err(|reason| reason.in_text(text))
}

impl UrlError {
    fn in_text(self, text: &[u8]) -> ParseError {
        ParseError {
            text: text.to_vec(),
            reason: self,
        }
    }
}

/// Splits `text` at the first occurrence of `sign`.
fn cut(text: &[u8], sign: u8) -> (&[u8], Option<&[u8]>) {
    let mut parts = text.splitn(2, |b| *b == sign);
    (parts.next().unwrap_or_default(), parts.next())
}

fn parse_body(text: &[u8], request: bool) -> Result<Url, UrlError> {
    if text.iter().any(u8::is_ascii_control) {
        return Err(UrlError::ControlCharacter);
    }
    if request && text.is_empty() {
        return Err(UrlError::Empty);
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
        if request {
            return Err(UrlError::NotARequestUri);
        }
        if cut(rest, b'/').0.contains(&b':') {
            return Err(UrlError::ColonInFirstSegment);
        }
    }
    let path = if has_authority(&url, rest, request) {
        parse_authority(&mut url, rest.get(2..).unwrap_or_default())?
    } else {
        rest
    };
    url.path = unescape(path, Component::Path)?;
    if escape(&url.path, Component::Path) != path {
        url.raw_path = path.to_vec();
    }
    Ok(url)
}

fn split_scheme(text: &[u8]) -> Result<(&[u8], &[u8]), UrlError> {
    for (index, byte) in text.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err(UrlError::MissingScheme),
            b':' => {
                let (scheme, rest) = cut(text, b':');
                return Ok((scheme, rest.unwrap_or_default()));
            }
            _ => break,
        }
    }
    Ok((b"", text))
}

fn has_authority(url: &Url, rest: &[u8], request: bool) -> bool {
    let allowed = !url.scheme.is_empty() || !request && !rest.starts_with(b"///");
    allowed && rest.starts_with(b"//")
}

/// Parses `user@host` at the start of `after`, the text after `//`. Returns the path.
fn parse_authority<'a>(url: &mut Url, after: &'a [u8]) -> Result<&'a [u8], UrlError> {
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
        return Err(UrlError::UserInfo);
    }
    let (name, password) = cut(text, b':');
    let name = unescape(name, Component::User)?;
    let password = password
        .map(|password| unescape(password, Component::User))
        .transpose()?;
    Ok(User { name, password })
}

fn parse_host(scheme: &[u8], host: &[u8]) -> Result<Vec<u8>, UrlError> {
    match host.iter().rposition(|b| *b == b'[') {
        Some(0) => return parse_bracketed(host),
        Some(_) => return Err(UrlError::IpLiteral),
        None => {}
    }
    let first = host.iter().position(|b| *b == b':');
    // Only http and https reject a second colon (https://go.dev/issue/78077).
    let strict = scheme == b"http" || scheme == b"https";
    let colon = if strict {
        first
    } else {
        host.iter().rposition(|b| *b == b':')
    };
    check_port(colon.and_then(|at| host.get(at..)).unwrap_or_default())?;
    unescape(host, Component::Host)
}

fn check_port(port: &[u8]) -> Result<(), UrlError> {
    if is_optional_port(port) {
        return Ok(());
    }
    Err(UrlError::Port(port.to_vec()))
}

/// Whether `port` is empty, or a colon followed by zero or more digits.
pub(super) fn is_optional_port(port: &[u8]) -> bool {
    port.split_first()
        .is_none_or(|(colon, digits)| *colon == b':' && digits.iter().all(u8::is_ascii_digit))
}

fn parse_bracketed(host: &[u8]) -> Result<Vec<u8>, UrlError> {
    let Some(close) = host.iter().rposition(|b| *b == b']') else {
        return Err(UrlError::MissingBracket);
    };
    let port = host.get(close + 1..).unwrap_or_default();
    check_port(port)?;
    let inside = host.get(1..close).unwrap_or_default();
    let zone = inside
        .windows(3)
        .position(|window| window == b"%25")
        .unwrap_or(inside.len());
    let (address, zone) = inside.split_at_checked(zone).unwrap_or((inside, b""));
    let address = [
        unescape(address, Component::Host)?,
        unescape(zone, Component::Zone)?,
    ]
    .concat();
    check_ipv6(&address)?;
    Ok([b"[", address.as_slice(), b"]", port].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match parse(text.as_bytes()) {
            Ok(url) => String::from_utf8(url.to_bytes()).unwrap(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn urls_are_parsed_and_formatted_as_in_go() {
        check("http://u:p%40@h:80/a%20b?q=1#f", "http://u:p%40@h:80/a%20b?q=1#f");
        check("HTTP://h", "http://h");
        check("mailto:a@b", "mailto:a@b");
        check("/a:b", "/a:b");
        check("/a%2Fb", "/a%2Fb");
        check("http://[fe80::1%25en0]:80/", "http://[fe80::1%25en0]:80/");
        check("//h/p", "//h/p");
        check("*", "*");
    }

    #[test]
    fn error_messages_equal_gos() {
        check(":a", r#"parse ":a": missing protocol scheme"#);
        check("a:b/c:80 d", "a:b/c:80 d");
        check(
            "a b:c",
            r#"parse "a b:c": first path segment in URL cannot contain colon"#,
        );
        check(
            "http://h:a/",
            r#"parse "http://h:a/": invalid port ":a" after host"#,
        );
        check(
            "http://[1.2.3.4]/",
            r#"parse "http://[1.2.3.4]/": invalid IP-literal"#,
        );
        check("/%zz", r#"parse "/%zz": invalid URL escape "%zz""#);
        check(
            "http://a b/",
            r#"parse "http://a b/": invalid character " " in host name"#,
        );
        check(
            "http://[::g]/",
            r#"parse "http://[::g]/": invalid host: ParseAddr("::g"): each colon-separated field must have at least one digit (at "g")"#,
        );
    }

    #[test]
    fn a_request_uri_is_absolute() {
        let check = |text: &str, expected: &str| {
            let shown =
                parse_request_uri(text.as_bytes()).map_or_else(|error| error.to_string(), |_| "ok".into());
            assert_eq!(shown, expected, "{text}");
        };
        check("/a?b=c", "ok");
        check("https://h:443/a", "ok");
        check("//h/a", "ok");
        check("a/b", r#"parse "a/b": invalid URI for request"#);
        check("", r#"parse "": empty url"#);
    }

    #[test]
    fn hosts_are_split() {
        let url = parse(b"https://[::1]:8443/").unwrap();
        assert_eq!((url.hostname(), url.port()), (&b"::1"[..], &b"8443"[..]));
        let url = parse(b"https://example.org").unwrap();
        assert_eq!((url.hostname(), url.port()), (&b"example.org"[..], &b""[..]));
    }
}
