//! Renders every chart that the operator installs with all value sets and collects the kinds and permissions.
//!
//! Invariant: every kind in a template and every line of a role is rendered by at least one value set. A new
//! branch upstream that no value set reaches is an error.

mod coverage;
mod kinds;
mod render;
mod rules;

use std::path::Path;

use anyhow::Result;

use super::Output;

/// Table of kinds.
const KINDS: &str = "crates/cluster/src/kinds.txt";
/// Table of permissions that charts grant.
const GRANTED: &str = "crates/cluster/src/access/granted.txt";

/// Returns the files that are generated from the charts.
pub(super) fn outputs(root: &Path) -> Result<Vec<Output>> {
    let specs = super::kubernetes_specs()?;
    let rendered = render::all(root)?;
    coverage::check(&rendered)?;
    let documents = || rendered.iter().flat_map(|chart| &chart.documents);
    Ok(vec![
        Output {
            path: KINDS,
            text: kinds::print(documents(), &specs)?,
        },
        Output {
            path: GRANTED,
            text: rules::print(documents()),
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requires the charts: run `cargo xtask charts` first, as `cargo xtask test` does.
    #[test]
    fn stored_tables_match_the_charts() {
        let root = mainstay_testkit::repository_root();
        for output in outputs(&root).unwrap() {
            output.compare(&root).unwrap();
        }
    }
}
