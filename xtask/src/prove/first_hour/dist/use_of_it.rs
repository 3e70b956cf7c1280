//! Rows about the use of the files: on a cluster, and by a new user.

use std::fs;
use std::process::Command;

use anyhow::{Context, ensure};
use mainstay_testkit::{peer, repository_root};

use super::release::{Release, TARGET};
use crate::build::cargo;
use crate::dist;
use crate::programs::{self, ProgramName};

/// Prefix of the output line with the durations of the steps.
const MARK: &str = "first-hour cluster: ";

/// Pages that a new user follows.
const PAGES: [&str; 5] = [
    "demo.md",
    "getting-started.md",
    "migration.md",
    "rehearse.md",
    "adopt.md",
];

/// Test program that executes pages.
const BOOK: ProgramName = ProgramName {
    package: "mainstay",
    target: "book",
};

/// Peers of the test. They are built beforehand, because nothing can be fetched inside the test's namespace.
const PEERS: [&str; 7] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kubectl",
    "helm4",
    "pilot-discovery-1.28.2",
    "pilot-discovery-1.29.1",
];

/// Runs the image's binary as the operator's pod on a real API server.
pub(super) fn cluster(release: &Release) -> anyhow::Result<(String, bool)> {
    for name in PEERS {
        peer(name)?;
    }
    let output = cargo()
        .args(["test", "--package", "mainstay", "--test", "packaged"])
        .env("MAINSTAY_DIST", release.directory())
        .current_dir(repository_root())
        .output()
        .context("starting cargo test")?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    ensure!(output.status.success(), "the test failed");
    let figure = text.lines().find_map(|line| line.strip_prefix(MARK));
    Ok((figure.context("the test printed no steps")?.to_owned(), true))
}

/// Runs the script of a new user, whose machine has the archive, kubectl and Helm.
pub(super) fn new_user(release: &Release) -> anyhow::Result<(String, bool)> {
    let home = tempfile::tempdir()?;
    let tools = home.path().join("tools");
    fs::create_dir(&tools)?;
    for (name, command) in [("kubectl", "kubectl"), ("helm4", "helm")] {
        std::os::unix::fs::symlink(peer(name)?, tools.join(command))?;
    }
    let output = Command::new("bash")
        .arg(repository_root().join("xtask/src/prove/first_hour/new-user.sh"))
        .arg(release.path(&dist::archive_name(TARGET)))
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("TERM", "dumb")
        .env(
            "PATH",
            format!("{}:/usr/local/bin:/usr/bin:/bin", tools.display()),
        )
        .output()
        .context("starting bash")?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}{}", String::from_utf8_lossy(&output.stderr));
    let figure = text
        .lines()
        .last()
        .context("the script printed nothing")?
        .to_owned();
    Ok((figure, output.status.success()))
}

/// Executes the shell blocks of the archive's pages with its binary; prints exit code and time of each block.
pub(super) fn pages(release: &Release) -> anyhow::Result<(String, bool)> {
    let directory = release.unpack(&dist::archive_name(TARGET))?;
    let run = programs::build()?.find(BOOK)?.run(|command| {
        command
            .args(["--show-output", "every_shell_block"])
            .env("MAINSTAY_BOOK_ROOT", directory.path())
            .env("MAINSTAY_BOOK", "all")
            .env("PAGE", PAGES.join(","));
    })?;
    print!("{}", run.output);
    let blocks = run
        .output
        .lines()
        .filter(|line| line.contains(".md, line "))
        .count();
    let figure = format!("{blocks} blocks of {} pages", PAGES.len());
    Ok((figure, run.passed && blocks > PAGES.len()))
}
