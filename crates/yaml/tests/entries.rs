//! Compares `parse_entries` with `parse_with` on random texts. Their fragments are close to the limits of
//! what the line scan supports.

#![allow(clippy::unwrap_used)] // A test fails by panicking.

use mainstay_testkit::{Random, case_count};
use mainstay_yaml::{Error, Numbers, Options, Value, parse_entries, parse_with};

/// Indentation of lines.
const INDENTS: &[&str] = &["", "", "", "  ", "  ", "    ", "      ", " ", "   ", "\t", "  \t"];

/// Text before a value.
const HEADS: &[&str] = &[
    "kind: ",
    "kind:",
    "a: ",
    "b:",
    "b: ",
    "metadata:",
    "metadata: ",
    "name: ",
    "- ",
    "- ",
    "- - ",
    "-",
    "- a: ",
    "-   b:",
    "'q': ",
    "\"q\":",
    "null: ",
    "true: ",
    "1.5: ",
    "on:",
    "? ",
    ": ",
    "<<: ",
    "a b: ",
    "a:b: ",
    "é: ",
    "x.y/z-1: ",
    "'it''s': ",
    "\"\": ",
    "---",
    "...",
    "# c",
    "%",
    ".inf: ",
    "0x1: ",
    "key",
    "",
];

/// Values and parts of values.
const VALUES: &[&str] = &[
    "",
    "",
    "",
    "x",
    "x y",
    "1",
    "-1",
    "--flag",
    "0.5",
    ".a",
    "-.a",
    "+.5",
    "..",
    ".Inf",
    ".5",
    ".nan",
    "-.inf",
    "+.INF",
    "~",
    "null",
    "2001-01-01",
    "x: y",
    "x:",
    "x #",
    "x # c",
    "x#c",
    "# c",
    "'x'",
    "'x",
    "x'",
    "'it''s'",
    "'x' # c",
    "'x'#c",
    "'x' y",
    "\"x\"",
    "\"x",
    "x\"",
    "\"a\\n\\\"b\"",
    "\"\\x41\"",
    "\"\\q\"",
    "\"x\": y",
    "|",
    "|-",
    ">+",
    ">",
    "|2",
    "|- # c",
    "| x",
    "[]",
    "{}",
    "[a, 'b', \"c\"]",
    "[a, b: c]",
    "[a",
    "a]",
    "[a,]",
    "[ ]",
    "{a: b}",
    "{",
    "}",
    "&x y",
    "*x",
    "!!int 1",
    "!!int x",
    "!x y",
    "%x",
    "@x",
    "`x",
    "=",
    "<<",
    "<x>",
    ",x",
    "- x",
    "? x",
    "-",
    "x\ty",
    "x\r",
    "é",
    "\u{85}",
    "x\u{2028}y",
    "\u{feff}",
    "(x)",
    "^x$",
    "...",
    "---",
    "1e999",
    "x  ",
    "'a\\'",
    "\u{7f}",
];

fn add(text: &mut String, random: &mut Random, parts: &[&str]) {
    let part: &&str = random.pick(parts);
    text.push_str(part);
}

fn text(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..=random.below(9) {
        add(&mut text, random, INDENTS);
        add(&mut text, random, HEADS);
        add(&mut text, random, VALUES);
        if !random.chance(1, 60) {
            text.push('\n');
        }
        if random.chance(1, 12) {
            add(&mut text, random, &["\n", "   \n", "      \n", "\n\n"]);
        }
    }
    text
}

/// Returns a text in layouts that the scan usually supports.
fn plain_text(random: &mut Random) -> String {
    const PLAIN_HEADS: &[&str] = &[
        "kind: ",
        "a: ",
        "b:",
        "metadata:",
        "- ",
        "- ",
        "- a: ",
        "'q': ",
        "name: ",
    ];
    const PLAIN_VALUES: &[&str] = &[
        "", "", "x", "x y", "1", "'x'", "'x", "y'", "|", "|-", ">", "[]", "[a, 'b']", "\"x\"", "x # c", "--a",
    ];
    let mut text = String::from("kind: A\n");
    for _ in 0..=random.below(8) {
        add(&mut text, random, &["", "  ", "  ", "    "]);
        add(&mut text, random, PLAIN_HEADS);
        add(&mut text, random, PLAIN_VALUES);
        text.push('\n');
        if random.chance(1, 10) {
            add(
                &mut text,
                random,
                &["\n", "   \n", "    text\n", "# c\n", "  # c\n"],
            );
        }
    }
    text
}

fn is_wanted(key: &str) -> bool {
    matches!(key, "kind" | "metadata" | "q" | "a")
}

/// Removes all entries except the wanted ones from a map.
fn filtered(value: Result<Value, Error>) -> Result<Value, Error> {
    value.map(|value| match value {
        Value::Map(mut map) => {
            map.retain(|key, _| is_wanted(key));
            Value::Map(map)
        }
        other => other,
    })
}

fn check(text: &str) {
    for numbers in [Numbers::Exact, Numbers::Float] {
        let options = Options {
            numbers,
            ..Options::default()
        };
        let expected = filtered(parse_with(text, &options));
        let found = filtered(parse_entries(text, is_wanted, &options));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{text:?}");
    }
}

#[test]
fn entries_are_those_of_the_whole_text() {
    let mut random = Random::new(21);
    for _ in 0..case_count(40_000) {
        check(&text(&mut random));
        check(&plain_text(&mut random));
    }
}
