//! Conversion of the template engine's errors to Helm's error texts and locations in the chart's source.

use mainstay_template::Error;

use crate::dialect::Dialect;
use crate::error::{ChartError, SourceLocation};
use crate::functions::{WARN_END, WARN_START};
use crate::render::scope::Renderable;

/// Converter for errors of one render.
pub(super) struct Failures<'a> {
    pub(super) renderables: &'a [Renderable<'a>],
    pub(super) dialect: Dialect,
}

impl Failures<'_> {
    /// Converts the error of a template that cannot be parsed.
    pub(super) fn parse(&self, filename: &str, error: &Error) -> ChartError {
        let tokens: Vec<&str> = error.text.split(": ").collect();
        let text = match tokens.as_slice() {
            [_, location, .., problem] => format!("parse error at ({location}): {problem}"),
            [_, location] => format!("parse error at ({location}): {location}"),
            _ => format!("parse error in ({filename}): {}", error.text),
        };
        self.error(text, error)
    }

    /// Converts the error of a template that failed during execution.
    pub(super) fn execute(&self, error: &Error) -> ChartError {
        self.error(message(&error.text, self.dialect), error)
    }

    fn error(&self, text: String, error: &Error) -> ChartError {
        ChartError::Template {
            text,
            location: self.location(error).map(Box::new),
        }
    }

    /// Returns the innermost position that is in a file of the chart.
    fn location(&self, error: &Error) -> Option<SourceLocation> {
        error.at.iter().rev().find_map(|at| {
            let text = self.source(&at.template)?;
            let source = text
                .split(|byte| *byte == b'\n')
                .nth(at.line.checked_sub(1)? as usize);
            let source = source.map(|line| String::from_utf8_lossy(line).trim_end().to_owned());
            let column = at
                .column
                .map(|column| to_characters(source.as_deref(), column) + 1);
            Some(SourceLocation {
                file: at.template.clone(),
                line: at.line,
                column,
                source,
            })
        })
    }

    fn source(&self, path: &str) -> Option<&[u8]> {
        self.renderables
            .iter()
            .find(|renderable| renderable.path == path)
            .map(|renderable| &**renderable.text)
    }
}

fn message(text: &str, dialect: Dialect) -> String {
    let mut tokens = text.splitn(3, ": ");
    let (Some(_), Some(location), Some(rest)) = (tokens.next(), tokens.next(), tokens.next()) else {
        return text.to_owned();
    };
    if let Some(warning) = user_message(rest) {
        return format!("execution error at ({location}): {warning}");
    }
    let trace = dialect.prints_error_trace().then(|| format_trace(text)).flatten();
    trace.unwrap_or_else(|| text.to_owned())
}

/// Returns the message of `required` or `fail`.
fn user_message(text: &str) -> Option<&str> {
    let start = text.find(WARN_START)? + WARN_START.len();
    let end = text.rfind(WARN_END)?;
    text.get(start..end)
}

/// Formats a chain of template errors with one line per error. Returns `None` if an item of the chain is
/// not a template error.
fn format_trace(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut last = None;
    let mut current = Some(text);
    while let Some(text) = current {
        let link = TraceEntry::parse(text)?;
        if last.as_ref() != Some(&link) {
            link.write_to(&mut out);
        }
        last = Some(link);
        current = function_error(text);
    }
    Some(out.trim().to_owned())
}

/// An error in a chain of template errors.
#[derive(PartialEq, Eq)]
struct TraceEntry<'a> {
    location: &'a str,
    executing: Option<(&'a str, &'a str)>,
    message: &'a str,
}

