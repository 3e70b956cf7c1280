//! Compares times with Go's. The oracle's local zone must be UTC.

use mainstay_template::{IntKind, Value};
use mainstay_testkit::Oracle;

use crate::support::{
    Case, Print, Random, call, cases, compare_with_go, format_value, literal, method, request,
};

fn text(result: Result<Value, String>) -> String {
    result.map_or_else(
        |error| error,
        |value| String::from_utf8(format_value(&value)).unwrap(),
    )
}

fn check(name: &str, args: &[Value], expected: &str) {
    assert_eq!(text(call(name, args)), expected, "{name} {args:?}");
}

#[test]
fn dates_use_the_clock_of_the_host() {
    check("now", &[], "2023-11-14 22:13:20.123456789 +0000 UTC");
    check(
        "date",
        &["2006-01-02 15:04:05.000".into(), Value::Nil],
        "2023-11-14 22:13:20.123",
    );
    check("htmlDate", &[Value::Float(1.0)], "2023-11-14");
    check("ago", &[Value::int64(1_699_990_000)], "2h46m40s");
    check("ago", &[Value::Nil], "0s");
    check(
        "durationRound",
        &[call("toDate", &["2006".into(), "2020".into()]).unwrap()],
        "3y",
    );
    check("unixEpoch", &[call("now", &[]).unwrap()], "1700000000");
    let zone = "Europe/Vienna".into();
    check(
        "dateInZone",
        &["15:04 MST -0700".into(), Value::int(0), zone],
        "01:00 CET +0100",
    );
    check(
        "htmlDateInZone",
        &[Value::int(-1), "Nowhere".into()],
        "1969-12-31",
    );
}

#[test]
fn error_messages_equal_gos() {
    let parse = |layout: &str, value: &str, expected: &str| {
        check("mustToDate", &[layout.into(), value.into()], expected);
    };
    parse(
        "2006-01-02",
        "2021-13-01",
        "parsing time \"2021-13-01\": month out of range",
    );
    parse(
        "2006-01-02",
        "2021-02-29",
        "parsing time \"2021-02-29\": day out of range",
    );
    parse(
        "2006-01-02",
        "x",
        "parsing time \"x\" as \"2006-01-02\": cannot parse \"x\" as \"2006\"",
    );
    parse(
        "2006",
        "2021é",
        "parsing time \"2021é\": extra text: \"é\""
            .replace('é', "\\xc3\\xa9")
            .as_str(),
    );
    let time = call("toDate", &["2006".into(), "nonsense".into()]).unwrap();
    assert_eq!(text(Ok(time.clone())), "0001-01-01 00:00:00 +0000 UTC");
    check(
        "mustDateModify",
        &["1d".into(), time.clone()],
        "time: unknown unit \"d\" in duration \"1d\"",
    );
    check(
        "mustDateModify",
        &["1".into(), time.clone()],
        "time: missing unit in duration \"1\"",
    );
    check(
        "dateModify",
        &["1d".into(), time],
        "0001-01-01 00:00:00 +0000 UTC",
    );
}

