//! Checks the supply chain: one exact toolchain everywhere, `--locked` for every cargo command, and no image
//! in a registry.

use std::path::Path;

use anyhow::Context;

use super::Finding;

const TOOLCHAIN: &str = "rust-toolchain.toml";
const DOCKERFILE: &str = "deploy/Dockerfile";
const CHART_VALUES: &str = "deploy/chart/values.yaml";

/// Files with commands that build or check the workspace.
const SCRIPTS: &[&str] = &[
    DOCKERFILE,
    ".ci/run",
    ".cargo/config.toml",
    ".github/workflows/advisories.yml",
    ".github/workflows/ci.yml",
    ".github/workflows/release.yml",
];

/// Subcommands that resolve dependencies.
const RESOLVING: &[&str] = &["build", "check", "clippy", "fetch", "install", "run", "test"];

/// Checks the files of the repository.
pub(super) fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
    let toolchain = read(TOOLCHAIN)?;
    let mut findings = check_toolchain(&toolchain, &read(DOCKERFILE)?);
    for path in SCRIPTS {
        findings.extend(check_commands(path, &read(path)?));
    }
    findings.extend(check_image(&read(CHART_VALUES)?));
    Ok(findings)
}

/// Checks that the toolchain is exact and that the image is built with the same toolchain.
fn check_toolchain(toolchain: &str, dockerfile: &str) -> Vec<Finding> {
    let channel = toolchain.lines().find_map(|line| line.strip_prefix("channel = "));
    let channel = channel.unwrap_or_default().trim_matches('"');
    let parts: Vec<&str> = channel.split('.').collect();
    let is_number = |part: &&str| part.parse::<u32>().is_ok();
    if parts.len() != 3 || !parts.iter().all(is_number) {
        let message = format!("the channel {channel:?} is not an exact version");
        return vec![Finding::new(TOOLCHAIN, message)];
    }
    let image = format!("FROM rust:{channel}-");
    if dockerfile.lines().any(|line| line.starts_with(&image)) {
        return Vec::new();
    }
    let message = format!("does not build with Rust {channel}, as {TOOLCHAIN} does");
    vec![Finding::new(DOCKERFILE, message)]
}

/// Checks that every cargo command that resolves dependencies has `--locked`.
fn check_commands(path: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().enumerate();
    let unlocked = lines.filter(|(_, line)| is_resolving(line) && !line.contains("--locked"));
    unlocked
        .map(|(index, _)| Finding::new(format!("{path}:{}", index + 1), "cargo without --locked"))
        .collect()
}

fn is_resolving(line: &str) -> bool {
    if line.trim_start().starts_with('#') {
        return false;
    }
    let alias = line.split_once(" = \"").map(|(_, value)| value);
    let commands = line.split("cargo ").skip(1).chain(alias);
    commands
        .filter_map(|rest| rest.split_whitespace().next())
        .any(|word| RESOLVING.contains(&word))
}

/// Checks that the default image is in no registry, where another user could own its name.
fn check_image(values: &str) -> Option<Finding> {
    let repository = values
        .lines()
        .find_map(|line| line.trim().strip_prefix("repository: "))
        .unwrap_or_default();
    let is_local = repository.starts_with("localhost/");
    (!is_local).then(|| Finding::new(CHART_VALUES, format!("image {repository:?} names a registry")))
}

#[cfg(test)]
mod tests {
    use mainstay_testkit::repository_root;

    use super::*;

    #[test]
    fn tools_are_pinned() {
        assert_eq!(check(&repository_root()).unwrap(), []);
    }

    #[test]
    fn unpinned_tools_are_found() {
        let count = |channel: &str, image: &str| {
            let toolchain = format!("[toolchain]\nchannel = \"{channel}\"\n");
            check_toolchain(&toolchain, &format!("FROM rust:{image} AS build\n")).len()
        };
        assert_eq!(count("1.95.0", "1.95.0-slim"), 0);
        assert_eq!(count("1.95.0", "1-slim"), 1);
        assert_eq!(count("stable", "1.95.0-slim"), 1);
        assert_eq!(count("1.95", "1.95.0-slim"), 1);
        let commands = "RUN cargo build --locked\n# cargo build\nRUN a && cargo test\nxtask = \"run --quiet\"\ncargo xtask test\n";
        let found = check_commands("f", commands);
        let places: Vec<&str> = found.iter().map(|finding| finding.location.as_str()).collect();
        assert_eq!(places, ["f:3", "f:4"]);
        assert!(check_image("image:\n  repository: docker.io/mainstay\n").is_some());
        assert!(check_image("").is_some());
    }
}
