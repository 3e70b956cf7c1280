//! Tests charts on disk with links, irregular files and oversized files. The real Helm and this crate must
//! agree.
// Tests may panic, run the real Helm and access files.
#![allow(clippy::expect_used, clippy::disallowed_methods)]

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use mainstay_chart::{ChartError, Dialect, Loaded, load_path};
use mainstay_testkit::peer;

/// Creates a chart, changes it with `change`, and compares the results of both implementations.
fn check(dialect: Dialect, change: impl FnOnce(&Path)) -> Result<Loaded, String> {
    let directory = tempfile::tempdir().expect("a directory");
    let top = directory
        .path()
        .canonicalize()
        .expect("a directory")
        .join("chart");
    fs::create_dir_all(top.join("templates")).expect("a directory");
    fs::write(
        top.join("Chart.yaml"),
        "apiVersion: v2\nname: app\nversion: 1.0.0\n",
    )
    .expect("a file");
    change(&top);
    let ours = load_path(&top, dialect).map_err(|error| error_chain(&error));
    let name = if dialect == Dialect::Helm4 {
        "helm4"
    } else {
        "helm3"
    };
    let helm = peer(name).expect("helm");
    let output = Command::new(helm)
        .args(["template", "r"])
        .arg(&top)
        .output()
        .expect("helm runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let said = match &ours {
        Ok(loaded) => loaded.warnings.iter().fold(String::new(), |mut text, warning| {
            writeln!(text, "{}", warning.line(dialect)).expect("memory");
            text
        }),
        Err(text) => format!("Error: {text}\n"),
    };
    // On failure, only Helm prints warnings about links that it has followed before.
    let theirs = if ours.is_ok() {
        stderr.as_ref()
    } else {
        stderr
            .get(stderr.find("Error: ").unwrap_or(0)..)
            .unwrap_or_default()
    };
    assert_eq!(said, theirs);
    ours
}

fn error_chain(error: &ChartError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        write!(text, ": {error}").expect("memory");
        source = error.source();
    }
    text
}

fn names(loaded: &Loaded) -> Vec<&str> {
    loaded.chart.files.iter().map(|file| file.name.as_str()).collect()
}

#[test]
fn links_are_followed_with_a_warning() {
    for dialect in [Dialect::Helm3, Dialect::Helm4] {
        let loaded = check(dialect, |top| {
            let outside = top.parent().expect("a directory").join("outside");
            fs::create_dir_all(outside.join("inner")).expect("a directory");
            fs::write(outside.join("a.txt"), "a").expect("a file");
            fs::write(outside.join("inner/b.txt"), "b").expect("a file");
            symlink(outside.join("a.txt"), top.join("link.txt")).expect("a link");
            symlink(&outside, top.join("directory")).expect("a link");
        });
        assert_eq!(
            names(&loaded.expect("loads")),
            ["directory/a.txt", "directory/inner/b.txt", "link.txt"]
        );
    }
}

#[test]
fn irregular_files_are_rejected() {
    for dialect in [Dialect::Helm3, Dialect::Helm4] {
        check(dialect, |top| {
            symlink("nowhere", top.join("link")).expect("a link");
        })
        .expect_err("rejected");
        check(dialect, |top| {
            drop(UnixListener::bind(top.join("socket")).expect("a socket"));
        })
        .expect_err("rejected");
        check(dialect, |top| {
            symlink("/dev/zero", top.join("zero")).expect("a link");
        })
        .expect_err("rejected");
        check(dialect, |top| {
            fs::write(top.join("big"), vec![0; (5 << 20) + 1]).expect("a file");
        })
        .expect_err("rejected");
        check(dialect, |top| {
            fs::remove_file(top.join("Chart.yaml")).expect("a file");
        })
        .expect_err("rejected");
    }
}

/// Does not compare with Helm, which does not terminate for this chart.
#[test]
fn a_link_to_its_own_directory_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(
        directory.path().join("Chart.yaml"),
        "apiVersion: v2\nname: app\nversion: 1.0.0\n",
    )
    .expect("a file");
    symlink("..", directory.path().join("up")).expect("a link");
    symlink(".", directory.path().join("here")).expect("a link");
    let error = load_path(directory.path(), Dialect::Helm4).expect_err("rejected");
    let text = error_chain(&error);
    assert!(
        text.starts_with("chart directory ")
            && text.ends_with(" links back to itself or is nested too deeply"),
        "{text}"
    );
}
