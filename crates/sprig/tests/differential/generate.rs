//! Generates random calls with arguments of correct and wrong types.

use mainstay_sprig::functions;
use mainstay_template::{Function, Type};
use mainstay_testkit::Random;

/// Data of the templates.
pub(crate) const DOT: &str = r#"{"s":"hello wörld","n":3,"f":-1.5,"big":12345678901,"l":[1,"two",null,[3,3],{"k":"v"}],
"m":{"a":1,"b":{"c":"d","e":{}},"n":null},"one":{"k":[1]},"e":"","z":0,"t":true,"words":["b","a","c","a"]}"#;

/// Functions with random results, or with results that depend on the machine.
const NONDETERMINISTIC: &[&str] = &[
    "ago",
    "bcrypt",
    "date",
    "dateInZone",
    "dateModify",
    "date_in_zone",
    "date_modify",
    "encryptAES",
    "genCA",
    "genCAWithKey",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "getHostByName",
    "htmlDate",
    "htmlDateInZone",
    "htpasswd",
    "mustDateModify",
    "must_date_modify",
    "now",
    "randAlpha",
    "randAlphaNum",
    "randAscii",
    "randBytes",
    "randInt",
    "randNumeric",
    "shuffle",
    "uuidv4",
    "derivePassword",
];

/// Functions with results in no defined order in Go.
const UNORDERED: &[&str] = &["keys", "values"];

const STRINGS: &[&str] = &[
    r#""""#,
    r#""a""#,
    r#""hello world""#,
    r#""  pad\t""#,
    r#""héllo wörld ñ""#,
    r#""日本語 テキスト""#,
    r#""\xff\xfea\x80b""#,
    r#""HTTPServer2xx_fooBar""#,
    r#""foo-bar baz__qux""#,
    r#""ǆ ǅ ß ﬁ İı""#,
    r#""a,b,,c""#,
    r#""/a/../b//c.tar.gz""#,
    r#""../x/./y/""#,
    r#""line1\nline2\n\nline4""#,
    r#""<&>\u2028'\"\\""#,
    r#""12""#,
    r#""-0x1F""#,
    r#""1e3""#,
    r#""1.00""#,
    r#""0777""#,
    r#""1_000""#,
    r#""nan""#,
    r#""-Inf""#,
    r#""aGVsbG8=""#,
    r#""NBSWY3DP""#,
    r#""{\"a\":[1,2,{\"b\":null}]}""#,
    r#""[1, \"x\"""#,
    r#""$""#,
    r#"",""#,
    r#"" ""#,
    r#""the quick brown fox jumps over the lazy dog""#,
    r#""ééééééééé""#,
    r#""true""#,
    r#""_0""#,
    r#""k""#,
    r#""x.y,Z 1a2B""#,
    r#""\u00a0\u0085\u2003""#,
    r#""99999999999999999999""#,
    r#""0x1.8p3""#,
    r#""😀a😀""#,
    ".s",
    ".e",
    r#""string""#,
    r#""slice""#,
    r#""a/b/c""#,
    r#""1.2.3""#,
    r#"">=1.2""#,
    r#""(a|b)+""#,
    r#""[a-c]""#,
    r#""https://u:p@h:1/p?q=1#f""#,
    r#""\x00\x7f\u200b""#,
];

const INTS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "5",
    "7",
    "10",
    "25",
    "-1",
    "-3",
    "-10",
    "100",
    "9223372036854775807",
    "-9223372036854775808",
    "'a'",
    "0x1f",
];

const SMALL: &[&str] = &[
    "0", "1", "2", "3", "4", "5", "7", "8", "12", "-1", "-2", "-5", "40",
];

const FLOATS: &[&str] = &[
    "0.0",
    "0.5",
    "1.5",
    "-2.5",
    "1e6",
    "1e21",
    "1e-7",
    "3.14159",
    "0.1",
    "1e300",
    "1e-320",
    "-0.0",
    "123456.789",
    ".f",
    "2.675",
];

const MAPS: &[&str] = &[
    "(dict)",
    "(dict \"a\" 1)",
    "(dict \"a\" (dict \"b\" 2))",
    "(dict \"a\" \"\" \"b\" false)",
    "(dict \"a\" (list 1))",
    "(dict \"a\" nil \"k\" 0)",
    ".m",
    ".one",
    "(deepCopy .m.b)",
    "(split \",\" \"x,y\")",
    "(dict \"a\" (split \",\" \"p\"))",
    "(dict 1 2 nil 3)",
    "(deepCopy .m)",
    "(dict \"a\" (list) \"b\" (dict))",
    "(dict \"_0\" \"q\" \"a\" 1.5)",
    "(merge nil nil)",
];

const LISTS: &[&str] = &[
    "(list)",
    "(list 1 2 3)",
    "(list \"b\" \"a\" \"b\")",
    "(list nil 0 \"\" false)",
    "(until 4)",
    "(splitList \",\" \"c,a,b\")",
    ".l",
    ".words",
    "(concat (list) (list))",
    "(chunk 2 (list 1 2 3))",
    "(list 1 1.0 1 \"1\" (list 1) (list 1))",
    "(list (dict \"a\" 1) (dict \"a\" 1))",
    "(toStrings (list 3 2 1))",
    "(rest (list 1 2))",
    "(list \"x\")",
];

const OTHERS: &[&str] = &[
    "nil",
    "true",
    "false",
    ".missing",
    ".t",
    ".z",
    "2i",
    "(int64 5)",
    ".big",
    "(float64 \"nan\")",
    "(add1 1)",
];

