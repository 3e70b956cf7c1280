//! Compares regular expressions with Go's.

use mainstay_template::Value;

use crate::support::{Case, Print, Random, call, cases, compare_with_go, format_value};

fn check(name: &str, args: &[&str], expected: &str) {
    let args: Vec<_> = args.iter().map(|text| Value::from(*text)).collect();
    let got = call(name, &args).map_or_else(
        |e| e,
        |value| String::from_utf8_lossy(&format_value(&value)).into_owned(),
    );
    assert_eq!(got, expected, "{name} {args:?}");
}

#[test]
fn common_calls_return_what_go_returns() {
    check(
        "regexMatch",
        &["^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "my-name"],
        "true",
    );
    check("regexMatch", &["a(", "a("], "false");
    check("regexReplaceAll", &["a(x*)b", "-ab-axxb-", "${1}W"], "-W-xxW-");
    check("regexReplaceAll", &["a(x*)b", "-ab-axxb-", "$1W"], "---");
    check(
        "regexReplaceAllLiteral",
        &["a(x*)b", "-ab-axxb-", "${1}"],
        "-${1}-${1}-",
    );
    check("regexFind", &["(?i)K", "\u{212a}"], "\u{212a}");
    check("regexQuoteMeta", &["1.2+{3}"], r"1\.2\+\{3\}");
}

#[test]
fn error_messages_equal_gos() {
    let quiet = |regex, text: &str| {
        check(
            "mustRegexFind",
            &[regex, "x"],
            &format!("error parsing regexp: {text}"),
        );
    };
    quiet("a(", "missing closing ): `a(`");
    quiet("a)", "unexpected ): `a)`");
    quiet("[a", "missing closing ]: `[a`");
    quiet("a**", "invalid nested repetition operator: `**`");
    quiet("*", "missing argument to repetition operator: `*`");
    quiet("a{1001}", "invalid repeat count: `{1001}`");
    quiet("(a{100}){11}", "invalid repeat count: `{11}`");
    quiet(r"\C", r"invalid escape sequence: `\C`");
    quiet(r"a\", "trailing backslash at end of expression: ``");
    quiet("(?z)", "invalid or unsupported Perl syntax: `(?z`");
    quiet("(?P<n", "invalid named capture: `(?P<n`");
    quiet("[z-a]", "invalid character class range: `z-a`");
    check(
        "regexFind",
        &["a(", "x"],
        "regexp: Compile(`a(`): error parsing regexp: missing closing ): `a(`",
    );
    check(
        "regexFind",
        &["`(", "x"],
        "regexp: Compile(\"`(\"): error parsing regexp: missing closing ): ``(`",
    );
}

#[test]
fn hostile_expressions_end_in_an_error() {
    let deep = format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(
        call("mustRegexFind", &[deep.into(), "a".into()])
            .err()
            .unwrap()
            .contains("nests too deeply")
    );
    let open = "(".repeat(500_000);
    assert!(
        call("mustRegexFind", &[open.into(), "a".into()])
            .err()
            .unwrap()
            .contains("missing closing )")
    );
    let long = "a".repeat(1 << 20);
    assert!(
        call("mustRegexFind", &[long.into(), "a".into()])
            .err()
            .unwrap()
            .contains("expression too large")
    );
    let wide = "(\\pL{30}){30}".repeat(300);
    assert!(
        call("mustRegexFind", &[wide.into(), "a".into()])
            .err()
            .unwrap()
            .contains("expression too large")
    );
    let slow = call(
        "mustRegexFind",
        &["(\\pL{9}\\pN{1,99}){9}x".into(), "a".repeat(1 << 20).into()],
    );
    assert!(slow.is_ok() || slow.err().unwrap().contains("step limit"));
    let blown = call(
        "regexReplaceAll",
        &["".into(), "a".repeat(1 << 20).into(), "b".repeat(1 << 20).into()],
    );
    assert_eq!(
        blown.err().unwrap(),
        "a function made a string longer than the limit"
    );
}

#[test]
fn a_deep_expression_fits_a_small_stack() {
    let deep = format!("{}a{}", "(".repeat(124), ")*".repeat(124));
    assert_eq!(
        format_value(&call("mustRegexFind", &[deep.into(), "aaa".into()]).unwrap()),
        b"aaa"
    );
}

#[test]
fn bytes_that_are_not_utf8_count_as_one_character_each() {
    let text = Value::string(&b"a\xff\xfeb\xc3"[..]);
    let found = call("regexFindAll", &["[^a-z]".into(), text.clone(), Value::int(-1)]).unwrap();
    assert_eq!(format_value(&found), b"<\xff><\xfe><\xc3>");
    let replaced = call("regexReplaceAll", &[".".into(), text, "<$0>".into()]).unwrap();
    assert_eq!(format_value(&replaced), b"<a><\xff><\xfe><b><\xc3>");
}

#[test]
fn random_expressions_agree_with_go() {
    let mut random = Random(5);
    let mut plain = Vec::new();
    let mut lists = Vec::new();
    for _ in 0..cases() {
        let (regex, text) = (regex(&mut random), text(&mut random));
        match random.below(6) {
            0 => plain.push(Case("mustRegexMatch", vec![regex, text])),
            1 => plain.push(Case("regexFind", vec![regex, text])),
            2 => plain.push(Case(
                "regexReplaceAll",
                vec![regex, text, replacement(&mut random)],
            )),
            3 => plain.push(Case(
                "mustRegexReplaceAllLiteral",
                vec![regex, text, replacement(&mut random)],
            )),
            4 => lists.push(Case("mustRegexFindAll", vec![regex, text, count(&mut random)])),
            _ => lists.push(Case("regexSplit", vec![regex, text, count(&mut random)])),
        }
    }
    compare_with_go("regular expressions", Print::Plain, &plain);
    compare_with_go("regular expressions that return lists", Print::List, &lists);
}

fn count(random: &mut Random) -> Value {
    Value::int(if random.chance(60) {
        -1
    } else {
        random.below(5) as i64
    })
}

fn replacement(random: &mut Random) -> Value {
    let parts = [
        "$1", "${1}", "$0", "$$", "${n}", "$n", "x", "$2y", "${2}y", "$", "${", "${1", "$01", "é", "$é", "-",
    ];
    (0..random.below(4))
        .map(|_| random.pick(&parts))
        .collect::<String>()
        .into()
}

fn text(random: &mut Random) -> Value {
    let parts: &[&[u8]] = &[
        b"a",
        b"b",
        b"c",
        b"ab",
        b"aa",
        b"A",
        b"K",
        b" ",
        b"\n",
        b"1",
        b"42",
        b"-",
        b"_",
        b".",
        b"x",
        "é".as_bytes(),
        "É".as_bytes(),
        "\u{212a}".as_bytes(),
        "ſ".as_bytes(),
        "日".as_bytes(),
        "😀".as_bytes(),
        "σ".as_bytes(),
        "ς".as_bytes(),
        b"]",
        b"(",
        b"{",
    ];
    let mut bytes: Vec<u8> = (0..random.below(10))
        .flat_map(|_| random.pick(parts).to_vec())
        .collect();
    if random.chance(4) {
        bytes.push(random.pick(&[&b"\xff"[..], b"\xc3", b"\xe2\x82"])[0]);
        bytes.push(b'a');
    }
    Value::string(bytes)
}

/// Generates an expression that is usually valid. In one of eight expressions, a few bytes are changed.
fn regex(random: &mut Random) -> Value {
    let mut bytes = alternation(random, 3).into_bytes();
    if random.chance(12) && !bytes.is_empty() {
        let at = random.below(bytes.len());
        match random.below(3) {
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(
                at,
                random.pick(&[b"(", b")", b"[", b"]", b"*", b"\\", b"{", b"\xff", b"-"])[0],
            ),
            _ => bytes.truncate(at),
        }
    }
    Value::string(bytes)
}

fn alternation(random: &mut Random, depth: usize) -> String {
    let parts = 1 + usize::from(random.chance(25)) + usize::from(random.chance(8));
    let parts: Vec<_> = (0..parts).map(|_| sequence(random, depth)).collect();
    parts.join("|")
}

fn sequence(random: &mut Random, depth: usize) -> String {
    (0..random.below(5)).map(|_| piece(random, depth)).collect()
}

fn piece(random: &mut Random, depth: usize) -> String {
    let mut text = atom(random, depth);
    if random.chance(35) {
        text += random.pick(&[
            "*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?", "{2,}", "{,2}", "{0}", "{a}",
        ]);
    }
    if random.chance(1) {
        text += random.pick(&["**", "{1001}", "{3,2}", "{1000}{2}", "{01}"]);
    }
    text
}

fn atom(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 7 } else { 9 }) {
        0..=2 => random
            .pick(&[
                "a", "b", "c", "k", "K", "x", "é", "日", "-", " ", "1", "s", "σ", "]", "}",
            ])
            .to_owned(),
        3 => random
            .pick(&[
                ".",
                "^",
                "$",
                r"\b",
                r"\B",
                r"\A",
                r"\z",
                r"\d",
                r"\D",
                r"\w",
                r"\W",
                r"\s",
                r"\S",
                r"\n",
                r"\t",
                r"\.",
                r"\x41",
                r"\x{e9}",
                r"\x{D800}",
                r"\101",
                r"\0",
                r"\Qa.b\E",
                r"\Qa",
                r"\-",
                r"\_",
            ])
            .to_owned(),
        4 => random
            .pick(&[
                r"\pL",
                r"\p{Lu}",
                r"\P{Ll}",
                r"\p{^N}",
                r"\p{Greek}",
                r"\p{latin}",
                r"\pN",
                r"\p{Letter}",
                r"\p{Han}",
                r"\p{Any}",
                r"\p{ASCII}",
                r"\p{Zs}",
                r"\1",
                r"\e",
                r"\Z",
                r"\C",
                r"\p{Foo}",
                r"\p{Lu",
                r"\pX",
                r"\x{110000}",
                r"\x4",
                r"\u0041",
                r"\8",
                r"\h",
            ])
            .to_owned(),
        5 | 6 => class(random),
        7 => format!("({})", alternation(random, depth - 1)),
        _ => {
            let open = random.pick(&[
                "(?:", "(?i)", "(?i:", "(?m:", "(?s:", "(?U:", "(?P<n>", "(?<n>", "(?ms-i:", "(?-i:",
                "(?i-s)", "(?-:", "(?x:", "(?P=n",
            ]);
            let inner = alternation(random, depth - 1);
            if open.ends_with(')') {
                format!("{open}{inner}")
            } else {
                format!("{open}{inner})")
            }
        }
    }
}

fn class(random: &mut Random) -> String {
    let items = [
        "a",
        "b-d",
        "a-z",
        "A-Z",
        "0-9",
        "-",
        r"\d",
        r"\w",
        r"\W",
        r"\s",
        "[:alpha:]",
        "[:^digit:]",
        "[:punct:]",
        "é",
        "à-ü",
        r"\pL",
        r"\P{Lu}",
        r"\n",
        "^",
        ".",
        r"\]",
        "[",
        "[:foo:]",
        "z-a",
        r"\x{D000}-\x{E000}",
        "k",
        "s",
        "日-本",
        r"\-",
        "&&",
        "~~",
        "+--",
    ];
    let mut text = String::from(random.pick(&["[", "[", "[^"]));
    if random.chance(4) {
        text.push(']');
    }
    for _ in 0..=random.below(3) {
        text += random.pick(&items);
    }
    text + "]"
}
