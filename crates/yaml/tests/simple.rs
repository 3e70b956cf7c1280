//! Tests of documents in simple form: recognized texts parse, and eliding values does not change the rest.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use mainstay_testkit::case_count;
use mainstay_yaml::{
    Budget, ElisionRules, Numbers, Options, Value, check_syntax, elidable_values, is_simple, parse_with,
};

/// Manifests in various layouts, and texts at the limits of the recognizer's rules.
const SEEDS: &[&str] = &[
    "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels:\n    app: x # c\nspec:\n  containers:\n  - name: app\n    image: r.example/a:1.0\n    args:\n    - |\n      echo a\n\n      echo b\n    - \"x: y # z\\n\"\n    env:\n      - name: A\n        value: 'it''s'\n      -   name: B\n          value: >-\n            folded\n            text\n    ports: [{containerPort: 80, name: \"a\"}, {\"b\":1}]\n    resources: {}\n# end\n",
    "kind: ConfigMap\ndata:\n  a: |\n    x\n\n  b: |+\n    y\n\n\n  c: >\n    z\n  \"d e\": 1\n  'f': http://x:80/#y\n",
    "{\n  \"kind\": \"List\",\n  \"items\": [\n    {\"a\": [1, -2.5, true, null], \"b\": {\"c\": \"d\\n\"}, \"e\":{}},\n    []\n  ]\n}\n",
    "a:\n- b\n-\n  c: d\n- e:\n  - f\n  g:\n\n    h: i\n\n\nj:\n  # c\n  k: l\n",
    "a: b\r\nc:\r\n  - d\r\n  - |\r\n    e\r\n\r\n    f\r\ng: {h: [i, j]}\r\n",
    "a: é\nb: \"\u{85}\"\n",
    "a: |\n\n\n  x\n    y\n z: 1\n",
    "a: x\n  y\nb: \"c\n  d\"\n",
    "- a: 1\n  b:\n    c: .inf\n    d: 1e400\n- null:\n  .nan: x\n  a: 1\n  a: 2\n",
    "a: &x b\nc: *x\nd: !!str e\n<<: {f: g}\n? h\n: i\n",
];

/// Xorshift generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

const PARTS: &[&str] = &[
    " ",
    "  ",
    "\n",
    "\n\n",
    "- ",
    ": ",
    ":",
    "#",
    " # c",
    "\t",
    "\"",
    "'",
    "|",
    ">",
    "|-",
    "|+",
    "[",
    "]",
    "{",
    "}",
    ",",
    "---\n",
    "...\n",
    "a: b\n",
    "a:\n",
    "- x\n",
    "&a ",
    "*a",
    "!t ",
    "\\",
    "\\x41",
    "\\/",
    "\r",
    "\r\n",
    "é",
    "\u{2028}",
    "\u{feff}",
    "?",
    "? ",
    "-",
    "<<: ",
    "null",
    "~",
    ".inf",
    "1e999",
    "%",
    "@",
    "\0",
    "key-1",
    "contrast-",
];

