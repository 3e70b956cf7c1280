//! Compares templates with Go's output or error text. Each file in `fixtures/` contains the cases of one
//! subject.

// A test may fail by panicking, and reads its fixtures.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::panic
)]

mod common;

use mainstay_template::Value;

/// One case of a fixture file.
struct Case<'a> {
    name: &'a str,
    template: &'a str,
    data: Option<&'a str>,
    expected: Result<&'a str, &'a str>,
}

fn check(case: &Case<'_>) -> Result<(), String> {
    let data = case.data.map_or(Value::Nil, common::json);
    let found = common::run(case.template.as_bytes(), data);
    let found = found.map(|out| String::from_utf8_lossy(&out).into_owned());
    let found = found.as_deref().map_err(String::as_str);
    if found == case.expected {
        return Ok(());
    }
    Err(format!(
        "{}\n  expected {:?}\n  found    {found:?}",
        case.name, case.expected
    ))
}

fn cases(text: &str) -> Vec<Case<'_>> {
    text.split("=== ").skip(1).map(parse).collect()
}

fn parse(text: &str) -> Case<'_> {
    let (name, body) = text.split_once("\n--- template\n").expect("a template");
    let body = body.strip_suffix('\n').unwrap_or(body);
    let (head, expected) = match body.split_once("\n--- error\n") {
        Some((head, error)) => (head, Err(error)),
        None => body
            .split_once("\n--- output\n")
            .map(|(head, out)| (head, Ok(out)))
            .expect("a result"),
    };
    let (template, data) = match head.split_once("\n--- data\n") {
        Some((template, data)) => (template, Some(data)),
        None => (head, None),
    };
    Case {
        name,
        template,
        data,
        expected,
    }
}

#[test]
fn every_fixture_renders_as_in_go() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let (mut passed, mut failed, mut errors) = (0, Vec::new(), 0);
    for entry in std::fs::read_dir(directory).expect("fixtures") {
        let path = entry.expect("an entry").path();
        let bytes = std::fs::read(&path).expect("readable");
        let text = String::from_utf8_lossy(&bytes);
        for case in cases(&text) {
            errors += usize::from(case.expected.is_err());
            match check(&case) {
                Ok(()) => passed += 1,
                Err(difference) => failed.push(format!("{}: {difference}", path.display())),
            }
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} differ\n{}",
        failed.len(),
        failed.len() + passed,
        failed.join("\n")
    );
    assert!(
        errors * 4 >= passed,
        "{errors} of {passed} fixtures are failures: too few"
    );
}
