//! `cargo xtask run`: the main job on a fresh machine. Takes nothing, fetches the charts, builds, renders Istio's default
//! installation and shows what it consists of.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

/// Charts of a default installation, in the order they are installed, with their release namespace.
const DEFAULT_INSTALLATION: &[(&str, &str)] = &[("base", "istio-system"), ("istiod", "istio-system")];

/// Does the main job.
pub(crate) fn run() -> anyhow::Result<()> {
    crate::charts::run(&crate::charts::Arguments::default())?;
    let mainstay = crate::build::release_binary()?;
    for (chart, namespace) in DEFAULT_INSTALLATION {
        let begin = Instant::now();
        let output = Command::new(&mainstay)
            .args([
                "template",
                chart,
                &format!("catalog:{chart}"),
                "--namespace",
                namespace,
            ])
            .output()
            .context("starting mainstay")?;
        let elapsed = begin.elapsed();
        if !output.status.success() {
            bail!(
                "rendering {chart} failed:\n{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        println!("\n{chart}: {} bytes in {elapsed:.1?}", output.stdout.len());
        for (kind, count) in kinds(&String::from_utf8_lossy(&output.stdout)) {
            println!("  {count:>3} {kind}");
        }
    }
    println!(
        "\nTo see it: {} template istiod catalog:istiod --namespace istio-system",
        mainstay.display()
    );
    Ok(())
}

/// How many objects of each kind: a document's kind stands at the start of a line.
fn kinds(manifest: &str) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for kind in manifest.lines().filter_map(|line| line.strip_prefix("kind: ")) {
        *counts.entry(kind.trim()).or_default() += 1;
    }
    counts
}
