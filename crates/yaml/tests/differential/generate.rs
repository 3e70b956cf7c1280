//! Random inputs with a high share of YAML syntax.

use mainstay_testkit::Random;
use mainstay_yaml::{KeyOrder, Map, Value};

const PIECES: &[&str] = &[
    "a",
    "b",
    "word",
    " ",
    " ",
    "  ",
    "\n",
    "\n",
    "\n\n",
    "\t",
    "\r",
    "\r\n",
    ":",
    ": ",
    " #",
    "#",
    "-",
    "- ",
    "?",
    "? ",
    ",",
    "[",
    "]",
    "{",
    "}",
    "&",
    "*",
    "!",
    "|",
    ">",
    "'",
    "\"",
    "%",
    "@",
    "`",
    "~",
    "=",
    "<<",
    "<",
    "$",
    "\\",
    "/",
    "_",
    ".",
    "0",
    "1",
    "7",
    "9",
    "e",
    "E",
    "+",
    "x",
    "é",
    "ß",
    "日本",
    "😀",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{2029}",
    "\u{feff}",
    "\u{7f}",
    "\u{9f}",
    "\u{fffd}",
    "\u{ffff}",
    "\0",
    "\u{1}",
    "\u{7}",
    "\u{8}",
    "\u{b}",
    "\u{c}",
    "\u{1b}",
    "\u{d7ff}",
    "\u{e000}",
    "\u{10ffff}",
    "{{ .x }}",
    "---",
    "...",
    "key: value",
    "long-word-with-dashes",
    "some text that goes on",
];

const WORDS: &[&str] = &[
    "",
    "y",
    "Y",
    "n",
    "N",
    "yes",
    "No",
    "on",
    "On",
    "oN",
    "off",
    "OFF",
    "true",
    "True",
    "TRUE",
    "tRUE",
    "false",
    "null",
    "Null",
    "NULL",
    "nULL",
    "~",
    "<<",
    "=",
    ".",
    "..",
    "...",
    "-",
    "--",
    "---",
    "--- a",
    "... a",
    ".inf",
    "-.inf",
    "+.Inf",
    ".NaN",
    ".nan",
    "1",
    "-1",
    "+1",
    "0",
    "-0",
    "00",
    "007",
    "08",
    "0o14",
    "0o-7",
    "-0o7",
    "0b101",
    "0b-1",
    "-0b1",
    "0b2",
    "0x1F",
    "0X1f",
    "0x",
    "1_000",
    "_1",
    "1__0",
    "1e3",
    "1e",
    "1E-5",
    "1e400",
    ".5",
    "5.",
    ".5_0",
    "._5",
    ".5_",
    "1.2.3",
    "1:2",
    "12:30:45",
    "1:60",
    "-1:30.5_",
    "1:",
    "2001-01-01",
    "2001-1-1",
    "2001-99-99",
    "2001-12-14T21:59:43.10-05:00",
    "2001-12-14 21:59:43.10",
    "2001-12-14t21:59:43Z",
    "2001-02-30",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "5m",
    "100Mi",
    "a:b",
    "a: b",
    "a #b",
    "a#b",
    "- a",
    "-a",
    "? a",
    "?a",
    ": a",
    ":a",
    "'a'",
    "\"a\"",
    "it's",
    " lead",
    "trail ",
    "a\nb",
    "a\n",
    "\na",
    "\n",
    "\n\n",
    " \n",
    "a\n\n",
    "a \nb",
    "a\n b",
    " a\nb",
    "\ta",
    "a\t",
    "a\tb",
    "a\n\tb",
    "[a]",
    "{a}",
    "%a",
    "@a",
    "`a",
    "|",
    ">",
    "!a",
    "&a",
    "*a",
    "#a",
];

/// Returns a word, a few pieces, or a long line.
pub(crate) fn string(random: &mut Random) -> String {
    match random.below(10) {
        0 | 1 => (*random.pick(WORDS)).to_owned(),
        2 => {
            let alphabet: Vec<char> = "0123456789_+-.eExXbBoO:TtZz /,".chars().collect();
            (0..random.below(14)).map(|_| *random.pick(&alphabet)).collect()
        }
        3 => long_line(random),
        4 => date(random),
        _ => (0..=random.below(9)).map(|_| *random.pick(PIECES)).collect(),
    }
}

