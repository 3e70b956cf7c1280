//! `cargo xtask run`: fetches the charts, builds, and runs an Istio upgrade on an embedded cluster.

use std::process::Command;

use anyhow::{Context, bail};

use crate::build::Profile;

/// Runs the demo on a fresh clone.
pub(crate) fn run() -> anyhow::Result<()> {
    crate::charts::run(&crate::charts::Arguments::default())?;
    let mainstay = crate::build::mainstay_binary(Profile::Release)?;
    println!("$ mainstay demo");
    let status = Command::new(&mainstay)
        .arg("demo")
        .status()
        .context("starting mainstay")?;
    if !status.success() {
        bail!("the demo failed");
    }
    println!(
        "\nThe binary is {}; `mainstay --help` lists all commands.",
        mainstay.display()
    );
    Ok(())
}
