//! Compares URLs with Go's net/url.

use mainstay_template::{Map, MapType, Value};

use crate::support::{Case, Print, Random, call, cases, compare_with_go, format_value};

fn check(text: &str, expected: &str) {
    let got = call("urlParse", &[text.into()]);
    let got = got.map_or_else(
        |e| e,
        |value| String::from_utf8_lossy(&format_value(&value)).into_owned(),
    );
    assert_eq!(got, expected, "{text:?}");
}

#[test]
fn urls_are_parsed_as_in_go() {
    check(
        "http://user:p%40ss@example.com:8080/a%20b?q=1#frag",
        "<fragment=frag><host=example.com:8080><hostname=example.com><opaque=><path=/a b><query=q=1><scheme=http>\
         <userinfo=user:p%40ss>",
    );
    check(
        "a:b:c",
        "<fragment=><host=><hostname=><opaque=b:c><path=><query=><scheme=a><userinfo=>",
    );
    check(
        "http://[fe80::1%25en0]:80/",
        "<fragment=><host=[fe80::1%en0]:80><hostname=fe80::1%en0><opaque=><path=/><query=><scheme=http><userinfo=>",
    );
    check(
        "%zz",
        "unable to parse url: parse \"%zz\": invalid URL escape \"%zz\"",
    );
    check(
        "http://a:b",
        "unable to parse url: parse \"http://a:b\": invalid port \":b\" after host",
    );
    check(
        "http://[::1",
        "unable to parse url: parse \"http://[::1\": missing ']' in host",
    );
    check(":x", "unable to parse url: parse \":x\": missing protocol scheme");
    check(
        "1:x",
        "unable to parse url: parse \"1:x\": first path segment in URL cannot contain colon",
    );
}

#[test]
fn random_urls_agree_with_go() {
    let mut random = Random(6);
    let cases: Vec<_> = (0..cases())
        .map(|_| Case("urlParse", vec![url(&mut random)]))
        .collect();
    compare_with_go("URLs parsed", Print::Map, &cases);
}

#[test]
fn random_parts_agree_with_go() {
    let mut random = Random(7);
    let cases: Vec<_> = (0..cases())
        .map(|_| Case("urlJoin", vec![parts(&mut random)]))
        .collect();
    compare_with_go("URLs joined", Print::Plain, &cases);
}

const PIECES: &[&str] = &[
    "http",
    "https",
    "a",
    ":",
    "//",
    "/",
    "?",
    "#",
    "@",
    "example.com",
    ":80",
    ":",
    "[::1]",
    "[",
    "]",
    "%20",
    "%zz",
    "%",
    "%25",
    "é",
    " ",
    "*",
    "..",
    "b=c",
    "&",
    "user",
    "1.2.3.4",
    "::ffff:1.2.3.4",
    "fe80::1%25en0",
    "'",
    "\"",
    "<",
    "\u{7f}",
    "%41",
    "%C3%A9",
    "!",
    "$",
    "(",
    "+",
    ";",
    "~",
    "{",
    "\\",
    "|",
    "0",
    "::",
    "1:2:3:4:5:6:7:8",
    "12345::",
];

fn url(random: &mut Random) -> Value {
    let mut text = String::new();
    if random.chance(50) {
        text += random.pick(&[
            "http://", "https://", "HTTP://", "mailto:", "proto://", "//", "/", "oci://",
        ]);
    }
    if random.chance(10) {
        text += "[";
        text += random.pick(&[
            "::1",
            "fe80::1%25en0",
            "1.2.3.4",
            "1::2::3",
            "::ffff:1.2.3.4",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7",
            "12345::",
            "::%25",
            "g::",
            "1:2:3:4:5:6:7:8:9",
            "::1.2.3",
            "::1.2.3.400",
            "1:2:3:4:5:6:7::8",
            "x",
            "1:",
            ":1",
            "::1%41",
            "1:2:3:4:5:6:1.2.3.4",
            "1:2:1.2.3.4",
            "::01.2.3.4",
            "::1..2.3",
            "%25a",
            "1::2:3:4:5:6:7:8.1.1.1",
        ]);
        text += "]";
        text += random.pick(&["", ":80", ":x", "x", ":"]);
    }
    for _ in 0..random.below(7) {
        text += random.pick(PIECES);
    }
    text.into()
}

fn parts(random: &mut Random) -> Value {
    let map = Map::new(MapType::Any, std::collections::BTreeMap::new());
    let keys = [
        "scheme", "host", "path", "query", "opaque", "fragment", "userinfo", "other",
    ];
    for key in keys {
        if random.chance(55) {
            let text: String = (0..random.below(4)).map(|_| random.pick(PIECES)).collect();
            let value = if random.chance(2) {
                Value::int(1)
            } else {
                text.into()
            };
            map.insert(key, value);
        }
    }
    Value::Map(map)
}
