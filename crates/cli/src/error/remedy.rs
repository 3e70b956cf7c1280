//! Remedies for mistakes on the command line: similar names, and the commands that accept a flag.

use clap::Command;

/// Maximum number of commands in a hint about a flag.
const MAX_COMMANDS: usize = 3;

/// Commands of kubectl that users type by habit.
const KUBECTL_COMMANDS: &[&str] = &[
    "annotate",
    "apply",
    "create",
    "delete",
    "describe",
    "edit",
    "exec",
    "explain",
    "get",
    "label",
    "logs",
    "patch",
    "port-forward",
    "scale",
    "wait",
];

/// Returns the name that differs from `word` in few characters.
pub(super) fn similar<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.map(|name| (strsim::osa_distance(word, name), name));
    let best = near.min_by_key(|(distance, _)| *distance)?;
    (best.0 <= 1 + word.chars().count() / 5).then_some(best.1)
}

/// Returns the names of the subcommands that help lists.
pub(super) fn subcommands(command: &Command) -> impl Iterator<Item = &str> {
    let visible = command.get_subcommands().filter(|it| !it.is_hide_set());
    visible.map(Command::get_name)
}

/// Returns a hint for a command of another program, if `word` is one.
pub(super) fn foreign_command(word: &str) -> Option<String> {
    KUBECTL_COMMANDS
        .contains(&word)
        .then(|| format!("use `kubectl {word}`; run `mainstay --help` to list the commands of mainstay"))
}

/// Returns commands of `tree` that accept `flag`, such as `--snapshot`, as `mainstay rehearse`.
pub(super) fn commands_with_flag(tree: &Command, flag: &str) -> Vec<String> {
    let mut found = Vec::new();
    collect(tree, tree.get_name(), flag.trim_start_matches('-'), &mut found);
    found.truncate(MAX_COMMANDS);
    found
}

fn collect(command: &Command, path: &str, flag: &str, found: &mut Vec<String>) {
    if command.get_arguments().any(|it| it.get_long() == Some(flag)) {
        found.push(format!("`{path}`"));
    }
    for child in command.get_subcommands() {
        collect(child, &format!("{path} {}", child.get_name()), flag, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_few_differences_are_similar() {
        let names = ["text", "wide", "json", "yaml"];
        let check = |word, expected| assert_eq!(similar(word, names.into_iter()), expected, "{word}");
        check("jsn", Some("json"));
        check("jsno", Some("json"));
        check("xml", None);
        assert_eq!(similar("stauts", ["start", "status"].into_iter()), Some("status"));
    }

    #[test]
    fn commands_with_a_flag_are_found() {
        let flag = || clap::Arg::new("snapshot").long("snapshot");
        let nested = Command::new("plan").subcommand(Command::new("now").arg(flag()));
        let tree = Command::new("a")
            .subcommand(Command::new("b").arg(flag()))
            .subcommand(nested);
        assert_eq!(commands_with_flag(&tree, "--snapshot"), ["`a b`", "`a plan now`"]);
        assert_eq!(commands_with_flag(&tree, "--other"), [""; 0]);
    }
}
