//! The functions `urlParse` and `urlJoin`, with the rules of Go's net/url.

use std::collections::BTreeMap;

use mainstay_gostd::url::{Url, User, parse};
use mainstay_template::{Call, Failure, Function, Map, Str, Type, Value};

use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[
    fixed("urlParse", &[Type::String], url_parse),
    fixed("urlJoin", &[Type::MapOfAny], url_join),
];

fn url_parse(call: &mut Call<'_>) -> Result<Value, Failure> {
    let text = call.str(0);
    call.meter.reserve_string(3 * text.len())?;
    let url = parse(&text).map_err(|error| Failure::message(format!("unable to parse url: {error}")))?;
    let hostname = url.hostname().to_vec();
    let user = url.user.as_ref().map(User::to_bytes).unwrap_or_default();
    let entries = [
        ("scheme", url.scheme),
        ("host", url.host),
        ("hostname", hostname),
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

fn url_join(call: &mut Call<'_>) -> Result<Value, Failure> {
    let map = call.map(0);
    let part = |key: &str| text_field(map.as_ref(), key);
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        ..Url::default()
    };
    let user = part("userinfo")?;
    if !user.is_empty() {
        let text = [b"proto://", user.as_slice(), b"@host"].concat();
        let parsed = parse(&text)
            .map_err(|error| Failure::message(format!("unable to parse userinfo in dict: {error}")))?;
        url.user = parsed.user;
    }
    let text = url.to_bytes();
    call.meter.reserve_string(text.len())?;
    Ok(Value::string(text))
}

fn text_field(map: Option<&Map>, key: &str) -> Result<Vec<u8>, Failure> {
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
