//! Writes the files of the operator's Helm chart that are derived from code, such as RBAC rules and our
//! definitions. Arguments are the directories of the chart, of the definitions of application delivery,
//! and of the definition of `IstioOperator`. Run by `cargo xtask codegen`.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a tool that writes files"
)]

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = |number| {
        std::env::args()
            .nth(number)
            .ok_or("expected three directories")
            .map(PathBuf::from)
    };
    write(&directory(2)?, mainstay_cluster::deploy::delivery_files()?)?;
    write(&directory(3)?, mainstay_cluster::deploy::istio_operator_files()?)?;
    let catalog = mainstay_catalog::Catalog::embedded()?;
    write(&directory(1)?, mainstay_cluster::deploy::files(&catalog)?)
}

fn write(directory: &Path, files: Vec<(String, String)>) -> Result<(), Box<dyn std::error::Error>> {
    for (path, text) in files {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        println!("codegen: {}, {} lines", path.display(), text.lines().count());
        std::fs::write(path, text)?;
    }
    Ok(())
}
