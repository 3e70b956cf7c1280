//! Tests functions that depend on entropy: format, bounds and reproducibility.

use mainstay_template::Value;

use crate::support::{SeededHost, call, call_with, format_value};

fn text(name: &str, args: &[Value], seed: u64) -> String {
    String::from_utf8(format_value(
        &call_with(name, args, &mut SeededHost::new(seed)).unwrap(),
    ))
    .unwrap()
}

#[test]
fn random_strings_use_the_expected_characters() {
    let check = |name: &str, allowed: fn(u8) -> bool, kinds: usize| {
        let made = text(name, &[Value::int(4_000)], 1);
        assert_eq!(made.len(), 4_000);
        assert!(made.bytes().all(allowed), "{name}: {made}");
        let seen: std::collections::BTreeSet<_> = made.bytes().collect();
        assert_eq!(seen.len(), kinds, "{name} does not use all characters");
    };
    check("randAlphaNum", |b| b.is_ascii_alphanumeric(), 62);
    check("randAlpha", |b| b.is_ascii_alphabetic(), 52);
    check("randNumeric", |b| b.is_ascii_digit(), 10);
    check("randAscii", |b| (32..127).contains(&b), 95);
}

#[test]
fn seed_determines_all_values() {
    for (name, args) in [
        ("randAlphaNum", vec![Value::int(20)]),
        ("randBytes", vec![Value::int(20)]),
        ("randInt", vec![Value::int(0), Value::int(1 << 40)]),
        ("shuffle", vec!["abcdefghijklmnopqrstuvwxyz".into()]),
        ("uuidv4", vec![]),
    ] {
        assert_eq!(text(name, &args, 7), text(name, &args, 7), "{name}");
        assert_ne!(text(name, &args, 7), text(name, &args, 8), "{name}");
    }
}

#[test]
fn random_values_have_the_expected_format_and_range() {
    let uuid = text("uuidv4", &[], 3);
    let dashes: Vec<_> = uuid.match_indices('-').map(|(at, _)| at).collect();
    assert_eq!((uuid.len(), dashes), (36, vec![8, 13, 18, 23]));
    assert_eq!(&uuid[14..15], "4");
    assert!("89ab".contains(&uuid[19..20]));
    assert_eq!(text("randBytes", &[Value::int(5)], 1).len(), 8);
    for seed in 0..200 {
        let number: i64 = text("randInt", &[Value::int(-3), Value::int(4)], seed)
            .parse()
            .unwrap();
        assert!((-3..4).contains(&number));
    }
    let mut letters: Vec<_> = text("shuffle", &["héllo".into()], 1).chars().collect();
    letters.sort_unstable();
    assert_eq!(letters.into_iter().collect::<String>(), "hlloé");
    assert_eq!(text("randAlpha", &[Value::int(-1)], 1), "");
}

#[test]
fn invalid_arguments_are_errors() {
    let fails = |name: &str, args: &[Value]| call(name, args).err().unwrap();
    assert_eq!(
        fails("randInt", &[Value::int(5), Value::int(5)]),
        "invalid argument to Intn"
    );
    assert_eq!(
        fails("randBytes", &[Value::int(-1)]),
        "runtime error: makeslice: len out of range"
    );
    let huge = Value::int(1 << 40);
    for name in ["randAlpha", "randBytes", "randAscii"] {
        assert_eq!(
            fails(name, std::slice::from_ref(&huge)),
            "a function made a string longer than the limit"
        );
    }
}

#[test]
fn functions_have_no_access_to_the_host() {
    assert_eq!(
        format_value(&call("getHostByName", &["example.com".into()]).unwrap()),
        b""
    );
    let names: Vec<_> = mainstay_sprig::environment().iter().map(|f| f.name).collect();
    assert_eq!(names, ["env", "expandenv"]);
}