#[test]
fn methods_agree_with_go() {
    let times = [
        "2024-02-29T23:59:59.987654321+05:45",
        "2023-12-31T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
    ];
    let other = time("2024-03-01T12:00:00Z");
    let calls: Vec<(&str, Vec<Value>)> = vec![
        ("Year", vec![]),
        ("Month", vec![]),
        ("Day", vec![]),
        ("Hour", vec![]),
        ("Minute", vec![]),
        ("Second", vec![]),
        ("Nanosecond", vec![]),
        ("YearDay", vec![]),
        ("Weekday", vec![]),
        ("Unix", vec![]),
        ("UnixMilli", vec![]),
        ("UnixMicro", vec![]),
        ("UnixNano", vec![]),
        ("UTC", vec![]),
        ("Local", vec![]),
        ("Location", vec![]),
        ("IsZero", vec![]),
        ("String", vec![]),
        ("Format", vec!["Mon Jan _2 15:04:05 2006".into()]),
        ("Add", vec![Value::int(-3_600_000_000_001)]),
        ("AddDate", vec![Value::int(1), Value::int(-14), Value::int(45)]),
        ("Truncate", vec![Value::int(3_600_000_000_000)]),
        ("Round", vec![Value::int(86_400_000_000_000)]),
        ("Sub", vec![other.clone()]),
        ("Before", vec![other.clone()]),
        ("After", vec![other.clone()]),
        ("Equal", vec![other.clone()]),
        ("Compare", vec![other]),
    ];
    let mut oracle = Oracle::start().unwrap();
    let mut equal = 0;
    for at in times {
        let at = time(at);
        for (name, args) in &calls {
            let literals = args
                .iter()
                .fold(String::new(), |text, arg| text + " " + &literal(arg));
            let template = format!("{{{{ {}.{name}{literals} }}}}", literal(&at));
            let response = oracle.query(&request(&template)).unwrap();
            assert_eq!(
                text(method(&at, name, args)),
                String::from_utf8(response.out).unwrap(),
                "{template} {}",
                response.err
            );
            equal += 1;
        }
    }
    println!("differential methods of time.Time: {equal} run, {equal} equal");
}

#[test]
fn durations_are_converted_to_units_as_in_go() {
    let span = method(
        &time("2024-01-01T01:30:00.5Z"),
        "Sub",
        &[time("2024-01-01T00:00:00Z")],
    )
    .unwrap();
    let ask = |name: &str, args: &[Value]| text(method(&span, name, args));
    assert_eq!(text(Ok(span.clone())), "1h30m0.5s");
    assert_eq!(ask("Minutes", &[]), "90.00833333333334");
    assert_eq!(ask("Seconds", &[]), "5400.5");
    assert_eq!(ask("Milliseconds", &[]), "5400500");
    assert_eq!(ask("Round", &[Value::int(3_600_000_000_000)]), "2h0m0s");
    assert_eq!(ask("Truncate", &[Value::int(3_600_000_000_000)]), "1h0m0s");
}

fn time(text: &str) -> Value {
    call(
        "mustToDate",
        &["2006-01-02T15:04:05.999999999Z07:00".into(), text.into()],
    )
    .unwrap()
}

#[test]
fn random_layouts_agree_with_go() {
    let mut random = Random(8);
    let cases: Vec<_> = (0..cases())
        .map(|_| {
            let layout = layout(&mut random);
            let zone = random.pick(ZONES).into();
            Case("dateInZone", vec![layout.into(), seconds(&mut random), zone])
        })
        .collect();
    compare_with_go("layouts", Print::Plain, &cases);
}

#[test]
fn random_texts_are_parsed_as_in_go() {
    let mut random = Random(9);
    let cases: Vec<_> = (0..cases())
        .map(|_| {
            let layout = layout(&mut random);
            let value = value_for(&mut random, &layout);
            Case("mustToDate", vec![layout.into(), value])
        })
        .collect();
    compare_with_go("times parsed", Print::Plain, &cases);
}

#[test]
fn random_durations_agree_with_go() {
    let mut random = Random(10);
    let cases: Vec<_> = (0..cases())
        .map(|_| {
            let span = span(&mut random);
            match random.below(4) {
                0 => Case("durationRound", vec![span.into()]),
                1 => Case("duration", vec![random.pick(NUMBERS).into()]),
                2 => Case(
                    "durationRound",
                    vec![Value::Int(
                        random.next() as i64 >> random.below(64),
                        IntKind::Int64,
                    )],
                ),
                _ => Case(
                    "mustDateModify",
                    vec![span.into(), time("2024-02-29T23:59:59.987654321+05:45")],
                ),
            }
        })
        .collect();
    compare_with_go("durations", Print::Plain, &cases);
}

