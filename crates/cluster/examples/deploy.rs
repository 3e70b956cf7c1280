//! Writes the parts of the operator's Helm chart that follow from the code: the rules of its roles and our
//! definitions. Takes the directory of the chart. `cargo xtask codegen` runs it.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a tool that writes files"
)]

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("which directory?")?);
    for (path, text) in mainstay_cluster::deploy::files(&mainstay_catalog::Catalog::embedded()?)? {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        println!("codegen: {}, {} lines", path.display(), text.lines().count());
        std::fs::write(path, text)?;
    }
    Ok(())
}
