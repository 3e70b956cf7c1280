//! Init containers of flow lists with the names of injected ones are replaced, stored in the undo record
//! and restored.

// Tests may panic.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;

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
    let uninject = Options {
        mode: Mode::Uninject,
        ..Options::default()
    };
    let outcome = run(text.as_bytes(), &uninject).unwrap();
    assert!(!outcome.failed(), "{:?}", outcome.reports);
    String::from_utf8(outcome.text.into_owned()).unwrap()
}

#[track_caller]
fn check_same_objects(given: &str, wanted: &str, from: &str) {
    assert!(
        common::same_objects(given.as_bytes(), wanted.as_bytes()),
        "--- given\n{given}\n--- wanted\n{wanted}\n--- from\n{from}"
    );
}

/// Checks that editing an injected text and then uninjecting it has the same result as editing the
/// original.
#[track_caller]
fn check(list: &str, edit: impl Fn(&str) -> String) {
    for original in [pod(list), pod(list).replace('\n', "\r\n")] {
        let injected = inject(&original);
        assert!(!injected.contains("\"old\"}"), "{injected}");
        let edited = edit(&injected);
        check_same_objects(&uninject(&edited), &edit(&original), &edited);
        check_same_objects(&inject(&edited), &inject(&edit(&original)), &edited);
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
fn the_original_objects_are_restored() {
    for list in lists() {
        check(&list, str::to_owned);
    }
}

#[test]
fn other_containers_may_change() {
    for list in lists() {
        check(&list, |text| {
            text.replace("{\"name\": \"wait\"", "{\"name\": \"wait\", \"image\": \"new\"")
        });
        check(&list, |text| {
            text.replace("{\"name\": \"late\"}", "{ \"name\":\"later\" }")
        });
        check(&list, |text| {
            text.replace("\"kind\": \"Pod\"", "\n\n  \"kind\":    \"Pod\"")
        });
    }
}

/// Tools such as `jq` and `yq -o yaml` drop comments, so that only the undo record remains.
#[test]
fn reformatted_text_is_restored() {
    let value = |text: &str| mainstay_yaml::parse(text, &mainstay_yaml::Budget::default()).unwrap();
    for list in lists() {
        check(&list, |text| mainstay_yaml::to_json(&value(text)).unwrap());
        check(&list, |text| mainstay_yaml::to_json_pretty(&value(text)).unwrap());
        // Block YAML has marks instead of an undo record.
        let (original, injected) = (pod(&list), inject(&pod(&list)));
        let block = mainstay_yaml::to_yaml_v3(&value(&injected)).unwrap();
        check_same_objects(&uninject(&block), &original, &block);
    }
}

#[test]
fn reformatted_text_is_unchanged() {
    let value = |text: &str| mainstay_yaml::parse(text, &mainstay_yaml::Budget::default()).unwrap();
    for list in lists() {
        let injected = inject(&pod(&list));
        for text in [
            mainstay_yaml::to_json(&value(&injected)).unwrap(),
            mainstay_yaml::to_json_pretty(&value(&injected)).unwrap(),
            mainstay_yaml::to_yaml_v3(&value(&injected)).unwrap(),
        ] {
            assert_eq!(inject(&text), text);
        }
    }
}

#[test]
fn containers_added_since_are_kept() {
    let injected = inject(&pod(INIT));
    let at = injected.find("{\"name\": \"contrast-service-mesh\"").unwrap();
    let edited = format!("{}{{\"name\": \"mine\"}}, {}", &injected[..at], &injected[at..]);
    check_same_objects(
        &uninject(&edited),
        &pod(&format!("{INIT}, {{\"name\": \"mine\"}}")),
        &edited,
    );
}

#[test]
fn an_edited_record_is_reported() {
    let injected = inject(&pod(INIT)).replace("{\\\"added\\\":", "{\\\"addled\\\":");
    let outcome = run(injected.as_bytes(), &Options::default()).unwrap();
    assert_eq!(outcome.text, injected.as_bytes());
    assert_eq!(outcome.reports[0].action, Action::Failed);
}

#[track_caller]
fn check_rejected(list: &str, rest: &str, expected: &str) {
    let text = pod(list).replace("\"app\"", rest);
    let outcome = run(text.as_bytes(), &Options::default()).unwrap();
    assert_eq!(outcome.text, text.as_bytes());
    assert_eq!(outcome.reports[0].action, Action::Failed);
    let messages: Vec<String> = outcome.reports[0]
        .findings
        .iter()
        .map(|finding| format!("{}: {}", finding.code.code(), finding.message))
        .collect();
    assert_eq!(messages, [expected]);
}

#[test]
fn containers_that_cannot_be_kept_are_not_replaced() {
    let long = INIT.replace("old", &"x".repeat(200_000));
    check_rejected(
        &format!("{long}, {{\"name\": \"wait\"}}"),
        "\"app\"",
        "not-restorable: the container that must be replaced is too long to be kept for --uninject",
    );
    check_rejected(
        "{name: contrast-initializer, image: &it old}, {name: wait}",
        "app, image: *it",
        "shared-anchor: the container that must be replaced contains an anchor that is used elsewhere",
    );
}

#[test]
fn an_explicit_key_after_a_lone_carriage_return_is_restored() {
    let text = concat!(
        "{\r\n\"apiVersion\": \"v1\", \"kind\": \"Pod\",\r\n\"metadata\": {\"name\": \"p\"},\r\n",
        "\"spec\": {\r?\n\"runtimeClassName\": \"contrast-cc\",\r\n\"containers\": [{\"name\": \"app\"}]}}\r\n"
    );
    let outcome = run(text.as_bytes(), &Options::default()).unwrap();
    let injected = String::from_utf8(outcome.text.into_owned()).unwrap();
    assert_eq!(
        outcome.reports[0].action,
        Action::Injected,
        "{:?}",
        outcome.reports
    );
    check_same_objects(&uninject(&injected), text, &injected);
    assert_eq!(inject(&injected), injected);
}

#[test]
fn a_lone_carriage_return_at_the_end_is_kept() {
    for end in ["", "\n", "\r\n", "\r", "\n\r"] {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  runtimeClassName: contrast-cc\n  containers:\n  - name: app{end}"
        );
        let outcome = run(text.as_bytes(), &Options::default()).unwrap();
        let injected = String::from_utf8(outcome.text.into_owned()).unwrap();
        let options = Options {
            mode: Mode::Uninject,
            ..Options::default()
        };
        let back = run(injected.as_bytes(), &options).unwrap();
        assert_eq!(String::from_utf8_lossy(&back.text), text, "{end:?}");
    }
}