/// Zones with stable rules, which are equal in all versions of the database.
const ZONES: &[&str] = &[
    "UTC",
    "",
    "Local",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "Etc/GMT+5",
    "america/new_york",
    "No/Where",
    "../UTC",
];

const NUMBERS: &[&str] = &[
    "1",
    "95",
    "-95",
    "86400",
    "x",
    "",
    "9223372036854775807",
    "99999999999999999999",
    "+7",
    "1.5",
];

const ELEMENTS: &[&str] = &[
    "January",
    "Jan",
    "1",
    "01",
    "Monday",
    "Mon",
    "2",
    "_2",
    "02",
    "__2",
    "002",
    "15",
    "3",
    "03",
    "4",
    "04",
    "5",
    "05",
    "2006",
    "06",
    "PM",
    "pm",
    "MST",
    "Z0700",
    "Z070000",
    "Z07",
    "Z07:00",
    "Z07:00:00",
    "-0700",
    "-070000",
    "-07",
    "-07:00",
    "-07:00:00",
    ".000",
    ",000",
    ".999",
    ",999999999",
    ".0",
    ".9",
    ".000000000",
];

const FILLERS: &[&str] = &[
    " ", "-", ":", "/", "T", ", ", "é", "  ", "Month", "Janet", "_", "__", "Z", "0", "7", "8", ".", "x",
    "_2006", "20", "MS", "\"", "\u{7f}", "\n",
];

const USUAL: &[&str] = &[
    "2006-01-02",
    "2006-01-02T15:04:05Z07:00",
    "2006-01-02T15:04:05.999999999Z07:00",
    "Mon Jan _2 15:04:05 2006",
    "Mon, 02 Jan 2006 15:04:05 MST",
    "02 Jan 06 15:04 -0700",
    "3:04PM",
    "2006-01-02 15:04:05 -0700 MST",
    "Jan _2 15:04:05.000",
    "2006-002",
    "2006 __2",
    "01/02 03:04:05PM '06 -0700",
];

fn layout(random: &mut Random) -> String {
    if random.chance(30) {
        return random.pick(USUAL).to_owned();
    }
    let mut text = String::new();
    for _ in 0..=random.below(6) {
        text += random.pick(ELEMENTS);
        if random.chance(60) {
            text += random.pick(FILLERS);
        }
    }
    text
}

fn seconds(random: &mut Random) -> Value {
    Value::int(match random.below(20) {
        0 => random.next() as i64,
        1 => (random.next() % 400_000_000_000) as i64 - 200_000_000_000,
        _ => (random.next() % 4_000_000_000) as i64 - 2_000_000_000,
    })
}

/// Generates a text that usually matches the layout, and sometimes has a few changed bytes.
fn value_for(random: &mut Random, layout: &str) -> Value {
    let time = Value::int((random.next() % 4_000_000_000) as i64 - 2_000_000_000);
    let zone = random.pick(ZONES).into();
    let mut bytes = format_value(&call("dateInZone", &[layout.into(), time, zone]).unwrap());
    for _ in 0..random.below(3) {
        if !bytes.is_empty() && random.chance(50) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(
                    at,
                    random.pick(&[b"0", b"9", b" ", b"x", b"-", b".", b",", b"+"])[0],
                ),
                2 => bytes[at] = random.pick(&[b"0", b"3", b"6", b"9", b"Z", b"a", b":"])[0],
                _ => bytes.truncate(at),
            }
        }
    }
    Value::string(bytes)
}

fn span(random: &mut Random) -> String {
    let mut text = String::from(random.pick(&["", "", "-", "+"]));
    for _ in 0..=random.below(3) {
        text += random.pick(&[
            "1",
            "90",
            "0",
            "1.5",
            ".5",
            "5.",
            "",
            "9223372036854775807",
            "0.000000001",
            "1e3",
            "123456",
        ]);
        text += random.pick(&[
            "ns", "us", "µs", "μs", "ms", "s", "m", "h", "h", "m", "d", "", "é",
        ]);
    }
    text
}
