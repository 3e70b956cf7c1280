//! `cargo xtask run`: the main job on a fresh machine. Takes nothing, fetches the charts, builds, and shows an upgrade of Istio on an embedded
//! cluster.

use std::process::Command;

use anyhow::{Context, bail};

/// Does the main job.
pub(crate) fn run() -> anyhow::Result<()> {
    crate::charts::run(&crate::charts::Arguments::default())?;
    let mainstay = crate::build::release_binary()?;
    println!("$ mainstay demo");
    let status = Command::new(&mainstay)
        .arg("demo")
        .status()
        .context("starting mainstay")?;
    if !status.success() {
        bail!("the demo failed");
    }
    println!(
        "\nThe binary is {}; `mainstay --help` shows the rest.",
        mainstay.display()
    );
    Ok(())
}
