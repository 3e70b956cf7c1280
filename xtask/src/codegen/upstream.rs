//! Generates the table of facts about the Sail Operator's definitions, with which ours are compared.
//!
//! The files themselves are not in the repository, so this command is run manually when upstream changes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use mainstay_api::crd::table::write_table;
use mainstay_yaml::{Budget, to_json};
use serde_json::Value;

use super::Output;

const TABLE: &str = "crates/api/tests/upstream/definitions.txt";
const HEADER: &str = "\
# Facts about the Sail Operator's definitions, written by `cargo xtask codegen --upstream DIR`.
# Format: crates/api/src/crd/table.rs.
";

/// Generates the table from all YAML files in a directory, each of which contains one definition.
pub(super) fn output(directory: &Path) -> Result<Output> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .with_context(|| directory.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    ensure!(!paths.is_empty(), "{}: no YAML files", directory.display());
    let definitions: Vec<Value> = paths.iter().map(|path| read(path)).collect::<Result<_>>()?;
    Ok(Output {
        path: TABLE,
        text: format!("{HEADER}{}", write_table(&definitions)),
    })
}

fn read(path: &Path) -> Result<Value> {
    let name = || path.display().to_string();
    let text = std::fs::read(path).with_context(name)?;
    let value = mainstay_yaml::parse(&text, &Budget::default()).with_context(name)?;
    let json = to_json(&value).with_context(name)?;
    serde_json::from_str(&json).with_context(name)
}
