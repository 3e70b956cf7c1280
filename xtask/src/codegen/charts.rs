//! What charts install: takes `resources/` and the value sets, renders every chart the operator installs, gives the kinds and the rights
//! that come out.
//!
//! *Invariant:* nothing is missed. Every kind that a template names, and every line of a role, was rendered by at least one value set; a
//! new branch upstream that no set reaches stops the generator.

mod coverage;
mod kinds;
mod render;
mod rules;

use std::path::Path;

use anyhow::Result;

use super::Output;

/// The kinds.
const KINDS: &str = "crates/cluster/src/kinds.txt";
/// The rights that charts hand on.
const GRANTED: &str = "crates/cluster/src/access/granted.txt";

/// The files that follow from the charts.
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

    /// Nothing can be said without charts: a fresh clone has none until `cargo xtask charts`.
    #[test]
    fn what_is_stored_is_what_the_charts_say() {
        let root = mainstay_testkit::repository_root();
        if !root.join("resources/charts.pack").is_file() {
            println!("not compared: no charts in resources/, run `cargo xtask charts` first");
            return;
        }
        for output in outputs(&root).unwrap() {
            output.compare(&root).unwrap();
        }
    }
}
