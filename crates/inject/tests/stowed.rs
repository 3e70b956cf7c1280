//! Containers of our names inside brackets: replaced, kept in white space, and brought back whatever happens around them.

// A test may fail by any means.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use mainstay_inject::{Action, Mode, Options, run};

const INIT: &str = r#"{"name": "contrast-initializer", "image": "old"}"#;
const MESH: &str = r#"{"name": "contrast-service-mesh", "image": "old"}"#;

fn pod(list: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p", "annotations": {{"contrast.edgeless.systems/servicemesh-egress": ""}}}},
  "spec": {{"runtimeClassName": "contrast-cc",
    "initContainers": [{list}],
    "containers": [{{"name": "app"}}]}}}}
"#
    )
}

fn inject(text: &str) -> String {
    let outcome = run(text.as_bytes(), &Options::default()).unwrap();
    assert!(!outcome.failed(), "{:?}", outcome.reports);
    String::from_utf8(outcome.text.into_owned()).unwrap()
}

fn uninject(text: &str) -> String {
    let away = Options {
        mode: Mode::Uninject,
        ..Options::default()
    };
    let outcome = run(text.as_bytes(), &away).unwrap();
    assert!(!outcome.failed(), "{:?}", outcome.reports);
    String::from_utf8(outcome.text.into_owned()).unwrap()
}

/// `list` injected, then changed by `edit`, gives what the original changed by `edit` is.
fn check(list: &str, edit: impl Fn(&str) -> String) {
    for original in [pod(list), pod(list).replace('\n', "\r\n")] {
        let injected = inject(&original);
        assert!(!injected.contains("\"old\""), "{injected}");
        assert_eq!(uninject(&edit(&injected)), edit(&original), "from\n{injected}");
        assert_eq!(inject(&edit(&injected)), inject(&edit(&original)));
    }
}

fn lists() -> Vec<String> {
    let mut lists = Vec::new();
    for items in [
        vec![INIT],
        vec![MESH],
        vec![INIT, MESH],
        vec![INIT, r#"{"name": "wait"}"#],
        vec![r#"{"name": "wait"}"#, INIT],
        vec![r#"{"name": "wait"}"#, MESH, INIT, r#"{"name": "late"}"#, INIT],
        vec![MESH, r#"{"name": "wait"}"#, INIT, r#"{"name": "late"}"#],
    ] {
        lists.push(items.join(", "));
        lists.push(items.join(","));
        lists.push(format!(" {} ", items.join(" , ")));
        lists.push(format!("\n      {}\n    ", items.join(",\n      ")));
    }
    lists
}

#[test]
fn the_original_comes_back() {
    for list in lists() {
        check(&list, str::to_owned);
    }
}

#[test]
fn trimmed_line_ends_do_no_harm() {
    let trim = |text: &str| {
        let lines: Vec<&str> = text
            .split('\n')
            .map(|line| line.trim_end_matches([' ', '\t']))
            .collect();
        lines.join("\n")
    };
    for list in lists() {
        check(&list, trim);
    }
}

#[test]
fn neighbours_may_change() {
    for list in lists() {
        check(&list, |text| {
            text.replace("\"wait\"", "\"wait\", \"image\": \"new\"")
        });
        check(&list, |text| {
            text.replace("{\"name\": \"late\"}", "{ \"name\":\"later\" }")
        });
        check(&list, |text| {
            text.replace("\"kind\": \"Pod\"", "\n\n  \"kind\":    \"Pod\"")
        });
    }
}

#[test]
fn comments_between_come_back() {
    let flow = |list: &str| pod(list);
    for list in [
        "\n  # one\n  {name: contrast-initializer, image: old}, # two\n  # three\n  {name: wait}, # four\n",
        "\n  {name: wait}, # one\n  # two\n  {name: contrast-initializer, image: old}, # three\n",
        " # one\n  {name: contrast-service-mesh, image: old} # two\n",
    ] {
        let original = flow(list);
        assert_eq!(uninject(&inject(&original)), original);
        assert_eq!(inject(&inject(&original)), inject(&original));
    }
}

#[test]
fn company_since_then_is_kept() {
    let injected = inject(&pod(INIT));
    let at = injected.find("{\"name\": \t \"contrast-service-mesh\"").unwrap();
    let edited = format!("{}{{\"name\": \"mine\"}}, {}", &injected[..at], &injected[at..]);
    let back = uninject(&edited);
    let value = |text: &str| mainstay_yaml::parse(text, &mainstay_yaml::Budget::default()).unwrap();
    assert_eq!(
        value(&back),
        value(&pod(&format!("{INIT}, {{\"name\": \"mine\"}}")))
    );
}

fn refused(list: &str, rest: &str, expected: &str) {
    let text = pod(list).replace("\"app\"", rest);
    let outcome = run(text.as_bytes(), &Options::default()).unwrap();
    assert_eq!(outcome.text, text.as_bytes());
    assert_eq!(outcome.reports[0].action, Action::Failed);
    let said: Vec<String> = outcome.reports[0]
        .findings
        .iter()
        .map(|finding| format!("{}: {}", finding.code.code(), finding.message))
        .collect();
    assert_eq!(said, [expected]);
}

#[test]
fn what_cannot_be_kept_is_not_replaced() {
    let long = INIT.replace("old", &"x".repeat(9_000));
    refused(
        &format!("{long}, {{\"name\": \"wait\"}}"),
        "\"app\"",
        "not-restorable: the container that must be replaced is too long to be kept for --uninject",
    );
    refused(
        "{name: contrast-initializer, image: &it old}, {name: wait}",
        "app, image: *it",
        "shared-anchor: the container that must be replaced holds an anchor that is used elsewhere",
    );
}