impl<'a> TraceEntry<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("template: ")?;
        if rest.starts_with("no template ") {
            return Some(Self {
                location: "",
                executing: None,
                message: text,
            });
        }
        if let Some((location, after)) = rest.split_once(": executing ")
            && let Some((name, context, message)) = parse_executing(after)
        {
            let executing = Some((name, context));
            return Some(Self {
                location,
                executing,
                message: before_next(message),
            });
        }
        let (location, message) = rest.rsplit_once(": ")?;
        Some(Self {
            location,
            executing: None,
            message: before_next(message),
        })
    }

    fn write_to(&self, out: &mut String) {
        let mut line = |text: &str, after: &str| {
            if !text.is_empty() {
                out.push_str(text);
                out.push_str(after);
            }
        };
        line(self.location, "\n  ");
        if let Some((name, context)) = self.executing {
            line(&format!("executing \"{name}\" at <{context}>:"), "\n    ");
        }
        line(self.message, "\n");
    }
}

/// Parses `"name" at <context>: message`.
fn parse_executing(text: &str) -> Option<(&str, &str, &str)> {
    let (name, after) = text.strip_prefix('"')?.split_once('"')?;
    let (context, message) = after.strip_prefix(" at <")?.split_once(">: ")?;
    Some((name, context, message))
}

fn before_next(message: &str) -> &str {
    message
        .find(" template:")
        .and_then(|cut| message.get(..cut))
        .unwrap_or(message)
}

/// Returns the error that a function returned, which Go stores as the cause of `error calling NAME`.
fn function_error(text: &str) -> Option<&str> {
    let (_, after) = text.strip_prefix("template: ")?.split_once(": executing ")?;
    let (_, _, message) = parse_executing(after)?;
    message
        .strip_prefix("error calling ")?
        .split_once(": ")
        .map(|(_, cause)| cause)
}

/// Converts Go's column, which is counted in bytes, to characters.
fn to_characters(source: Option<&str>, bytes: u32) -> u32 {
    let before = source.and_then(|source| source.get(..bytes as usize));
    before.map_or(bytes, |before| before.chars().count() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, helm4: &str, helm3: &str) {
        assert_eq!(message(text, Dialect::Helm4), helm4);
        assert_eq!(message(text, Dialect::Helm3), helm3);
    }

    #[test]
    fn template_error_is_printed_on_several_lines() {
        let text = "template: c/templates/a.yaml:1:10: executing \"c/templates/a.yaml\" at <.Values.a.b>: nil pointer evaluating interface {}.b";
        check(
            text,
            "c/templates/a.yaml:1:10\n  executing \"c/templates/a.yaml\" at <.Values.a.b>:\n    nil pointer evaluating interface {}.b",
            text,
        );
    }

    #[test]
    fn chain_of_errors_is_printed_as_a_trace() {
        let text = "template: c/a:1:40: executing \"c/a\" at <include \"u\" .>: error calling include: template: c/a:1:21: executing \"u\" at <.a.b.c>: nil pointer evaluating interface {}.b";
        check(
            text,
            "c/a:1:40\n  executing \"c/a\" at <include \"u\" .>:\n    error calling include:\nc/a:1:21\n  executing \"u\" at <.a.b.c>:\n    nil pointer evaluating interface {}.b",
            text,
        );
    }

    #[test]
    fn missing_template_is_the_last_entry_of_the_trace() {
        let text = "template: c/a:1:3: executing \"c/a\" at <include \"n\" .>: error calling include: template: no template \"n\" associated with template \"gotpl\"";
        check(
            text,
            "c/a:1:3\n  executing \"c/a\" at <include \"n\" .>:\n    error calling include:\ntemplate: no template \"n\" associated with template \"gotpl\"",
            text,
        );
    }

    #[test]
    fn errors_of_functions_are_unchanged() {
        let text = "template: c/a:1:3: executing \"c/a\" at <eq 1 \"a\">: error calling eq: incompatible types for comparison: int and string";
        check(text, text, text);
    }

    #[test]
    fn fail_message_is_printed_without_the_trace() {
        let text = "template: c/a:1:49: executing \"c/a\" at <include \"v\" .Values>: error calling include: template: c/a:1:19: executing \"v\" at <fail \"deep: er\">: error calling fail: HELM_ERR_STARTdeep: erHELM_ERR_END";
        check(
            text,
            "execution error at (c/a:1:49): deep: er",
            "execution error at (c/a:1:49): deep: er",
        );
    }
}