fn long_line(random: &mut Random) -> String {
    let mut out = String::new();
    let target = random.below(400);
    while out.len() < target {
        for _ in 0..=random.below(14) {
            out.push(char::from(b'a' + random.below(26) as u8));
        }
        let gap = match random.below(40) {
            0 => "  ",
            1 => "\n",
            2 => ": ",
            3 => " #",
            4 => "é",
            5 => "'",
            6 => "\"",
            7 => " \n",
            8 => "\t",
            9 => "😀",
            _ => " ",
        };
        out.push_str(gap);
    }
    out
}

fn date(random: &mut Random) -> String {
    let mut out = format!(
        "{:04}-{}-{}",
        random.below(3000),
        random.below(14),
        random.below(33)
    );
    if random.chance(1, 2) {
        out.push_str(random.pick::<&str>(&["T", "t", " ", "  ", "x"]));
        let time = [random.below(25), random.below(61), random.below(61)];
        out.push_str(&time.map(|part| part.to_string()).join(":"));
        out.push_str(random.pick::<&str>(&["", ".5", ",123", ".", ".1234567890123"]));
        out.push_str(random.pick::<&str>(&["", "Z", "+01:00", "-24:60", "+25:00", "z", " Z", "+1:00"]));
    }
    out
}

/// Returns a number of any kind.
pub(crate) fn number(random: &mut Random) -> Value {
    match random.below(6) {
        0 => Value::Float(random.below(2000) as f64 - 1000.0),
        1 => Value::Float(f64::from_bits(random.next_u64())),
        2 => Value::Float((random.below(1_000_000) as f64) * 10f64.powi(random.below(40) as i32 - 20)),
        3 => Value::Float(random.next_u64() as f64),
        4 => Value::Float(-(random.below(100) as f64) / 7.0),
        _ => Value::Float(0.0),
    }
}

/// Returns a nested document. Numbers are floats, as in JSON.
pub(crate) fn document(random: &mut Random, depth: usize) -> Value {
    let kind = if depth == 0 {
        4 + random.below(6)
    } else {
        random.below(10)
    };
    match kind {
        0 | 1 => Value::List(
            (0..random.below(5))
                .map(|_| document(random, depth - 1))
                .collect(),
        ),
        2 | 3 => {
            let entries = (0..random.below(6)).map(|_| (string(random), document(random, depth - 1)));
            Value::Map(sortable(entries.collect()))
        }
        4 => Value::Null,
        5 => Value::Bool(random.chance(1, 2)),
        6 => match number(random) {
            Value::Float(value) if !value.is_finite() => Value::Float(1.0),
            other => other,
        },
        _ => Value::String(string(random)),
    }
}

/// Keeps only keys that go-yaml can sort: it defines no order for `2`, `10` and `1a`.
fn sortable(mut map: Map) -> Map {
    loop {
        let mut keys: Vec<&String> = map.keys().collect();
        KeyOrder::Natural.sort(&mut keys, |key| key.as_bytes());
        let misplaced = |at: usize| {
            let before = |later: &&String| KeyOrder::Natural.before(later.as_bytes(), keys[at].as_bytes());
            keys.iter().skip(at + 1).any(before)
        };
        let Some(at) = (0..keys.len()).find(|at| misplaced(*at)) else {
            return map;
        };
        let key = keys[at].clone();
        map.remove(&key);
    }
}

const SYNTAX: &[&str] = &[
    "a",
    "b",
    "key",
    "1",
    "0x1F",
    "on",
    "~",
    "null",
    ".inf",
    ".nan",
    "1.5",
    "1e3",
    "2001-01-01",
    ": ",
    ": ",
    ": ",
    ":",
    "\n",
    "\n",
    "\n",
    "\n  ",
    "\n  ",
    "\n    ",
    "\n- ",
    "\n  - ",
    "- ",
    "- ",
    "? ",
    "?",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ",",
    "&x ",
    "*x",
    "&y ",
    "*y",
    "<<: ",
    "<<: *x",
    "!!str ",
    "!!int ",
    "!!float ",
    "!!bool ",
    "!!null ",
    "!!binary ",
    "!!timestamp ",
    "!t ",
    "! ",
    "!<u> ",
    "!!",
    "%YAML 1.1\n",
    "%TAG ! tag:x,2000:\n",
    "%TAG !e! !f\n",
    "!e!g ",
    "\n---\n",
    "---\n",
    "\n...\n",
    "--- ",
    "|",
    "|\n",
    "|-\n  ",
    "|+\n  ",
    "|2\n  ",
    ">\n  ",
    ">-\n  ",
    "| # c\n ",
    "'",
    "'a'",
    "'it''s'",
    "\"",
    "\"a\"",
    "\"\\n\"",
    "\"\\x41\"",
    "\"\\u00e9\"",
    "\"\\q\"",
    "\"\\ud800\"",
    "\\",
    " #c",
    "# c\n",
    "\t",
    " ",
    "  ",
    "\r\n",
    "é",
    "日",
    "😀",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{7f}",
    "\u{1}",
    "aGk=",
    "text and more",
    "@",
    "`",
    "%",
    "a: 1\n",
    "b: 2\n",
    "  c: 3\n",
    "- x\n",
    "x: {a: 1, b: [c, d]}\n",
    "y: &x {p: q}\n",
    "z: *x\n",
    "{{ .x }}",
];

