//! Sprig functions through the real helm: one chart with the cases of the function library, one run for all
//! cases with output and one run for each case that fails.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::case::{Case, Kind};

const CASES: &str = "crates/sprig/tests/cases.txt";

/// One case: a template and whether it fails.
struct Line<'a> {
    template: &'a str,
    fails: bool,
}

/// Writes the chart below `scratch` and returns its runs.
pub(crate) fn cases(root: &Path, scratch: &Path) -> anyhow::Result<Vec<Case>> {
    let text = fs::read_to_string(root.join(CASES)).context(CASES)?;
    let dot = text
        .lines()
        .find_map(|line| line.strip_prefix(". "))
        .context("no line with the data")?;
    let lines = lines(&text);
    let directory = scratch.join("functions");
    fs::create_dir_all(directory.join("functions/templates"))?;
    fs::write(
        directory.join("functions/Chart.yaml"),
        "apiVersion: v2\nname: functions\nversion: 0.1.0\n",
    )?;
    fs::write(
        directory.join("functions/values.yaml"),
        format!("pick: all\ndot: {dot}\n"),
    )?;
    fs::write(directory.join("functions/templates/t.yaml"), template(&lines))?;
    let run = |pick: &str| Case {
        label: format!("functions {pick}"),
        kind: Kind::Function,
        directory: directory.clone(),
        arguments: ["release", "functions", "--set-string", &format!("pick={pick}")]
            .map(str::to_owned)
            .into(),
    };
    let failing = lines.iter().enumerate().filter(|(_, line)| line.fails);
    Ok(std::iter::once(run("all"))
        .chain(failing.map(|(number, _)| run(&format!("c{number}"))))
        .collect())
}

/// Returns the function of `names` with the fewest cases, and their number.
pub(crate) fn fewest_shapes<'a>(
    root: &Path,
    names: impl Iterator<Item = &'a str>,
) -> anyhow::Result<(usize, String)> {
    let text = fs::read_to_string(root.join(CASES)).context(CASES)?;
    let templates: Vec<&str> = text.lines().filter_map(|line| line.split(" ⇒").next()).collect();
    let calls = |name: &str| {
        templates
            .iter()
            .filter(|template| words(template).any(|word| word == name))
            .count()
    };
    let counted = names.map(|name| (calls(name), name.to_owned())).min();
    counted.context("no functions")
}

fn words(template: &str) -> impl Iterator<Item = &str> {
    template.split(|character: char| !character.is_alphanumeric() && character != '_')
}

/// Returns the cases that parse: a parse error would fail the whole chart. The library's own test covers
/// cases with parse errors.
fn lines(text: &str) -> Vec<Line<'_>> {
    let cases = text
        .lines()
        .filter(|line| !line.starts_with(['#', '.']))
        .filter_map(|line| line.split_once(" ⇒"));
    cases
        .filter(|(_, outcome)| !outcome.starts_with('!') || outcome.contains("executing "))
        .map(|(template, outcome)| Line {
            template,
            fails: outcome.starts_with('!'),
        })
        .collect()
}

fn template(lines: &[Line<'_>]) -> String {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let _ = writeln!(
            text,
            "{{{{- define \"c{number}\" }}}}{}{{{{ end }}}}",
            line.template
        );
    }
    text.push_str("{{- if ne .Values.pick \"all\" }}{{ include .Values.pick .Values.dot }}{{ else }}\n");
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.fails) {
        // Each case gets a copy of the data because some functions modify it.
        let _ = writeln!(
            text,
            "c{number}: {{{{ include \"c{number}\" (deepCopy .Values.dot) | toJson }}}} # {}",
            line.template.len()
        );
    }
    text.push_str("{{- end }}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_that_do_not_parse_are_skipped() {
        let found = lines(
            "# c\n. {}\n{{ a }} ⇒ x\n{{ b ⇒! template: t:1: unclosed action\n{{ c }} ⇒! template: t:1:2: executing \"t\" at <c>: d\n",
        );
        assert_eq!(
            found
                .iter()
                .map(|line| (line.template, line.fails))
                .collect::<Vec<_>>(),
            [("{{ a }}", false), ("{{ c }}", true)]
        );
    }
}
