//! `cargo xtask charts`: downloads the charts pinned in `charts.lock` and derives
//! `resources/<version>/<flavour>/…`.
//!
//! Each version is downloaded with `go mod download`, rejected if its sum differs from the pinned one,
//! derived in memory, written to a temporary directory and renamed, so that a version is complete or absent.
//! Finally everything is packed into `resources/charts.pack`, which the build embeds.

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
    /// Only check whether resources/ is up to date
    #[arg(long)]
    check: bool,
}

/// Updates `resources/`.
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
    let root = Path::new(&xtask)
        .parent()
        .context("xtask has no parent directory")?;
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
        print_progress(&format!(
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
        print_progress(&format!(
            "charts: [{}/{}] Istio {}: {files} files",
            index + 1,
            stale.len(),
            pin.version
        ));
    }
    if stale.is_empty() {
        print_progress(&format!("charts: {} versions up to date", pins.len()));
    }
    if !stale.is_empty() || !packing::is_fresh(resources, &stamps(pins)) {
        let (before, after) = packing::write(resources, pins, &stamps(pins))?;
        print_progress(&format!(
            "charts: packed {} KiB into {} KiB",
            before / 1024,
            after / 1024
        ));
    }
    Ok(())
}

fn derive(pin: &Pin) -> Result<Vec<(Flavour, Files)>> {
    let directory = module::download(pin)?;
    let mut source = tree::read(&directory.join("manifests"), &["charts", "profiles"])?;
    source.extend(tree::read(&directory.join("samples"), &["addons"])?);
    let installer = derive_installer(&source, &pin.version)?;
    let operator = derive_operator(&installer, &pin.version)?;
    Ok(vec![
        (Flavour::Installer, installer),
        (Flavour::Operator, operator),
    ])
}

/// Returns the content of the stamp file: the pin and the fingerprint of the derivation tables.
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

#[expect(clippy::print_stderr, reason = "progress of a development task")]
fn print_progress(line: &str) {
    eprintln!("{line}");
}
