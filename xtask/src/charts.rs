//! `cargo xtask charts`: takes `charts.lock`, gives `resources/<version>/<flavour>/…`. Derives with the catalogue's tables.
//!
//! Each version is downloaded with `go mod download`, refused if its sum is not the pinned one, derived in memory,
//! written next to its place and renamed into it: a version is there whole or not at all. The Go module cache is only read.
//! At the end everything is packed into `resources/charts.pack`, which the build embeds.

pub(crate) mod module;
mod packing;
mod tree;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use mainstay_catalog::derive::{Files, fingerprint};
use mainstay_catalog::{Flavour, Note, Pin, derive_installer, derive_operator, parse_lock, write_version};

const STAMP: &str = ".stamp";

#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Derive everything again
    #[arg(long, conflicts_with = "check")]
    force: bool,
    /// Only tell whether there is something to do
    #[arg(long)]
    check: bool,
}

/// Brings `resources/` up to date.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = root()?;
    let pins = read_lock(&root)?;
    let resources = root.join("resources");
    let stale: Vec<&Pin> = pins
        .iter()
        .filter(|pin| arguments.force || !is_fresh(&resources, pin))
        .collect();
    if arguments.check {
        let fresh = stale.is_empty() && packing::is_fresh(&resources, &stamps(&pins));
        ensure!(fresh, "resources/ is not up to date: run `cargo xtask charts`");
        return Ok(());
    }
    update(&resources, &pins, &stale)
}

fn root() -> Result<PathBuf> {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask charts`")?;
    let root = Path::new(&xtask).parent().context("xtask has no parent folder")?;
    Ok(root.to_owned())
}

pub(crate) fn read_lock(root: &Path) -> Result<Vec<Pin>> {
    let path = root.join("charts.lock");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(parse_lock(&text)?)
}

fn update(resources: &Path, pins: &[Pin], stale: &[&Pin]) -> Result<()> {
    tree::remove_unpinned(resources, pins)?;
    for (index, pin) in stale.iter().enumerate() {
        say(&format!(
            "charts: [{}/{}] Istio {}: downloading {}",
            index + 1,
            stale.len(),
            pin.version,
            pin.query()
        ));
        let flavours = derive(pin).with_context(|| format!("Istio {}", pin.version))?;
        let files: usize = flavours.iter().map(|(_, files)| files.len()).sum();
        write_version(
            resources,
            &pin.version,
            &flavours,
            Note {
                name: STAMP,
                text: &stamp(pin),
            },
        )?;
        say(&format!(
            "charts: [{}/{}] Istio {}: {files} files",
            index + 1,
            stale.len(),
            pin.version
        ));
    }
    if stale.is_empty() {
        say(&format!("charts: {} versions up to date", pins.len()));
    }
    if !stale.is_empty() || !packing::is_fresh(resources, &stamps(pins)) {
        let (before, after) = packing::write(resources, pins, &stamps(pins))?;
        say(&format!(
            "charts: packed {} KiB into {} KiB",
            before / 1024,
            after / 1024
        ));
    }
    Ok(())
}

fn derive(pin: &Pin) -> Result<Vec<(Flavour, Files)>> {
    let folder = module::download(pin)?;
    let source = tree::read(&folder.join("manifests"), &["charts", "profiles"])?;
    let installer = derive_installer(&source, &pin.version)?;
    let operator = derive_operator(&installer, &pin.version)?;
    Ok(vec![
        (Flavour::Installer, installer),
        (Flavour::Operator, operator),
    ])
}

/// What a version's folder must say to be up to date: the pin, and the tables that derived it.
fn stamp(pin: &Pin) -> String {
    format!("{} {} {:016x}\n", pin.query(), pin.sum, fingerprint())
}

fn stamps(pins: &[Pin]) -> String {
    pins.iter().map(stamp).collect()
}

fn is_fresh(resources: &Path, pin: &Pin) -> bool {
    let path = resources.join(pin.version.to_string()).join(STAMP);
    std::fs::read_to_string(path).is_ok_and(|found| found == stamp(pin))
}

#[expect(clippy::print_stderr, reason = "progress of a developer's command")]
fn say(line: &str) {
    eprintln!("{line}");
}
