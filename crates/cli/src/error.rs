//! Errors as users see them: kind, message, location and hint on stderr, and an exit code.
//!
//! The message starts with `Error: ` and Helm's text, so that scripts that parse Helm's stderr still work.
//! The location, the source line with a caret and a hint follow.

mod remedy;
mod usage;

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use mainstay_chart::{ChartError, LayerError, SourceLocation, ValuesError};

pub(crate) use crate::ui::chain;
use crate::ui::snippet::{self, Excerpt, Mark};
use crate::ui::style::{ERROR, FRAME, HINT};
pub(crate) use usage::usage_error;

/// Error of a command.
#[derive(Debug)]
pub(crate) struct CliError {
    kind: Kind,
    message: String,
    hint: Option<String>,
    place: Option<SourceLocation>,
    exit: Option<u8>,
}

/// Kind of error; determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Invalid command line; clap's text is printed.
    Help,
    /// Invalid command line.
    Usage,
    /// A chart cannot be found or read.
    Chart,
    /// Invalid values file or `--set` argument.
    Values,
    Template,
    /// Rendered text is not a valid manifest.
    Manifest,
    /// A cluster or network is required.
    Offline,
    /// A read or write failed.
    Io,
    /// An object could not be injected.
    Inject,
    /// A cluster cannot be reached, or rejects a request.
    Cluster,
    /// Problems were found and have been printed.
    Attention,
    /// Invalid configuration file or environment.
    Config,
    /// `--check` found changes; nothing is printed.
    WouldChange,
    /// The reader of stdout closed it; nothing is printed.
    Closed,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Help | Self::Usage => "usage",
            Self::Chart => "chart",
            Self::Values => "values",
            Self::Template => "template",
            Self::Manifest => "manifest",
            Self::Offline => "offline",
            Self::Inject | Self::WouldChange => "injection",
            Self::Cluster | Self::Attention => "cluster",
            Self::Config => "configuration",
            Self::Io | Self::Closed => "i/o",
        }
    }

    /// Returns the exit code: 1 like Helm; for a closed pipe the code of SIGPIPE in a shell.
    fn code(self) -> u8 {
        match self {
            Self::Closed => 141,
            Self::Attention => 2,
            _ => 1,
        }
    }
}

impl CliError {
    /// Creates an error.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            place: None,
            exit: None,
        }
    }

    /// Adds a location: file, line and column starting at 1, and the source line.
    #[must_use]
    pub(crate) fn at(mut self, file: &str, line: usize, column: usize, source: String) -> Self {
        self.place = Some(SourceLocation {
            file: file.to_owned(),
            line: line as u32,
            column: Some(column as u32),
            source: Some(source),
        });
        self
    }

    /// Sets the exit code, except for kinds that are not failures.
    #[must_use]
    pub(crate) fn unless_quiet_exit(mut self, code: u8) -> Self {
        if !matches!(self.kind, Kind::Closed | Kind::WouldChange | Kind::Attention) {
            self.exit = Some(code);
        }
        self
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the message.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Appends text of Helm to the message.
    #[must_use]
    pub(crate) fn note(mut self, text: &str) -> Self {
        self.message.push_str(text);
        self
    }

    /// Prints the error and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let text = match self.kind {
            Kind::Closed | Kind::WouldChange | Kind::Attention => String::new(),
            Kind::Help => self.message.clone(),
            _ => self.to_string(),
        };
        // A closed stderr is ignored.
        let _ = anstream::stderr().write_all(text.as_bytes());
        ExitCode::from(self.exit.unwrap_or_else(|| self.kind.code()))
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{ERROR}Error:{ERROR:#} {}", self.message)?;
        if let Some(place) = &self.place {
            draw(place, self.kind, f)?;
        }
        match &self.hint {
            Some(hint) => writeln!(f, "{HINT}hint:{HINT:#} {hint}"),
            None => Ok(()),
        }
    }
}

/// Writes the location with the source line and a caret.
fn draw(place: &SourceLocation, kind: Kind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let column = place
        .column
        .map(|column| format!(":{column}"))
        .unwrap_or_default();
    writeln!(
        f,
        "{margin}{FRAME}-->{FRAME:#} {}:{number}{column} ({} error)",
        place.file,
        kind.name()
    )?;
    let Some(source) = &place.source else {
        return Ok(());
    };
    let excerpt = Excerpt {
        line: place.line as usize,
        text: source,
        indent: place.column.map(|column| column.saturating_sub(1) as usize),
        width: 1,
    };
    f.write_str(&snippet::draw(&excerpt, Mark::Error))
}

