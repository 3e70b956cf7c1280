//! Tests every rule with a passing and a failing fixture in `tests/validation`. The expected output of a
//! failing fixture is stored next to it; `MAINSTAY_BLESS=1` writes it.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::case_sensitive_file_extension_comparisons,
    reason = "tests fail by panicking"
)]

#[path = "support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;

use support::Case;

/// Returns the printed warnings and errors with their locations.
fn printed(case: &Case) -> String {
    let text = match case.generate() {
        Ok(rendered) => rendered.warnings.to_string(),
        Err(problems) => problems.to_string(),
    };
    if text.is_empty() {
        text
    } else {
        format!("{text}\n")
    }
}

#[test]
fn fixtures_print_the_stored_text() {
    let cases = Case::read_all("validation");
    let mut wrong = Vec::new();
    for case in &cases {
        let (found, stored) = (printed(case), case.path.with_extension("txt"));
        let prints = case.name.ends_with(".fail") || case.one("warns").is_some();
        assert_eq!(prints, !found.is_empty(), "{}: {found}", case.name);
        if !prints {
            assert!(case.generate().is_ok(), "{}", case.name);
            continue;
        }
        if std::env::var_os("MAINSTAY_BLESS").is_some() {
            fs::write(&stored, &found).unwrap();
        }
        if fs::read_to_string(&stored).unwrap_or_default() != found {
            wrong.push(format!("== {}\n{found}", case.name));
        }
    }
    println!(
        "validation fixtures: {} run, {} equal",
        cases.len(),
        cases.len() - wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_passing_and_a_failing_fixture() {
    let mut rules: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for case in Case::read_all("validation") {
        let number = case.name.split('-').next().unwrap().to_owned();
        let counts = rules.entry(number).or_default();
        if case.name.ends_with(".fail") {
            counts.1 += 1;
        } else {
            counts.0 += 1;
        }
    }
    for (rule, (pass, fail)) in &rules {
        assert!(*pass > 0 && *fail > 0, "rule {rule}: {pass} pass, {fail} fail");
    }
    assert!(rules.len() >= 25, "{} rules", rules.len());
}
