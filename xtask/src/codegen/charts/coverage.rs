//! Checks that the value sets render every kind and every line of a role.

use anyhow::{Context, Result, ensure};

use super::render::{Rendered, sorted};

/// Returns an error for the first kind or role line that no value set renders.
pub(super) fn check(rendered: &[Rendered]) -> Result<()> {
    rendered.iter().try_for_each(check_chart)
}

fn check_chart(chart: &Rendered) -> Result<()> {
    let lines: std::collections::BTreeSet<&str> = chart.text.lines().map(plain).collect();
    for file in sorted(&chart.directory.join("templates"))? {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let is_role = text
            .lines()
            .any(|line| matches!(line, "kind: Role" | "kind: ClusterRole"));
        let mut in_comment = false;
        for line in text.lines() {
            in_comment |= line.contains("{{/*") || line.contains("{{- /*");
            let commented = in_comment;
            in_comment &= !line.contains("*/");
            let matters = line.starts_with("kind: ") || (is_role && !plain(line).starts_with('#'));
            let literal = !commented && !line.contains("{{") && !line.trim().is_empty();
            ensure!(
                !matters || !literal || lines.contains(plain(line)),
                "{}: no value set renders {line:?}; add one to xtask/src/codegen/values",
                file.display()
            );
        }
    }
    Ok(())
}

fn plain(line: &str) -> &str {
    line.trim()
}
