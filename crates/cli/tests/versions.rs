//! Versions on the command line: with and without `v` they are equivalent, and an unknown one lists the
//! nearest.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::process::{Command, Output};

use mainstay_catalog::Catalog;
use mainstay_testkit::repository_root;

/// Commands that take a version and need no cluster; `VERSION` is replaced.
const COMMANDS: &[&[&str]] = &[
    &["charts", "show", "VERSION"],
    &["charts", "show", "VERSION", "istiod"],
    &["template", "r", "catalog:istiod@VERSION"],
    &["template", "r", "catalog:operator/revisiontags@VERSION"],
    &["template", "r", "catalog:base", "--version", "VERSION"],
    &["crds", "--only", "istio", "--version", "VERSION"],
    &["manifest", "generate", "--istio-version", "VERSION"],
    &["manifest", "validate", "--istio-version", "VERSION"],
    &["profile", "list", "--istio-version", "VERSION"],
    &["profile", "dump", "--istio-version", "VERSION"],
    &[
        "rehearse",
        "--snapshot",
        "deploy/samples/istio-revisions.yaml",
        "--to",
        "VERSION",
        "-o",
        "json",
    ],
];

fn run(command: &[&str], version: &str) -> Output {
    let arguments = command
        .iter()
        .map(|argument| argument.replace("VERSION", version));
    Command::new(env!("CARGO_BIN_EXE_mainstay"))
        .args(arguments)
        .current_dir(repository_root())
        .env("XDG_DATA_HOME", "/nonexistent")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn versions_with_and_without_v_are_equivalent() {
    let versions = Catalog::embedded().unwrap().installable();
    assert!(!versions.is_empty(), "run `cargo xtask charts` first");
    for (index, command) in COMMANDS.iter().enumerate() {
        // Includes one alias.
        let bare = if index == 0 { "1.29-latest" } else { "1.28.2" };
        let (bare, full) = (run(command, bare), run(command, &format!("v{bare}")));
        assert_eq!(bare.status.code(), full.status.code(), "{command:?}");
        assert_eq!(bare.status.code(), Some(0), "{command:?}: {}", text(&bare.stderr));
        assert!(bare.stdout == full.stdout, "{command:?}");
    }
    println!("harden versions: {} commands", COMMANDS.len());
}

#[test]
fn an_unknown_version_lists_the_five_nearest() {
    for (index, command) in COMMANDS.iter().enumerate() {
        let version = if index % 2 == 0 { "1.29.77" } else { "v9.9.9" };
        let output = run(command, version);
        let error = text(&output.stderr);
        assert!(!output.status.success(), "{command:?}");
        let hint = error.split_once("did you mean ").map(|(_, hint)| hint);
        let hint = hint.and_then(|hint| hint.split_once('?'));
        let (hint, _) = hint.unwrap_or_else(|| panic!("{command:?}: {error}"));
        let names: Vec<&str> = hint.split(", ").flat_map(|part| part.split(" or ")).collect();
        assert_eq!(names.len(), 5, "{command:?}: {error}");
    }
}
