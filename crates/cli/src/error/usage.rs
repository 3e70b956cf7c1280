//! Errors of the command line: Helm's text where Helm has one, and a hint that names the remedy.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::remedy::{commands_with_flag, foreign_command, similar, subcommands};
use super::{CliError, Kind};
use crate::flag_value::FlagError;

/// Converts an error of clap for the command line `argv` of `tree`. Help and version are printed and end the
/// process.
pub(crate) fn usage_error(error: &clap::Error, argv: &[OsString], tree: &clap::Command) -> CliError {
    if !error.use_stderr() {
        let done = error.print();
        return done.err().map_or_else(|| std::process::exit(0), CliError::from);
    }
    let help = format!("`{} --help`", command_path(argv, tree));
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            CliError::new(Kind::Help, error.render().ansi().to_string())
        }
        ErrorKind::UnknownArgument => unknown_argument(error, tree, &help),
        ErrorKind::InvalidSubcommand => unknown_command(error, argv, tree),
        ErrorKind::MissingSubcommand => {
            let message = format!("{:?} needs a command", command_path(argv, tree));
            CliError::new(Kind::Usage, message).hint(format!("run {help} to list the commands"))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = text(error, ContextKind::InvalidArg);
            CliError::new(Kind::Usage, format!("missing argument: {missing}"))
                .hint(format!("add it; run {help} for examples"))
        }
        ErrorKind::ArgumentConflict => conflict(error, &help),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => invalid_value(error, &help),
        _ => CliError::new(Kind::Usage, first_line(error)).hint(format!("run {help} for the usage")),
    }
}

/// Returns the words of `argv` that name a command: `mainstay migration plan`.
fn command_path(argv: &[OsString], tree: &clap::Command) -> String {
    let mut path = tree.get_name().to_owned();
    let mut command = tree;
    for word in argv.iter().skip(1) {
        let word = word.to_string_lossy();
        match command.find_subcommand(word.as_ref()) {
            Some(found) => {
                path.extend([" ", found.get_name()]);
                command = found;
            }
            // `mainstay help migration` names the same command as `mainstay migration`.
            None if word.starts_with('-') || word == "help" => {}
            None => break,
        }
    }
    path
}

fn unknown_argument(error: &clap::Error, tree: &clap::Command, help: &str) -> CliError {
    let argument = text(error, ContextKind::InvalidArg);
    let message = match argument.strip_prefix('-') {
        None => format!("unexpected argument: {argument}"),
        Some(short) if !short.starts_with('-') => {
            let first = short.chars().next().unwrap_or('-');
            format!("unknown shorthand flag: '{first}' in {argument}")
        }
        Some(_) => format!("unknown flag: {argument}"),
    };
    let others = commands_with_flag(tree, &argument);
    let hint = match error.get(ContextKind::SuggestedArg) {
        Some(suggested) => format!("did you mean {suggested}? run {help} to list the flags"),
        None if !others.is_empty() => {
            let others = others.join(", ");
            format!("use it with one of {others}; run {help} to list the flags of this command")
        }
        None if argument.starts_with('-') => format!("remove it; run {help} to list the flags"),
        None => format!("remove it; run {help} for the usage"),
    };
    CliError::new(Kind::Usage, message).hint(hint)
}

fn unknown_command(error: &clap::Error, argv: &[OsString], tree: &clap::Command) -> CliError {
    let path = command_path(argv, tree);
    let word = text(error, ContextKind::InvalidSubcommand);
    let parent = parent(tree, &path);
    let hint = similar(&word, subcommands(parent))
        .map(|name| format!("did you mean `{path} {name}`? run `{path} --help` to list the commands"))
        .or_else(|| foreign_command(&word).filter(|_| path == tree.get_name()));
    let hint = hint.unwrap_or_else(|| {
        let names: Vec<&str> = subcommands(parent).collect();
        format!("use one of {}", names.join(", "))
    });
    CliError::new(Kind::Usage, format!("unknown command {word:?} for {path:?}")).hint(hint)
}

/// Returns the command that `path` names.
fn parent<'a>(tree: &'a clap::Command, path: &str) -> &'a clap::Command {
    let names = path.split(' ').skip(1);
    names.fold(tree, |command, name| {
        command.find_subcommand(name).unwrap_or(command)
    })
}

fn conflict(error: &clap::Error, help: &str) -> CliError {
    let (first, other) = (
        text(error, ContextKind::InvalidArg),
        text(error, ContextKind::PriorArg),
    );
    let message = match (first == other, other.is_empty()) {
        (true, _) => format!("{first} may be given once only"),
        (_, true) => format!("{first} cannot be used with the other arguments"),
        _ => format!("{first} cannot be used with {other}"),
    };
    CliError::new(Kind::Usage, message).hint(format!("remove one of them; run {help} for the usage"))
}

/// Returns the error for a missing or invalid value.
fn invalid_value(error: &clap::Error, help: &str) -> CliError {
    let (argument, value) = (
        text(error, ContextKind::InvalidArg),
        text(error, ContextKind::InvalidValue),
    );
    let flag = argument.split([' ', '=', '[']).next().unwrap_or_default();
    let possible = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) => values.join(", "),
        _ => String::new(),
    };
    if value.is_empty() {
        let hint = match possible.as_str() {
            "" => format!("add a value; run {help} for examples"),
            possible => format!("add one of {possible}"),
        };
        return CliError::new(Kind::Usage, format!("flag needs an argument: {flag}")).hint(hint);
    }
    let message = match flag.strip_prefix('<') {
        Some(name) => format!("invalid argument {value:?} for {}", name.trim_end_matches('>')),
        None => format!("invalid argument {value:?} for {flag:?} flag"),
    };
    if let Some(cause) = std::error::Error::source(error) {
        let remedy = cause.downcast_ref::<FlagError>().map(FlagError::remedy);
        let remedy = remedy.unwrap_or_else(|| "correct the value".to_owned());
        return CliError::new(Kind::Usage, format!("{message}: {cause}"))
            .hint(format!("{remedy}; run {help} for examples"));
    }
    let similar = similar(&value, possible.split(", "));
    let similar = similar
        .map(|name| format!("did you mean {name}? "))
        .unwrap_or_default();
    CliError::new(Kind::Usage, message).hint(format!("{similar}use one of {possible}"))
}

/// Returns a part of the error; several values are separated by commas.
fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::Strings(values)) => values.join(", "),
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// Returns clap's message without its prefix and usage.
fn first_line(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let line = rendered.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