/// Applies a few random changes to a text.
fn mutate(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(2) {
        let at = random.below(bytes.len() + 1);
        match random.below(4) {
            0 => {
                let end = (at + 1 + random.below(4)).min(bytes.len());
                bytes.drain(at.min(end)..end);
            }
            1 => {
                // Moves a line to another position.
                let lines: Vec<Vec<u8>> = bytes
                    .split_inclusive(|byte| *byte == b'\n')
                    .map(<[u8]>::to_vec)
                    .collect();
                let mut lines = lines;
                if lines.len() > 1 {
                    let line = lines.remove(random.below(lines.len()));
                    let at = random.below(lines.len() + 1);
                    lines.insert(at, line);
                }
                bytes = lines.concat();
            }
            _ => {
                let part = PARTS.get(random.below(PARTS.len())).unwrap();
                bytes.splice(at..at, part.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn value(text: &str) -> Result<Value, mainstay_yaml::Error> {
    let options = Options {
        numbers: Numbers::Exact,
        ..Options::default()
    };
    parse_with(text, &options)
}

const TOKEN: &str = "elided-value";

/// Replaces every value in `full` whose counterpart in `short` is a token. Returns the number of tokens.
fn replace_tokens(full: &mut Value, short: &Value) -> usize {
    match (full, short) {
        (full, Value::String(text)) if text == TOKEN => {
            *full = Value::from(TOKEN);
            1
        }
        (Value::Map(full), Value::Map(short)) => full
            .iter_mut()
            .map(|(key, value)| {
                short
                    .get(key.as_str())
                    .map_or(0, |other| replace_tokens(value, other))
            })
            .sum(),
        (Value::List(full), Value::List(short)) => full
            .iter_mut()
            .zip(short)
            .map(|(value, other)| replace_tokens(value, other))
            .sum(),
        _ => 0,
    }
}

#[derive(Default)]
struct Count {
    cases: usize,
    simple: usize,
    elisions: usize,
}

fn check(text: &str, rules: &ElisionRules<'_>, count: &mut Count) {
    count.cases += 1;
    let simple = is_simple(text.as_bytes());
    if simple {
        count.simple += 1;
        let checked = check_syntax(text, &Budget::default());
        assert!(checked.is_ok(), "{checked:?} in {text:?}");
    }
    let Some(elisions) = elidable_values(text.as_bytes(), rules) else {
        return;
    };
    assert!(check_syntax(text, &Budget::default()).is_ok(), "{text:?}");
    let mut short = String::new();
    let mut at = 0;
    for elision in &elisions {
        assert!(
            at <= elision.range.start && elision.range.start < elision.range.end,
            "{elisions:?} in {text:?}"
        );
        assert!(
            !rules.pins.iter().any(|pin| elision.range.contains(pin)),
            "{elisions:?} in {text:?}"
        );
        short.push_str(&text[at..elision.range.start]);
        let (before, after) = if elision.flow { ("\"", "\"") } else { (" ", "") };
        short.extend([before, TOKEN, after]);
        at = elision.range.end;
    }
    short.push_str(&text[at..]);
    if elisions.is_empty() {
        return;
    }
    count.elisions += elisions.len();
    let (mut full, read) = match (value(text), value(&short)) {
        (Ok(full), Ok(read)) => (full, read),
        // A part that was not elided has no value.
        (Err(_), Err(_)) => return,
        (full, read) => panic!("{full:?} for {text:?}, {read:?} for {short:?}"),
    };
    let hidden = replace_tokens(&mut full, &read);
    assert_eq!(full, read, "{short:?} from {text:?}");
    assert!(hidden <= elisions.len());
}

#[test]
fn recognized_texts_parse_and_elided_values_are_independent() {
    let cases = case_count(40_000);
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut count = Count::default();
    for text in SEEDS {
        check(text, &ElisionRules::default(), &mut count);
    }
    while count.cases < cases {
        let seed = SEEDS.get(random.below(SEEDS.len())).unwrap();
        let text = mutate(seed, &mut random);
        let mut pins = vec![random.below(text.len()), random.below(4 * text.len() + 1)];
        pins.sort_unstable();
        let rules = ElisionRules {
            kept: &["spec", "items", "containers"],
            opaque: &["labels"],
            pins: &pins,
            min_len: 1 + random.below(9),
        };
        check(&text, &rules, &mut count);
    }
    println!(
        "simple documents: {} cases, {} recognized, {} elisions",
        count.cases, count.simple, count.elisions
    );
    assert!(
        count.simple > count.cases / 20,
        "{} of {} are recognized",
        count.simple,
        count.cases
    );
    assert!(
        count.elisions > count.cases / 20,
        "{} elisions in {}",
        count.elisions,
        count.cases
    );
}

fn elided(text: &str, rules: &ElisionRules<'_>) -> Vec<String> {
    let elisions = elidable_values(text.as_bytes(), rules).unwrap();
    elisions
        .iter()
        .map(|elision| text[elision.range.clone()].to_owned())
        .collect()
}

#[test]
fn values_of_other_keys_are_elided() {
    let rules = ElisionRules {
        kept: &["spec"],
        opaque: &["labels"],
        min_len: 2,
        ..ElisionRules::default()
    };
    assert_eq!(
        elided("spec:\n  env:\n  - name: a\n  args: x\n", &rules),
        ["\n  - name: a"]
    );
    assert_eq!(
        elided(
            "spec:\n  env: # c\n  - name: a\n  args:\n    b: c  # d\n\n# end\n",
            &rules
        ),
        ["\n    b: c"]
    );
    assert_eq!(
        elided("labels:\n  a:\n    b: c\nd: |\n  e\n", &rules),
        [" |\n  e"]
    );
    assert_eq!(elided("d: |+\n  e\n\nf:\n  a: 1\n  a: 2\n", &rules), [""; 0]);
    assert_eq!(
        elided("{\"spec\": {\"a\": [1, 2], \"b\": 3}}", &rules),
        ["[1, 2]"]
    );
}

#[test]
fn only_simple_documents_are_recognized() {
    for text in [
        "",
        "# c\n",
        "---\n",
        "a: b",
        "- a\n- b: c\n  d: |\n   x\n",
        "a: [b, {c: d}] # e\n",
        "{\"a\":1}\n# c\n",
    ] {
        assert!(is_simple(text.as_bytes()), "{text:?}");
    }
    for text in [
        "a",
        "a: b: c\n",
        "a: b\n c\n",
        "a: *b\n",
        "a: \"b\n",
        "a\tb: c\n",
        "a:\n\tb\n",
        "{\"a\": 1",
        "{a: b}: c\n",
        "...\n",
        "a: b\n---\n",
    ] {
        assert!(!is_simple(text.as_bytes()), "{text:?}");
    }
}
