//! Sprig's functions through the real helm: takes the cases the function library is tested with, gives one chart that holds
//! them all, a run for those that give output and a run for each that fails.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::case::{Case, Kind};

const CASES: &str = "crates/sprig/tests/cases.txt";

/// One line of the cases: a template, and whether it fails.
struct Line<'a> {
    template: &'a str,
    fails: bool,
}

/// Writes the chart under `scratch` and gives its runs.
pub(crate) fn cases(root: &Path, scratch: &Path) -> anyhow::Result<Vec<Case>> {
    let text = fs::read_to_string(root.join(CASES)).context(CASES)?;
    let dot = text
        .lines()
        .find_map(|line| line.strip_prefix(". "))
        .context("no line with the data")?;
    let lines = lines(&text);
    let folder = scratch.join("functions");
    fs::create_dir_all(folder.join("functions/templates"))?;
    fs::write(
        folder.join("functions/Chart.yaml"),
        "apiVersion: v2\nname: functions\nversion: 0.1.0\n",
    )?;
    fs::write(
        folder.join("functions/values.yaml"),
        format!("pick: all\ndot: {dot}\n"),
    )?;
    fs::write(folder.join("functions/templates/t.yaml"), template(&lines))?;
    let run = |pick: &str| Case {
        label: format!("functions {pick}"),
        kind: Kind::Function,
        folder: folder.clone(),
        arguments: ["release", "functions", "--set-string", &format!("pick={pick}")]
            .map(str::to_owned)
            .into(),
    };
    let failing = lines.iter().enumerate().filter(|(_, line)| line.fails);
    Ok(std::iter::once(run("all"))
        .chain(failing.map(|(number, _)| run(&format!("c{number}"))))
        .collect())
}

/// The fewest cases that any of `names` has, and which has them.
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

/// A template that does not parse would take the whole chart with it; the library's own test asks Go about those.
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
        // The data is fresh for each: some functions write into it.
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
    fn lines_that_do_not_parse_are_left_to_the_oracle() {
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
