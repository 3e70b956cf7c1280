//! Prints the command tree as one Markdown page.

use std::fmt::Write as _;

use clap::{Arg, Command};

/// Returns the page: one section per command, in the order of `--help`.
pub(super) fn page(mut command: Command) -> String {
    command.build();
    let mut text = String::from("# Command line\n");
    add_section(&mut text, &command);
    text
}

fn add_section(text: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let _ = writeln!(text, "\n## `{name}`\n\n{}.", about(command));
    if command.get_subcommands().next().is_none() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
        let _ = writeln!(text, "\n```text\n{usage}\n```");
        add_arguments(text, command);
    }
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let lines = examples.strip_prefix("Examples:\n").unwrap_or(&examples);
        let _ = writeln!(text, "\nExamples:\n\n```text\n{}\n```", unindented(lines));
    }
    let shown = |child: &&Command| !child.is_hide_set() && child.get_name() != "help";
    for child in command.get_subcommands().filter(shown) {
        add_section(text, child);
    }
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    about.unwrap_or_default().trim_end_matches('.').to_owned()
}

fn add_arguments(text: &mut String, command: &Command) {
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && !argument.is_global_set())
        .collect();
    if arguments.is_empty() {
        return;
    }
    *text += "\n| argument | meaning |\n|---|---|\n";
    for argument in arguments {
        let _ = writeln!(text, "| {} | {} |", spelling(argument), meaning(argument));
    }
}

/// Returns an argument as it is typed, such as `` `-n`, `--namespace NAME` ``.
fn spelling(argument: &Arg) -> String {
    let values: Vec<&str> = argument
        .get_value_names()
        .filter(|_| argument.get_action().takes_values())
        .unwrap_or_default()
        .iter()
        .map(clap::builder::Str::as_str)
        .collect();
    let value = values.join(" ");
    let short = argument.get_short().map(|short| format!("`-{short}`, "));
    match argument.get_long() {
        Some(long) => format!(
            "{}`{}`",
            short.unwrap_or_default(),
            format!("--{long} {value}").trim_end()
        ),
        None => format!("`{value}`"),
    }
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let hidden = argument.is_hide_possible_values_set();
    let values = argument.get_possible_values();
    let names: Vec<&str> = values
        .iter()
        .filter(|value| !hidden && !value.is_hide_set())
        .map(clap::builder::PossibleValue::get_name)
        .collect();
    let possible = if names.is_empty() {
        String::new()
    } else {
        format!(" (`{}`)", names.join("`, `"))
    };
    format!("{help}{possible}").replace('|', "\\|").replace('\n', " ")
}

fn unindented(lines: &str) -> String {
    let lines = lines.lines().map(|line| line.strip_prefix("  ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_sections_with_arguments_and_examples() {
        let child = Command::new("show")
            .about("Show a thing")
            .arg(Arg::new("name").value_name("NAME").help("Name of the thing"))
            .arg(
                Arg::new("output")
                    .short('o')
                    .long("output")
                    .value_name("FORMAT")
                    .value_parser(["json", "yaml"])
                    .help("Output format"),
            )
            .after_help("Examples:\n  tool show a");
        let text = page(Command::new("tool").about("A tool").subcommand(child));
        assert!(text.contains("\n## `tool show`\n\nShow a thing.\n"), "{text}");
        assert!(text.contains("| `NAME` | Name of the thing |\n"), "{text}");
        let output = "| `-o`, `--output FORMAT` | Output format (`json`, `yaml`) |\n";
        assert!(text.contains(output), "{text}");
        assert!(text.contains("```text\ntool show a\n```\n"), "{text}");
        assert!(
            text.contains("```text\ntool show [OPTIONS] [NAME]\n```\n"),
            "{text}"
        );
    }
}