impl From<std::io::Error> for CliError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::new(Kind::Closed, ""),
            _ => Self::new(Kind::Io, error.to_string()),
        }
    }
}

impl From<ChartError> for CliError {
    fn from(error: ChartError) -> Self {
        let kind = match error {
            ChartError::Template { .. } => Kind::Template,
            ChartError::Manifest { .. } | ChartError::PostRender(_) => Kind::Manifest,
            ChartError::Schema(_) | ChartError::TypeMismatch { .. } => Kind::Values,
            ChartError::NoSuchTemplate(_) => Kind::Usage,
            _ => Kind::Chart,
        };
        let mut result = Self::new(kind, chain(&error));
        result.place = error.location().cloned();
        match error {
            ChartError::Schema(text) if has_remote_reference(&text) => {
                result.hint("use --skip-schema-validation: remote references of a schema are not fetched")
            }
            _ => result,
        }
    }
}

/// Whether a schema error is about a reference to another document.
fn has_remote_reference(text: &str) -> bool {
    let causes = [
        "references outside the schema are not allowed",
        "no URLLoader registered",
    ];
    causes.iter().any(|cause| text.contains(cause))
}

impl From<LayerError> for CliError {
    fn from(error: LayerError) -> Self {
        let message = match &error {
            // After Helm's text, which does not contain the cause.
            LayerError::Json { cause, .. } => format!("{}: {}", chain(&error), chain(cause)),
            LayerError::JsonObject { cause, .. } => format!("{}: {}", chain(&error), chain(cause)),
            _ => chain(&error),
        };
        let mut result = Self::new(Kind::Values, message);
        result.place = values_place(&error);
        result
    }
}

/// Returns the location in a values file or in a flag's argument.
fn values_place(error: &LayerError) -> Option<SourceLocation> {
    match error {
        LayerError::File { file, source } => in_file(file, source),
        LayerError::Set {
            flag,
            argument,
            source,
        } => Some(in_argument(flag, argument, source.offset)),
        LayerError::Json { argument, cause } => Some(in_argument("--set-json", argument, cause.offset)),
        LayerError::JsonObject { argument, cause } => {
            Some(in_argument("--set-json", argument, cause.at.offset))
        }
        _ => None,
    }
}

fn in_argument(flag: &str, argument: &str, offset: usize) -> SourceLocation {
    let before = argument.get(..offset).unwrap_or(argument);
    SourceLocation {
        file: flag.to_owned(),
        line: 1,
        column: Some(before.chars().count() as u32 + 1),
        source: Some(argument.lines().next().unwrap_or_default().to_owned()),
    }
}

fn in_file(file: &str, error: &ValuesError) -> Option<SourceLocation> {
    let (line, column) = match error {
        ValuesError::Separator { line, .. } => (*line, None),
        ValuesError::Document(error) | ValuesError::Plain(error) if error.at.line > 0 => {
            (error.at.line, Some(error.at.column as u32))
        }
        _ => return None,
    };
    let text = crate::input::read_again(file).unwrap_or_default();
    let source = text
        .split(|byte| *byte == b'\n')
        .nth(line.saturating_sub(1))
        .filter(|line| !line.is_empty());
    let source = source.map(|source| String::from_utf8_lossy(source).trim_end().to_owned());
    Some(SourceLocation {
        file: file.to_owned(),
        line: line as u32,
        column,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: &CliError, expected: &str) {
        let mut plain = anstream::StripStream::new(Vec::new());
        write!(plain, "{error}").unwrap();
        assert_eq!(String::from_utf8(plain.into_inner()).unwrap(), expected);
    }

    #[test]
    fn location_and_hint_follow_the_message() {
        let place = SourceLocation {
            file: "c/templates/a.yaml".into(),
            line: 12,
            column: Some(4),
            source: Some("\t{{ .x }}".into()),
        };
        check(&CliError::new(Kind::Values, "bad"), "Error: bad\n");
        check(
            &CliError {
                place: Some(place),
                ..CliError::new(Kind::Template, "bad").hint("better")
            },
            "Error: bad\n  --> c/templates/a.yaml:12:4 (template error)\n   |\n12 |     {{ .x }}\n   |       ^\nhint: better\n",
        );
    }
}
