//! Hostile input: each text must result in reports, never in a panic, and the run time must not be
//! quadratic in the length of the text; with these lengths that would take minutes.

#![allow(clippy::unwrap_used)] // A test fails by panicking.
#![allow(clippy::format_collect, clippy::format_push_string)] // Building texts this way is easier to read.

use mainstay_inject::{Action, Mode, Options, Outcome, run};

const POD: &str =
    "apiVersion: v1\nkind: Pod\nspec:\n  runtimeClassName: contrast-cc\n  containers:\n  - name: app\n";

/// Injects and uninjects `text`; checks the numbers of injected and failed workloads.
fn check(name: &str, text: &str, injected: usize, failed: usize) {
    let options = Options::default();
    let outcome = run(text.as_bytes(), &options).unwrap();
    let count = |action| {
        outcome
            .reports
            .iter()
            .filter(|report| report.action == action)
            .count()
    };
    assert_eq!(
        (count(Action::Injected), count(Action::Failed)),
        (injected, failed),
        "{name}"
    );
    let back = uninject(&outcome);
    assert!(text.contains("mainstay:") || back == text.as_bytes(), "{name}");
}

fn uninject(outcome: &Outcome<'_>) -> Vec<u8> {
    let options = Options {
        mode: Mode::Uninject,
        ..Options::default()
    };
    run(&outcome.text, &options).unwrap().text.into_owned()
}

#[test]
fn deep_nesting_is_handled() {
    check("brackets", &format!("contrast-cc: {}", "[".repeat(100_000)), 0, 1);
    check(
        "closed brackets",
        &format!(
            "kind: Pod # contrast-\nspec: {}{}\n",
            "[".repeat(5_000),
            "]".repeat(5_000)
        ),
        0,
        1,
    );
    let deep: String = (0..5_000).map(|level| " ".repeat(level) + "a:\n").collect();
    check("maps", &format!("# contrast-cc\n{deep}"), 0, 1);
    let lists = "{kind: List, items: [".repeat(100) + "contrast-cc" + &"]}".repeat(100);
    check("lists of lists", &lists, 0, 0);
}

#[test]
fn exponential_aliases_are_bounded() {
    let mut bomb = String::from("a0: &a0 {runtimeClassName: contrast-cc}\n");
    for level in 1..60 {
        let below = level - 1;
        bomb += &format!("a{level}: &a{level} {{<<: [*a{below}, *a{below}, *a{below}]}}\n");
    }
    bomb += "kind: Pod\nspec:\n  <<: *a59\n  containers:\n  - name: app\n";
    check("merges of merges", &bomb, 0, 1);
    check(
        "an alias of itself",
        "kind: Pod\nspec: &spec\n  runtimeClassName: contrast-cc\n  containers: [*spec]\n",
        0,
        1,
    );
}

#[test]
fn many_documents_containers_and_annotations_are_handled() {
    let containers: String = (0..2_000).map(|at| format!("  - name: app-{at}\n")).collect();
    check("containers", &POD.replace("  - name: app\n", &containers), 1, 0);
    let documents = format!("---\n{POD}").repeat(1_000);
    check("documents", &documents, 1_000, 0);
    let item = POD.replace('\n', "\n  ");
    let list = format!(
        "kind: List\nitems:\n{}",
        format!("- {}\n", item.trim_end()).repeat(1_000)
    );
    check("items", &list, 1_000, 0);
    let pasted = "  - name: contrast-initializer\n".repeat(5_000);
    check("names in use", &format!("{POD}  initContainers:\n{pasted}"), 1, 0);
    let keys: String = (0..20_000).map(|at| format!("  key-{at}: x\n")).collect();
    check("keys", &format!("{POD}{keys}"), 1, 0);
}

#[test]
fn one_long_line_is_handled() {
    let item = "{\"kind\":\"Pod\",\"spec\":{\"runtimeClassName\":\"contrast-cc\",\"containers\":[{\"name\":\"app\"},{\"name\":\"two\",\"volumeMounts\":[]}]}}";
    let items = vec![item; 2_000].join(",");
    check(
        "a line of JSON",
        &format!("{{\"kind\":\"List\",\"items\":[{items}]}}"),
        2_000,
        0,
    );
    let pasted = vec!["{name: contrast-initializer}"; 5_000].join(", ");
    let text = format!("{POD}  initContainers: [{pasted}]\n");
    let outcome = run(text.as_bytes(), &Options::default()).unwrap();
    assert!(!outcome.failed());
}

#[test]
fn comments_that_look_like_markers_are_handled() {
    let was = "# mainstay:was - name: x\n".repeat(20_000);
    check("replaced lines around a pod", &format!("{POD}{was}"), 0, 1);
    let apart = "# mainstay:was - name: x\n\n".repeat(20_000);
    let marked = "  - name: a  # mainstay:injected\n".repeat(3_000);
    let text = format!("{POD}  initContainers:\n{marked}{apart}  volumes:\n{marked}");
    assert!(run(text.as_bytes(), &Options::default()).is_ok());
    let containers = "  - name: a\n    volumeMounts:\n    - name: x  # mainstay:injected\n".repeat(3_000);
    let text = format!("{}{apart}", POD.replace("  - name: app\n", &containers));
    assert!(run(text.as_bytes(), &Options::default()).is_ok());
}

#[test]
fn invalid_utf_8_is_rejected() {
    let options = Options::default();
    for bytes in [
        &b"contrast-cc: \xff\xfe"[..],
        b"\0contrast-cc",
        b"\xef\xbb\xbf\xef\xbb\xbfcontrast-cc: 1",
    ] {
        let outcome = run(bytes, &options).unwrap();
        assert_eq!(outcome.text, bytes);
    }
    assert_eq!(
        run(b"\xff\xfea\0", &options).unwrap_err().to_string(),
        "the text is UTF-16; save it as UTF-8"
    );
}
