//! Runs one case with Mainstay and with each Helm version and compares the results.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use similar::{ChangeTag, TextDiff};

use super::case::{Case, Kind};

/// The programs to compare.
pub(crate) struct Programs {
    /// `mainstay`.
    pub(crate) ours: PathBuf,
    /// Helm 4.
    pub(crate) helm4: PathBuf,
    /// Helm 3.
    pub(crate) helm3: PathBuf,
}

/// Result of one comparison.
pub(crate) struct Outcome {
    /// Kind of the comparison.
    pub(crate) kind: Kind,
    /// The difference, if any.
    pub(crate) difference: Option<Difference>,
}

/// A difference between two programs.
pub(crate) struct Difference {
    label: String,
    text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "=== {}\n{}", self.label, self.text)
    }
}

/// Compares with Helm 4 and with Helm 3.
pub(crate) fn compare(case: &Case, programs: &Programs) -> anyhow::Result<Vec<Outcome>> {
    let against = |name: &str, helm: &Path| -> anyhow::Result<Outcome> {
        let theirs = template(helm, &[], case)?;
        let ours = template(&programs.ours, &["--like", name], case)?;
        let label = format!("{} [{name}]: template {}", case.label, case.arguments.join(" "));
        let difference = difference(&theirs, &ours).map(|text| Difference { label, text });
        let kind = match case.kind {
            Kind::Output if !theirs.status.success() => Kind::Rejection,
            kind => kind,
        };
        Ok(Outcome { kind, difference })
    };
    Ok(vec![
        against("helm4", &programs.helm4)?,
        against("helm3", &programs.helm3)?,
    ])
}

fn template(program: &Path, extra: &[&str], case: &Case) -> std::io::Result<Output> {
    Command::new(program)
        .arg("template")
        .args(extra)
        .args(&case.arguments)
        .current_dir(&case.directory)
        // The user's settings (cluster, plugins, color) must not affect either program.
        .env_clear()
        .envs([
            ("HOME", "/nonexistent"),
            ("PATH", "/usr/bin:/bin"),
            ("TZ", "UTC"),
            ("LC_ALL", "C.UTF-8"),
        ])
        .stdin(Stdio::null())
        .output()
}

/// Returns the difference. Our error text may continue after Helm's, but must start with it.
fn difference(theirs: &Output, ours: &Output) -> Option<String> {
    if theirs.status.success() != ours.status.success() {
        let stderr = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
        return Some(format!(
            "exit: helm {}, ours {}\nhelm: {}\nours: {}",
            theirs.status,
            ours.status,
            stderr(theirs),
            stderr(ours)
        ));
    }
    if theirs.stdout != ours.stdout {
        return Some(changed_lines(&theirs.stdout, &ours.stdout));
    }
    let (wanted, got) = (error_text(&theirs.stderr), error_text(&ours.stderr));
    let equal = theirs.status.success() || got.starts_with(&wanted) || same_schema_errors(&wanted, &got);
    (!equal).then(|| format!("error text:\nhelm: {wanted}\nours: {got}"))
}

/// Returns standard error from `Error:` on; the log lines before it contain the time of day.
fn error_text(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let start = text.find("Error: ").unwrap_or(0);
    text.get(start..).unwrap_or_default().trim_end().to_owned()
}

/// Helm prints schema errors in the random order of a Go map and ours are sorted, so both are compared as
/// sets of lines, and each line as a set of words.
fn same_schema_errors(wanted: &str, got: &str) -> bool {
    fn sorted(text: &str) -> Vec<Vec<&str>> {
        fn words(line: &str) -> Vec<&str> {
            line.split([' ', ',']).filter(|word| !word.is_empty()).collect()
        }
        let mut lines: Vec<Vec<&str>> = text.lines().map(words).collect();
        for line in &mut lines {
            line.sort_unstable();
        }
        lines.sort();
        lines
    }
    let is_schema_error = |text: &str| text.contains("values don't meet the specifications of the schema(s)");
    let ours = got
        .lines()
        .take(wanted.lines().count())
        .collect::<Vec<_>>()
        .join("\n");
    is_schema_error(wanted) && is_schema_error(got) && sorted(wanted) == sorted(&ours)
}

fn changed_lines(theirs: &[u8], ours: &[u8]) -> String {
    let (theirs, ours) = (String::from_utf8_lossy(theirs), String::from_utf8_lossy(ours));
    let diff = TextDiff::from_lines(theirs.as_ref(), ours.as_ref());
    let shown = diff
        .iter_all_changes()
        .filter(|change| change.tag() != ChangeTag::Equal)
        .take(24);
    shown
        .map(|change| format!("{}{:?}", sign(change.tag()), change.value()))
        .collect::<Vec<_>>()
        .join("\n")
}

fn sign(tag: ChangeTag) -> &'static str {
    match tag {
        ChangeTag::Delete => "helm ",
        ChangeTag::Insert => "ours ",
        ChangeTag::Equal => "     ",
    }
}
