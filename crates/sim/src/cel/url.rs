//! The URL library of CEL in Kubernetes (`url`, `isURL`, `getHost`, …).

use std::borrow::Cow;
use std::rc::Rc;

use mainstay_gostd::url::{ParseError, Url, parse, parse_request_uri, query_unescape};
use mainstay_gostd::utf8::to_string_lossy;

use super::eval::{Failure, NO_OVERLOAD, Outcome};
use super::value::Val;

/// Calls a function of the URL library; returns `None` if `name` is not one.
pub(super) fn call_function<'a>(name: &str, values: &[Val<'a>]) -> Option<Outcome<'a>> {
    Some(match (name, values) {
        ("isURL", [Val::Text(text)]) => Ok(Val::Bool(parse_absolute(text).is_ok())),
        ("url", [Val::Text(text)]) => match parse_absolute(text) {
            Ok(_) => Ok(Val::Url(text.as_ref().into())),
            Err(error) => Failure::error(format!("URL parse error during conversion from string: {error}")),
        },
        (
            "getScheme" | "getHost" | "getHostname" | "getPort" | "getEscapedPath" | "getQuery",
            [Val::Url(text)],
        ) => {
            let Ok(url) = parse_absolute(text) else {
                return Some(Failure::error(NO_OVERLOAD));
            };
            Ok(match name {
                "getScheme" => text_value(&url.scheme),
                "getHost" => text_value(&url.host),
                "getHostname" => text_value(url.hostname()),
                "getPort" => text_value(url.port()),
                "getEscapedPath" => text_value(&url.escaped_path()),
                _ => parse_query(&url.query),
            })
        }
        _ => return None,
    })
}

/// Parses an absolute URL or path. The text is parsed twice as in Kubernetes, because the parser of
/// request URIs does not recognize fragments.
fn parse_absolute(text: &str) -> Result<Url, ParseError> {
    parse_request_uri(text.as_bytes())?;
    parse(text.as_bytes())
}

fn text_value<'a>(bytes: &[u8]) -> Val<'a> {
    Val::Text(Cow::Owned(to_string_lossy(bytes).into_owned()))
}

/// Parses a query into a map of lists like Go's `url.ParseQuery`. Malformed pairs are skipped.
fn parse_query<'a>(text: &[u8]) -> Val<'a> {
    let mut all: Vec<(Val<'a>, Val<'a>)> = Vec::new();
    let pairs = text.split(|byte| *byte == b'&');
    for pair in pairs.filter(|pair| !pair.is_empty() && !pair.contains(&b';')) {
        let mut parts = pair.splitn(2, |byte| *byte == b'=');
        let mut part = || query_unescape(parts.next().unwrap_or_default());
        let (Ok(key), Ok(value)) = (part(), part()) else {
            continue;
        };
        let (key, value) = (text_value(&key), text_value(&value));
        match all.iter_mut().find(|(existing, _)| existing.equals(&key)) {
            Some((_, Val::List(list))) => Rc::make_mut(list).push(value),
            _ => all.push((key, Val::List(Rc::new(vec![value])))),
        }
    }
    Val::Map(Rc::new(all))
}
