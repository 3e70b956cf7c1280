//! How Helm words a failed template: takes the engine's error, gives the text of either dialect and the place in the
//! chart's source.

use mainstay_template::Error;

use crate::dialect::Dialect;
use crate::error::{ChartError, SourceLocation};
use crate::functions::{WARN_END, WARN_START};

/// Finds the text a template was parsed from, by the name it was parsed under.
pub(super) type Sources<'a> = &'a dyn Fn(&str) -> Option<&'a [u8]>;

/// A file that is not a template.
pub(super) fn parse(filename: &str, error: &Error, sources: Sources<'_>) -> ChartError {
    let tokens: Vec<&str> = error.text.split(": ").collect();
    let text = match tokens.as_slice() {
        [_, location, .., problem] => format!("parse error at ({location}): {problem}"),
        [_, location] => format!("parse error at ({location}): {location}"),
        _ => format!("parse error in ({filename}): {}", error.text),
    };
    ChartError::Template {
        text,
        place: place(error, sources).map(Box::new),
    }
}

/// A template that failed while it ran.
pub(super) fn run(error: &Error, dialect: Dialect, sources: Sources<'_>) -> ChartError {
    ChartError::Template {
        text: message(&error.text, dialect),
        place: place(error, sources).map(Box::new),
    }
}

fn message(text: &str, dialect: Dialect) -> String {
    let mut tokens = text.splitn(3, ": ");
    let (Some(_), Some(location), Some(rest)) = (tokens.next(), tokens.next(), tokens.next()) else {
        return text.to_owned();
    };
    if let Some(warning) = warning(rest) {
        return format!("execution error at ({location}): {warning}");
    }
    match dialect {
        Dialect::Helm3 => text.to_owned(),
        Dialect::Helm4 => trace(text).unwrap_or_else(|| text.to_owned()),
    }
}

/// What `required` or `fail` said.
fn warning(text: &str) -> Option<&str> {
    let start = text.find(WARN_START)? + WARN_START.len();
    let end = text.rfind(WARN_END)?;
    text.get(start..end)
}

/// Helm 4 lays a chain of template errors out over lines; `None` where a link of it is no template error.
fn trace(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut last = None;
    let mut current = Some(text);
    while let Some(text) = current {
        let link = Link::parse(text)?;
        if last.as_ref() != Some(&link) {
            link.lay_out(&mut out);
        }
        last = Some(link);
        current = cause(text);
    }
    Some(out.trim().to_owned())
}

/// One link of a chain.
#[derive(PartialEq, Eq)]
struct Link<'a> {
    location: &'a str,
    executing: Option<(&'a str, &'a str)>,
    message: &'a str,
}

impl<'a> Link<'a> {
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
            && let Some((name, context, message)) = executing(after)
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

    fn lay_out(&self, out: &mut String) {
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

/// `"name" at <context>: message`.
fn executing(text: &str) -> Option<(&str, &str, &str)> {
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

/// The error a function returned, which Go keeps as the cause of `error calling NAME`.
fn cause(text: &str) -> Option<&str> {
    let (_, after) = text.strip_prefix("template: ")?.split_once(": executing ")?;
    let (_, _, message) = executing(after)?;
    message
        .strip_prefix("error calling ")?
        .split_once(": ")
        .map(|(_, cause)| cause)
}

/// The innermost place that lies in a file of the chart.
fn place(error: &Error, sources: Sources<'_>) -> Option<SourceLocation> {
    error.at.iter().rev().find_map(|at| {
        let text = sources(&at.template)?;
        let source = text
            .split(|byte| *byte == b'\n')
            .nth(at.line.checked_sub(1)? as usize);
        let source = source.map(|line| String::from_utf8_lossy(line).trim_end().to_owned());
        let column = at.column.map(|column| characters(source.as_deref(), column) + 1);
        Some(SourceLocation {
            file: at.template.clone(),
            line: at.line,
            column,
            source,
        })
    })
}

/// Go counts bytes, people count characters.
fn characters(source: Option<&str>, bytes: u32) -> u32 {
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
    fn a_failure_is_laid_out() {
        let text = "template: c/templates/a.yaml:1:10: executing \"c/templates/a.yaml\" at <.Values.a.b>: nil pointer evaluating interface {}.b";
        check(
            text,
            "c/templates/a.yaml:1:10\n  executing \"c/templates/a.yaml\" at <.Values.a.b>:\n    nil pointer evaluating interface {}.b",
            text,
        );
    }

    #[test]
    fn a_chain_is_laid_out_link_by_link() {
        let text = "template: c/a:1:40: executing \"c/a\" at <include \"u\" .>: error calling include: template: c/a:1:21: executing \"u\" at <.a.b.c>: nil pointer evaluating interface {}.b";
        check(
            text,
            "c/a:1:40\n  executing \"c/a\" at <include \"u\" .>:\n    error calling include:\nc/a:1:21\n  executing \"u\" at <.a.b.c>:\n    nil pointer evaluating interface {}.b",
            text,
        );
    }

    #[test]
    fn a_missing_template_ends_a_chain() {
        let text = "template: c/a:1:3: executing \"c/a\" at <include \"n\" .>: error calling include: template: no template \"n\" associated with template \"gotpl\"";
        check(
            text,
            "c/a:1:3\n  executing \"c/a\" at <include \"n\" .>:\n    error calling include:\ntemplate: no template \"n\" associated with template \"gotpl\"",
            text,
        );
    }

    #[test]
    fn what_a_function_says_stays_as_it_is() {
        let text = "template: c/a:1:3: executing \"c/a\" at <eq 1 \"a\">: error calling eq: incompatible types for comparison: int and string";
        check(text, text, text);
    }

    #[test]
    fn what_the_author_says_stands_alone() {
        let text = "template: c/a:1:49: executing \"c/a\" at <include \"v\" .Values>: error calling include: template: c/a:1:19: executing \"v\" at <fail \"deep: er\">: error calling fail: HELM_ERR_STARTdeep: erHELM_ERR_END";
        check(
            text,
            "execution error at (c/a:1:49): deep: er",
            "execution error at (c/a:1:49): deep: er",
        );
    }
}
