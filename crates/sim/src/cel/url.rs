//! Addresses (`url(…)`): takes a text, gives its parts. Knows no network.

use std::borrow::Cow;
use std::rc::Rc;

use super::eval::{Failure, NO_OVERLOAD, Outcome};
use super::value::Val;

/// Functions about addresses; none when the function is another.
pub(super) fn apply<'a>(name: &str, values: &[Val<'a>]) -> Option<Outcome<'a>> {
    Some(match (name, values) {
        ("isURL", [Val::Text(text)]) => Ok(Val::Bool(parts(text).is_some())),
        ("url", [Val::Text(text)]) => match parts(text) {
            Some(_) => Ok(Val::Url(text.as_ref().into())),
            None => Failure::of(format!(
                "URL parse error during conversion from string: parse {text:?}: invalid URI for request"
            )),
        },
        (
            "getScheme" | "getHost" | "getHostname" | "getPort" | "getEscapedPath" | "getQuery",
            [Val::Url(text)],
        ) => {
            let Some(parts) = parts(text) else {
                return Some(Failure::of(NO_OVERLOAD));
            };
            let (hostname, port) = split_port(parts.host);
            let text = |part: &str| Val::Text(Cow::Owned(part.to_owned()));
            Ok(match name {
                "getScheme" => text(parts.scheme),
                "getHost" => text(parts.host),
                "getHostname" => text(hostname),
                "getPort" => text(port),
                "getEscapedPath" => text(parts.path),
                _ => query(parts.query),
            })
        }
        _ => return None,
    })
}

struct Parts<'t> {
    scheme: &'t str,
    host: &'t str,
    path: &'t str,
    query: &'t str,
}

/// An absolute address or an absolute path.
fn parts(text: &str) -> Option<Parts<'_>> {
    if text.chars().any(|c| c.is_control() || c == ' ') {
        return None;
    }
    let (scheme, rest) = if text.starts_with('/') {
        ("", text)
    } else {
        let (scheme, rest) = text.split_once(':')?;
        let letters = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(letters) {
            return None;
        }
        (scheme, rest)
    };
    let rest = rest.split('#').next().unwrap_or("");
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at_checked(rest.find('/').unwrap_or(rest.len()))?,
        None => ("", rest),
    };
    let host = host.rsplit('@').next().unwrap_or("");
    let (_, port) = split_port(host);
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(Parts {
        scheme,
        host,
        path,
        query,
    })
}

fn split_port(host: &str) -> (&str, &str) {
    if let Some((inner, rest)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (inner, rest.strip_prefix(':').unwrap_or(""));
    }
    host.rsplit_once(':').unwrap_or((host, ""))
}

fn query<'a>(text: &str) -> Val<'a> {
    let mut all: Vec<(Val<'a>, Val<'a>)> = Vec::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (Val::text(key), Val::text(value));
        match all.iter_mut().find(|(own, _)| own.equals(&key)) {
            Some((_, Val::List(list))) => Rc::make_mut(list).push(value),
            _ => all.push((key, Val::List(Rc::new(vec![value])))),
        }
    }
    Val::Map(Rc::new(all))
}
