//! Compares versions and constraints with Masterminds' library.

use mainstay_sprig::semver::{Constraint, Version};
use mainstay_template::Value;

use crate::support::{Case, Print, Random, call, cases, compare_with_go, format_value, method};

fn check(constraint: &str, version: &str, expected: &str) {
    let got = match Constraint::parse(constraint) {
        Err(error) => error.to_string(),
        Ok(constraint) => match Version::parse(version) {
            Err(error) => error.to_string(),
            Ok(version) => constraint.check(&version).to_string(),
        },
    };
    assert_eq!(got, expected, "{constraint:?} on {version:?}");
}

#[test]
fn constraints_are_checked_as_in_masterminds() {
    check(">=1.21-0", "v1.29.3+k3s1", "true");
    check(">=1.21.0", "1.22.0-alpha.1", "false");
    check(">= 1.2, < 3.0.0 || >= 4.2.3", "3.1.0", "false");
    check("1.2 - 1.4.5", "1.4.5", "true");
    check("~1.x", "1.9.0", "true");
    check("^0.2", "0.3.0", "false");
    check("", "1.0.0", "improper constraint: \"\"");
    check(">=1.2.3.4", "1.0.0", "improper constraint: \">=1.2.3.4\"");
    check("1|2", "1.0.0", "constraint parser error");
    check(">1", "one", "invalid semantic version");
    check(">1", "1.2.3-01", "version segment starts with 0");
    check(
        &"1".repeat(513),
        "1",
        "constraint string is too long (max 512 bytes)",
    );
    check(&"1||".repeat(33), "1", "too many constraint groups (max 32)");
    check(
        "1",
        &"1".repeat(257),
        "version string is too long (max 256 bytes)",
    );
    check(
        "1",
        "99999999999999999999",
        "error parsing version segment: strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
    );
}

#[test]
fn versions_have_the_methods_of_masterminds() {
    let version = call("semver", &["v1.2.3-rc.1+b.5".into()]).unwrap();
    let ask = |name: &str, args: &[Value]| {
        String::from_utf8(format_value(&method(&version, name, args).unwrap())).unwrap()
    };
    assert_eq!(ask("Major", &[]), "1");
    assert_eq!(ask("Prerelease", &[]), "rc.1");
    assert_eq!(ask("Metadata", &[]), "b.5");
    assert_eq!(ask("Original", &[]), "v1.2.3-rc.1+b.5");
    assert_eq!(ask("IncPatch", &[]), "1.2.3");
    assert_eq!(ask("IncMajor", &[]), "2.0.0");
    assert_eq!(
        ask("Compare", &[call("semver", &["1.2.3".into()]).unwrap()]),
        "-1"
    );
    assert_eq!(ask("SetPrerelease", &["x".into()]), "1.2.3-x+b.5");
    assert_eq!(
        method(&version, "SetPrerelease", &["a..b".into()]).err().unwrap(),
        "invalid prerelease string"
    );
    let next = method(&version, "IncMinor", &[]).unwrap();
    assert_eq!(
        method(&next, "Original", &[]).err().unwrap(),
        "can't evaluate field Original"
    );
}

#[test]
fn random_pairs_agree_with_go() {
    let mut random = Random(3);
    let cases: Vec<_> = (0..cases())
        .map(|_| {
            let constraint = constraint(&mut random);
            let version = version(&mut random, false);
            Case("semverCompare", vec![constraint.into(), version.into()])
        })
        .collect();
    compare_with_go("semver pairs", Print::Plain, &cases);
}

#[test]
fn random_versions_agree_with_go() {
    let mut random = Random(4);
    let cases: Vec<_> = (0..cases())
        .map(|_| Case("semver", vec![version(&mut random, true).into()]))
        .collect();
    compare_with_go("semver versions", Print::Plain, &cases);
}

const NUMBERS: &[&str] = &["0", "1", "2", "3", "1", "2", "10", "01", "18446744073709551616"];
const WILD: &[&str] = &["x", "X", "*", "x", "*", "xx", "1x", "|"];
const PRE: &[&str] = &[
    "0", "alpha", "beta.2", "rc.1", "alpha.1", "1", "2", "10", "-", "01", "a..b", "é", "rc.1.2",
];
const META: &[&str] = &["1", "k3s1", "gke.100", "", "a..b", "é"];
const OPS: &[&str] = &[
    "", "", "=", "!=", ">", "<", ">=", "=>", "<=", "=<", "~", "~>", "^", "==", "^>",
];

fn number(random: &mut Random, odd: bool) -> &'static str {
    let usual = if odd { NUMBERS.len() } else { 7 };
    NUMBERS[random.below(usual)]
}

fn version(random: &mut Random, odd: bool) -> String {
    let odd = odd || random.chance(3);
    let mut text = String::from(if random.chance(20) { "v" } else { "" });
    let parts = if random.chance(80) { 3 } else { 1 + random.below(4) };
    for part in 0..parts {
        text += if part > 0 { "." } else { "" };
        text += number(random, odd);
    }
    tail(random, &mut text, odd);
    if odd && random.chance(5) {
        text.push_str(random.pick(&[" ", "-", "+", ".", "\n", "v"]));
    }
    text
}

fn tail(random: &mut Random, text: &mut String, odd: bool) {
    let (pre, meta) = if odd { (PRE.len(), META.len()) } else { (8, 3) };
    if random.chance(35) {
        text.push('-');
        text.push_str(PRE[random.below(pre)]);
    }
    if random.chance(15) {
        text.push('+');
        text.push_str(META[random.below(meta)]);
    }
}

fn constraint(random: &mut Random) -> String {
    let groups = 1 + usize::from(random.chance(25)) + usize::from(random.chance(5));
    let groups: Vec<_> = (0..groups).map(|_| group(random)).collect();
    groups.join(random.pick(&[" || ", "||", " ||", " | "]))
}

fn group(random: &mut Random) -> String {
    if random.chance(12) {
        let gap = random.pick(&[" - ", "  - ", " -", "- "]);
        return format!("{}{gap}{}", partial(random), partial(random));
    }
    let terms = 1 + usize::from(random.chance(40)) + usize::from(random.chance(10));
    let terms: Vec<_> = (0..terms).map(|_| term(random)).collect();
    terms.join(random.pick(&[", ", " ", ",", " , ", "", ",,"]))
}

fn term(random: &mut Random) -> String {
    let operators = if random.chance(3) {
        OPS.len()
    } else {
        OPS.len() - 2
    };
    let operator = OPS[random.below(operators)];
    let gap = random.pick(&["", "", " ", "  ", "\t"]);
    format!("{operator}{gap}{}", partial(random))
}

fn partial(random: &mut Random) -> String {
    let odd = random.chance(3);
    let mut text = String::from(if random.chance(10) { "v" } else { "" });
    let parts = 1 + random.below(3) + usize::from(random.chance(2));
    for part in 0..parts {
        text += if part > 0 { "." } else { "" };
        text += if random.chance(15) {
            WILD[random.below(if odd { WILD.len() } else { 5 })]
        } else {
            number(random, odd)
        };
    }
    tail(random, &mut text, odd);
    text
}
