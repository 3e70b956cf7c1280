//! Help texts that fit any terminal.

use clap::Command;

/// Joins the lines of every paragraph below the options of `command` and its subcommands. clap wraps long
/// lines, but keeps the line breaks of the source, which would end lines early on other widths.
pub(crate) fn join_paragraphs(command: Command) -> Command {
    let text = command.get_after_help().map(ToString::to_string);
    let command = match text {
        Some(text) => command.after_help(joined(&text)),
        None => command,
    };
    command.mut_subcommands(join_paragraphs)
}

/// Joins lines that follow each other without indentation. Indented lines are examples and stay.
fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut in_paragraph = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        if !joined.is_empty() {
            joined.push(if in_paragraph && is_prose { ' ' } else { '\n' });
        }
        joined.push_str(line);
        in_paragraph = is_prose;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_examples_are_kept() {
        let text = "Examples:\n  a\n  b\n\nA long\nsentence.\n\nExit codes: 0,\n1.";
        let expected = "Examples:\n  a\n  b\n\nA long sentence.\n\nExit codes: 0, 1.";
        assert_eq!(joined(text), expected);
    }

    #[test]
    fn subcommands_are_included() {
        let child = Command::new("b").after_help("One\ntwo.");
        let command = join_paragraphs(Command::new("a").subcommand(child));
        let child = command.find_subcommand("b").unwrap();
        assert_eq!(child.get_after_help().unwrap().to_string(), "One two.");
    }
}
