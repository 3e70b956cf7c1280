//! Prints diagnostics: message, location, source line with a caret, hint.

use std::fmt::Write as _;
use std::io::Write as _;

use mainstay_manifest::{Diagnostic, Diagnostics, Severity};

use crate::commands::escape_control_characters;
use crate::error::{CliError, Kind};
use crate::ui::snippet::{self, Excerpt, Mark};
use crate::ui::style::{ERROR, FRAME, HINT, WARNING};

/// Prints all diagnostics to stderr.
pub(crate) fn print(diagnostics: &Diagnostics) {
    let mut text: String = diagnostics.list().iter().map(show).collect();
    if diagnostics.dropped() > 0 {
        let _ = writeln!(text, "{} more problems", diagnostics.dropped());
    }
    // A closed stderr is ignored.
    let _ = anstream::stderr().write_all(escape_control_characters(&text).as_bytes());
}

/// Prints all diagnostics and returns the error of the command.
pub(crate) fn failure(diagnostics: &Diagnostics) -> CliError {
    print(diagnostics);
    let errors = diagnostics
        .list()
        .iter()
        .filter(|one| one.severity == Severity::Error);
    let (count, can_force) = errors.fold((0, true), |(count, all), one| (count + 1, all && one.can_force));
    let noun = if count == 1 { "error" } else { "errors" };
    let result = CliError::new(Kind::Config, format!("{count} {noun} in the configuration"));
    if can_force {
        result.hint("fix the configuration, or continue with --force")
    } else {
        result
    }
}

fn show(one: &Diagnostic) -> String {
    let (style, mark) = match one.severity {
        Severity::Error => (ERROR, Mark::Error),
        Severity::Warning => (WARNING, Mark::Warning),
    };
    let mut text = format!("{style}{}{style:#}: ", one.severity);
    if !one.path.0.is_empty() {
        let _ = write!(text, "{}: ", one.path);
    }
    text.push_str(&one.message);
    if let Some(value) = &one.value {
        let _ = write!(text, " (value {value:?})");
    }
    text.push('\n');
    if let Some(at) = &one.position {
        let _ = writeln!(
            text,
            "  {FRAME}-->{FRAME:#} {}:{}:{}",
            at.file, at.line, at.column
        );
        let excerpt = Excerpt {
            line: at.line,
            text: &at.source,
            indent: Some(at.column.saturating_sub(1)),
            width: 1,
        };
        text.push_str(&snippet::draw(&excerpt, mark));
    }
    if let Some(hint) = &one.hint {
        let _ = writeln!(text, "{HINT}hint{HINT:#}: {hint}");
    }
    text
}