/// Returns text that resembles YAML and often is valid.
pub(crate) fn text(random: &mut Random) -> Vec<u8> {
    let text = any_text(random);
    // go-yaml recognizes a byte order mark inside a text only at the start of its buffer.
    let marks = text.windows(3).any(|bytes| bytes == b"\xEF\xBB\xBF");
    if marks { b"mark".to_vec() } else { text }
}

fn any_text(random: &mut Random) -> Vec<u8> {
    match random.below(10) {
        0 => format!("k: {}", string(random)).into_bytes(),
        1 => {
            let mut bytes = pieces(random).into_bytes();
            if !bytes.is_empty() {
                let at = random.below(bytes.len());
                bytes[at] = random.next_u64() as u8;
            }
            bytes
        }
        2 => mutated(random),
        3 => far_problem(random),
        _ => pieces(random).into_bytes(),
    }
}

fn pieces(random: &mut Random) -> String {
    (0..=random.below(16)).map(|_| *random.pick(SYNTAX)).collect()
}

/// Returns a well-formed document with a piece inserted or removed.
fn mutated(random: &mut Random) -> Vec<u8> {
    let value = document(random, 4);
    let mut text = mainstay_yaml::to_yaml_v2(&value).unwrap_or_default().into_bytes();
    let at = random.below(text.len() + 1);
    if random.chance(1, 2) {
        let piece = random.pick(SYNTAX).bytes();
        text.splice(at..at, piece);
    } else {
        let end = (at + random.below(5)).min(text.len());
        text.drain(at..end);
    }
    text
}

/// Returns random pieces after enough text that Go reads them in a later block of its buffer.
fn far_problem(random: &mut Random) -> Vec<u8> {
    let mut text = String::new();
    let target = 400 + random.below(800);
    while text.len() < target {
        text.push_str(random.pick::<&str>(&[
            "key: value\n",
            "k: é\n",
            "list: [1, 2]\n",
            "# comment\n",
            "m:\n- a\n",
            "---\n",
        ]));
    }
    text.push_str(&pieces(random));
    text.into_bytes()
}

const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\"a\"",
    "\"b\"",
    "\"\\n\"",
    "\"\\u00e9\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\\ud800\\u0041\"",
    "\"\\x\"",
    "\"\\u12g4\"",
    "1",
    "-1",
    "0",
    "01",
    "-",
    "1.5",
    "1.",
    "1e5",
    "1e",
    "1e+",
    "-0",
    "12345678901234567890",
    "true",
    "false",
    "null",
    "tru",
    "nul",
    "fals3",
    " ",
    "\n",
    "\t",
    "x",
    "é",
    "'",
    "\u{1}",
    "{\"a\":1}",
    "[1,2]",
    "\"k\": ",
    "\"k\":[",
    "{\"k\":",
];

/// Returns text that resembles JSON. The root is never `null`, which Go decodes as a nil map.
pub(crate) fn json_text(random: &mut Random) -> Vec<u8> {
    let pieces =
        |random: &mut Random| -> String { (0..=random.below(8)).map(|_| *random.pick(JSON)).collect() };
    let mut text = match random.below(4) {
        0 => pieces(random).into_bytes(),
        1 => format!("{{\"a\":{}}}", pieces(random)).into_bytes(),
        2 => format!("[{}]", pieces(random)).into_bytes(),
        _ => {
            let mut text = mainstay_yaml::to_json_pretty(&document(random, 4))
                .unwrap_or_default()
                .into_bytes();
            let at = random.below(text.len() + 1);
            if random.chance(1, 2) {
                text.splice(at..at, random.pick(JSON).bytes());
            } else if at < text.len() {
                text[at] = random.next_u64() as u8;
            }
            text
        }
    };
    if text.trim_ascii() == b"null" {
        text.push(b'x');
    }
    text
}