/// Generates a function call whose result is printed in one of several ways.
pub(crate) fn call(random: &mut Random) -> String {
    let steady: Vec<&Function> = functions()
        .iter()
        .filter(|row| !NONDETERMINISTIC.contains(&row.name))
        .collect();
    let row = random.pick(&steady);
    let call = format!("{}{}", row.name, arguments(random, row));
    if UNORDERED.contains(&row.name) {
        return format!("{{{{ {call} | sortAlpha }}}}");
    }
    match random.below(4) {
        0 => format!("{{{{ {call} | printf \"%[1]T %[1]v\" }}}}"),
        1 => format!("{{{{ {call} | toJson }}}}"),
        2 => format!("{{{{ {call} | quote }}}}"),
        _ => format!("{{{{ {call} }}}}"),
    }
}

fn arguments(random: &mut Random, row: &Function) -> String {
    let mut wanted: Vec<Type> = row.params.to_vec();
    if row.variadic {
        let last = wanted.pop().expect("a variadic function has a parameter");
        wanted.extend(std::iter::repeat_n(last, random.below(4)));
    }
    if random.chance(1, 40) {
        wanted.pop();
    }
    if random.chance(1, 40) {
        wanted.push(Type::Any);
    }
    let mut arguments: Vec<String> = wanted.iter().map(|ty| argument(random, *ty)).collect();
    if row.name == "set" {
        // Go prints a map that contains itself until its stack overflows.
        let maps = arguments
            .iter_mut()
            .skip(2)
            .filter(|text| MAPS.contains(&text.as_str()));
        maps.for_each(|text| *text = "nil".into());
    }
    arguments.insert(0, String::new());
    arguments.join(" ")
}

fn argument(random: &mut Random, ty: Type) -> String {
    if random.chance(1, 12) {
        let wrong = argument_of_any_type(random);
        // A count may have a wrong type but must not be huge, because Go would run out of memory.
        let huge = wrong.parse::<i64>().is_ok_and(|count| count.unsigned_abs() > 100);
        return if ty == Type::Int && huge {
            "\"1\"".into()
        } else {
            wrong
        };
    }
    if random.chance(1, 3) {
        match ty {
            Type::String => return text(random),
            Type::Float64 => return float(random),
            _ => {}
        }
    }
    let pool = match ty {
        // Counts must be small, because they determine the length of the result.
        Type::Int => SMALL,
        Type::Int64 => INTS,
        Type::Float64 => FLOATS,
        Type::String => STRINGS,
        Type::Bool => &["true", "false", ".t"],
        Type::ListOfAny | Type::ListOfString => LISTS,
        Type::MapOfAny | Type::MapOfString => MAPS,
        _ => return argument_of_any_type(random),
    };
    (*random.pick(pool)).into()
}

fn argument_of_any_type(random: &mut Random) -> String {
    let pools = [STRINGS, INTS, FLOATS, MAPS, LISTS, OTHERS];
    let pool = *random.pick(&pools);
    match random.below(12) {
        0 => text(random),
        1 => float(random),
        2 => (random.next_u64() as i64 >> random.below(64)).to_string(),
        3 => list(random),
        _ => (*random.pick(pool)).into(),
    }
}

fn list(random: &mut Random) -> String {
    let items: Vec<String> = (0..random.below(5))
        .map(|_| argument_of_any_type(random))
        .collect();
    format!("(list {})", items.join(" "))
}

/// Generates a float, often with few digits.
fn float(random: &mut Random) -> String {
    let value = match random.below(3) {
        0 => f64::from_bits(random.next_u64()),
        1 => random.next_u64() as i64 as f64 / 1e15,
        _ => (random.below(20_001) as f64 - 10_000.0) / 100.0,
    };
    if value.is_finite() {
        format!("{value:?}")
    } else {
        "0.25".into()
    }
}

/// Generates text from fragments that have a special meaning for some functions.
fn text(random: &mut Random) -> String {
    const PIECES: &[&str] = &[
        "a",
        "B",
        "c",
        "Z",
        "0",
        "7",
        "9",
        " ",
        "  ",
        "-",
        "_",
        ".",
        ",",
        "/",
        "..",
        "\\n",
        "\\t",
        "\\r",
        "=",
        "==",
        "+",
        "é",
        "É",
        "ß",
        "ǆ",
        "ǅ",
        "Σ",
        "ς",
        "İ",
        "ı",
        "日",
        "本",
        "٣",
        "Ⅷ",
        "½",
        "\u{2028}",
        "\u{a0}",
        "«",
        "😀",
        "ﬁ",
        "\\xff",
        "\\x80",
        "\\xe2\\x82",
        "\\x00",
        "\\u200b",
        "\\ufffd",
        "\\\"",
        "'",
        "<",
        "&",
        "$",
        "$1",
        "{",
        "}",
        "[",
        "]",
        ":",
        "e",
        "x",
        "0x",
        "1e",
        "null",
        "true",
        "HTTP",
        "word",
        "ͅ",
        "𐐀",
        "𐐨",
        "ა",
        "Ა",
        "ꭰ",
        "Ꭰ",
        "ᲀ",
        "Ω",
        "K",
        "ſ",
    ];
    let pieces: String = (0..random.below(9)).map(|_| *random.pick(PIECES)).collect();
    format!("\"{pieces}\"")
}
