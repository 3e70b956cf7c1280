//! Errors and warnings with path, value, location and hint. They are collected over all stages.

use std::fmt;

use crate::limits::MAX_DIAGNOSTICS;
use crate::path::Path;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration is accepted, but a part of it is deprecated or has no effect.
    Warning,
    /// The configuration is rejected.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A position in an input file or a `--set` argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Name of the file, or `--set`.
    pub file: String,
    /// Line, starting at 1.
    pub line: usize,
    /// Column in characters, starting at 1.
    pub column: usize,
    /// Text of the line.
    pub source: String,
}

/// An error or a warning about the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// Path in the configuration. Empty if the diagnostic is about the whole configuration.
    pub path: Path,
    /// Description of the problem.
    pub message: String,
    /// Value at the path, if it is useful. Shortened to one line.
    pub value: Option<String>,
    /// Location at which the user sets the value; `None` if the user does not set it.
    pub position: Option<Location>,
    /// Suggested fix.
    pub hint: Option<String>,
    /// Whether `--force` downgrades this error to a warning.
    pub can_force: bool,
}

impl Diagnostic {
    /// Creates an error that `--force` can downgrade to a warning.
    #[must_use]
    pub fn error(path: Path, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            path,
            message: message.into(),
            value: None,
            position: None,
            hint: None,
            can_force: true,
        }
    }

    /// Creates a warning.
    #[must_use]
    pub fn warning(path: Path, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(path, message)
        }
    }

    /// Creates an error that prevents any output and cannot be downgraded.
    #[must_use]
    pub fn fatal(path: Path, message: impl Into<String>) -> Self {
        Self {
            can_force: false,
            ..Self::error(path, message)
        }
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the value. Shortens it to one line.
    #[must_use]
    pub fn value(mut self, value: &str) -> Self {
        const WIDTH: usize = 120;
        let line = value.lines().next().unwrap_or_default();
        let mut text: String = line.chars().take(WIDTH).collect();
        if text.len() < value.len() {
            text.push('…');
        }
        self.value = Some(text);
        self
    }

    /// Sets the location, unless it is already set.
    #[must_use]
    pub fn at(mut self, position: Option<Location>) -> Self {
        self.position = self.position.or(position);
        self
    }
}

impl fmt::Display for Diagnostic {
    /// Formats as `file:line:column: severity: path: message (value "…")`, with the hint on the next line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.position {
            write!(f, "{}:{}:{}: ", at.file, at.line, at.column)?;
        }
        write!(f, "{}: ", self.severity)?;
        if !self.path.0.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        if let Some(value) = &self.value {
            write!(f, " (value {value:?})")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Diagnostics in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    dropped: usize,
}

impl Diagnostics {
    /// Adds a diagnostic. Ignores it if an equal one exists. Beyond a limit, diagnostics are only counted.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.list.contains(&diagnostic) {
            return;
        }
        if self.list.len() < MAX_DIAGNOSTICS {
            self.list.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds all diagnostics of `other`.
    pub fn append(&mut self, other: Self) {
        self.dropped += other.dropped;
        other.list.into_iter().for_each(|one| self.push(one));
    }

    /// Applies `change` to every diagnostic.
    #[must_use]
    pub(crate) fn map(self, change: impl Fn(Diagnostic) -> Diagnostic) -> Self {
        Self {
            list: self.list.into_iter().map(change).collect(),
            dropped: self.dropped,
        }
    }

    /// Returns the diagnostics. At most [`MAX_DIAGNOSTICS`](crate::limits::MAX_DIAGNOSTICS) are kept.
    #[must_use]
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Returns the number of diagnostics beyond the limit, which were not kept.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Whether there is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|one| one.severity == Severity::Error)
    }

    /// Downgrades the errors that `--force` permits to warnings.
    #[must_use]
    pub(crate) fn downgrade_forced(mut self) -> Self {
        for one in self.list.iter_mut().filter(|one| one.can_force) {
            one.severity = Severity::Warning;
        }
        self
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            list: vec![diagnostic],
            dropped: 0,
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, one) in self.list.iter().enumerate() {
            let newline = if index > 0 { "\n" } else { "" };
            write!(f, "{newline}{one}")?;
        }
        match self.dropped {
            0 => Ok(()),
            count => write!(f, "\n{count} more"),
        }
    }
}

/// Returns the name that is most similar to `wanted` as a hint: `did you mean "x"?`. Returns `None` if no
/// name is similar.
#[must_use]
pub(crate) fn did_you_mean<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    const LONGEST: usize = 64;
    let wanted: String = wanted.to_lowercase().chars().take(LONGEST).collect();
    let limit = (wanted.chars().count() / 2).clamp(1, 3);
    let near = names.map(|name| (strsim::levenshtein(&wanted, &name.to_lowercase()), name));
    let best = near.filter(|(far, _)| *far <= limit).min_by_key(|(far, _)| *far);
    best.map(|(_, name)| format!("did you mean {name:?}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_prints_location_path_value_and_hint() {
        let position = Location {
            file: "mesh.yaml".into(),
            line: 3,
            column: 5,
            source: "    hub: a b".into(),
        };
        let one = Diagnostic::error(Path::from_keys(&["spec", "hub"]), "is not a registry")
            .value("a b")
            .at(Some(position))
            .hint("remove the space");
        assert_eq!(
            one.to_string(),
            "mesh.yaml:3:5: error: spec.hub: is not a registry (value \"a b\")\n  hint: remove the space"
        );
    }

    #[test]
    fn the_number_of_diagnostics_is_limited() {
        let mut all = Diagnostics::default();
        for index in 0..MAX_DIAGNOSTICS + 5 {
            all.push(Diagnostic::error(Path::default(), index.to_string()));
        }
        assert_eq!((all.list().len(), all.dropped()), (MAX_DIAGNOSTICS, 5));
    }

    #[test]
    fn similar_names_are_suggested() {
        let suggest = |wanted| did_you_mean(wanted, ["enabled", "namespace", "k8s"].into_iter());
        assert_eq!(suggest("enable").as_deref(), Some("did you mean \"enabled\"?"));
        assert_eq!(
            suggest("nameSpace").as_deref(),
            Some("did you mean \"namespace\"?")
        );
        assert_eq!(suggest("replicas"), None);
    }
}
