//! URLs, taken apart and put together as Go's net/url does it.

mod address;
mod escape;
mod parse;

use std::collections::BTreeMap;

use mainstay_template::{Call, Failure, Function, Map, Str, Type, Value};

use crate::table::fixed;
use escape::{Part, escape};
use parse::{Url, User, is_optional_port, parse};

pub(crate) const TABLE: &[Function] = &[
    fixed("urlParse", &[Type::String], url_parse),
    fixed("urlJoin", &[Type::MapOfAny], url_join),
];

/// Why a text is no URL, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct UrlError(String);

fn url_parse(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.string(3 * text.len())?;
    let url = parse(&text).map_err(|error| Failure::message(format!("unable to parse url: {error}")))?;
    let host_name = host_name(&url.host).to_vec();
    let user = url.user.as_ref().map(user_text).unwrap_or_default();
    let entries = [
        ("scheme", url.scheme),
        ("host", url.host),
        ("hostname", host_name),
        ("path", url.path),
        ("query", url.query),
        ("opaque", url.opaque),
        ("fragment", url.fragment),
        ("userinfo", user),
    ];
    let entries = entries
        .into_iter()
        .map(|(key, value)| (Str::from(key), Value::string(value)));
    Ok(Value::map(entries.collect::<BTreeMap<_, _>>()))
}

/// The host without its port and brackets.
fn host_name(host: &[u8]) -> &[u8] {
    let colon = host
        .iter()
        .rposition(|b| *b == b':')
        .filter(|at| is_optional_port(host.get(*at..).unwrap_or_default()));
    let host = colon.and_then(|at| host.get(..at)).unwrap_or(host);
    host.strip_prefix(b"[")
        .and_then(|inner| inner.strip_suffix(b"]"))
        .unwrap_or(host)
}

fn user_text(user: &User) -> Vec<u8> {
    let mut text = escape(&user.name, Part::User);
    if let Some(password) = &user.password {
        text.push(b':');
        text.extend(escape(password, Part::User));
    }
    text
}

fn url_join(call: &mut Call<'_>) -> Result<Value, Failure> {
    let map = call.map(0);
    let part = |key: &str| text_of(map.as_ref(), key);
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        user: None,
    };
    let user = part("userinfo")?;
    if !user.is_empty() {
        let text = [b"proto://", user.as_slice(), b"@host"].concat();
        let parsed = parse(&text)
            .map_err(|error| Failure::message(format!("unable to parse userinfo in dict: {error}")))?;
        url.user = parsed.user;
    }
    let text = url_text(&url);
    call.meter.string(text.len())?;
    Ok(Value::string(text))
}

fn text_of(map: Option<&Map>, key: &str) -> Result<Vec<u8>, Failure> {
    match map.and_then(|map| map.get(key.as_bytes())) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(text.to_vec()),
        Some(Value::Nil) => Err(Failure::message(
            "runtime error: invalid memory address or nil pointer dereference",
        )),
        Some(other) => Err(Failure::message(format!(
            "unable to parse {key} key, must be of type string, but {} found",
            other.kind_name()
        ))),
    }
}

fn url_text(url: &Url) -> Vec<u8> {
    let mut out = Vec::new();
    if !url.scheme.is_empty() {
        out.extend_from_slice(&url.scheme);
        out.push(b':');
    }
    if url.opaque.is_empty() {
        push_hierarchy(&mut out, url);
    } else {
        out.extend_from_slice(&url.opaque);
    }
    if !url.query.is_empty() {
        out.push(b'?');
        out.extend_from_slice(&url.query);
    }
    if !url.fragment.is_empty() {
        out.push(b'#');
        out.extend(escape(&url.fragment, Part::Fragment));
    }
    out
}

fn push_hierarchy(out: &mut Vec<u8>, url: &Url) {
    if !url.scheme.is_empty() || !url.host.is_empty() || url.user.is_some() {
        if !url.host.is_empty() || !url.path.is_empty() || url.user.is_some() {
            out.extend_from_slice(b"//");
        }
        if let Some(user) = &url.user {
            out.extend(user_text(user));
            out.push(b'@');
        }
        out.extend(escape(&url.host, Part::Host));
    }
    let path = if url.path == b"*" {
        url.path.clone()
    } else {
        escape(&url.path, Part::Path)
    };
    if path.first().is_some_and(|b| *b != b'/') && !url.host.is_empty() {
        out.push(b'/');
    }
    if out.is_empty()
        && path
            .split(|b| *b == b'/')
            .next()
            .is_some_and(|segment| segment.contains(&b':'))
    {
        out.extend_from_slice(b"./");
    }
    out.extend(path);
}
