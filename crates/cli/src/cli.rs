//! The command tree: parses argv and runs the command.

use std::ffi::OsString;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    adopt, charts, cluster, completion, crds, generate, install, man, manifest, migration, operator,
    precheck, profile, revision, rollout, status, tag, template, uninstall, verify, version,
};
#[cfg(feature = "simulator")]
use crate::commands::{demo, rehearse, sandbox};
use crate::error::{CliError, usage_error};
use crate::ui::style::Color;
use crate::ui::{help, verbose};

/// Render and operate an Istio service mesh
#[derive(Parser)]
#[command(name = "mainstay", version, arg_required_else_help = true)]
#[command(after_help = "Examples:
  mainstay demo
  mainstay template istiod ./charts/istiod -n istio-system
  mainstay generate --check --diff k8s/
  mainstay manifest generate -f mesh.yaml
  mainstay install -f mesh.yaml
  mainstay charts list
  mainstay status --context prod
  mainstay adopt
  mainstay migration plan --to v1.29.1
  mainstay rehearse --to v1.29.1 --report upgrade.html
  mainstay rollout plan -f deployment.yaml
  mainstay operator run --help
  mainstay sandbox
  mainstay completion bash > /etc/bash_completion.d/mainstay")]
struct Cli {
    /// When to color messages: auto, always or never
    #[arg(long, alias = "colour", global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN",
        hide_possible_values = true, hide_default_value = true)]
    color: Color,

    /// Print every request to the API server on stderr
    #[arg(short, long, global = true)]
    verbose: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "simulator")]
    /// Show an Istio upgrade of twelve workloads on an embedded cluster
    Demo(demo::Args),
    /// Render a chart, byte for byte like `helm template`
    Template(Box<template::Args>),
    /// Add the Contrast initializer and service mesh to manifests
    Generate(Box<generate::Args>),
    /// Generate, install, compare and check the objects of `IstioOperator` files
    Manifest(manifest::Args),
    /// Install or change a control plane
    Install(Box<install::Args>),
    /// Upgrade a control plane after checking that it is eligible
    Upgrade(Box<install::UpgradeArgs>),
    /// Uninstall a control plane, or everything
    Uninstall(uninstall::Args),
    /// Compare a cluster with a configuration
    Verify(Box<verify::Args>),
    /// Check whether Istio can be installed or upgraded
    Precheck(Box<precheck::Args>),
    /// List, set, generate and remove revision tags
    Tag(tag::Args),
    /// List, print and compare configuration profiles
    Profile(profile::Args),
    /// List, show and add Istio chart versions
    Charts(charts::Args),
    /// Show mesh status
    Status(Box<status::Args>),
    /// List and describe revisions
    Revision(Box<revision::Args>),
    /// Plan, watch and control the migration of workloads to a new revision
    Migration(Box<migration::Args>),
    /// Plan, apply, watch and control application rollouts
    Rollout(rollout::Args),
    /// Add, check and list the clusters of application rollouts
    Cluster(cluster::Args),
    #[cfg(feature = "simulator")]
    /// Rehearse an upgrade on a copy of the cluster
    Rehearse(Box<rehearse::Args>),
    /// Take over a mesh that Helm, istioctl or another tool installed
    Adopt(Box<adopt::Args>),
    /// Print or install custom resource definitions
    Crds(crds::Args),
    /// Run the operator
    Operator(operator::Args),
    #[cfg(feature = "simulator")]
    /// Run a simulated Kubernetes cluster on this machine
    Sandbox(sandbox::Args),
    /// Print a shell completion script
    Completion(completion::Args),
    /// Write the man pages
    Man(man::Args),
    /// Print version information
    Version(version::Args),
}

/// Runs the command that `argv` names.
pub(crate) fn run(argv: impl IntoIterator<Item = OsString>) -> Result<(), CliError> {
    let argv = version_flag(operator::with_two_dashes(argv.into_iter().collect()));
    let failed = |error: clap::Error| with_exit_code(usage_error(&error, &argv, &command()), &argv);
    let matches = command().try_get_matches_from(&argv).map_err(failed)?;
    let cli = Cli::from_arg_matches(&matches).map_err(failed)?;
    cli.color.choose();
    if cli.verbose {
        verbose::enable();
    }
    match cli.command {
        #[cfg(feature = "simulator")]
        Command::Demo(it) => demo::run(&it),
        Command::Template(it) => template::run(&it),
        Command::Generate(it) => generate::run(&it),
        Command::Manifest(it) => manifest::run(&it),
        Command::Install(it) => install::run(&it),
        Command::Upgrade(it) => install::run_upgrade(&it),
        Command::Uninstall(it) => uninstall::run(&it),
        Command::Verify(it) => verify::run(&it),
        Command::Precheck(it) => precheck::run(&it),
        Command::Tag(it) => tag::run(&it),
        Command::Profile(it) => profile::run(&it),
        Command::Charts(it) => charts::run(&it),
        Command::Status(it) => status::run(&it),
        Command::Revision(it) => revision::run(&it),
        Command::Migration(it) => migration::run(&it),
        Command::Rollout(it) => rollout::run(&it),
        Command::Cluster(it) => cluster::run(&it),
        #[cfg(feature = "simulator")]
        Command::Rehearse(it) => rehearse::run(&it),
        Command::Adopt(it) => adopt::run(&it),
        Command::Crds(it) => crds::run(&it),
        Command::Operator(it) => operator::run(&it),
        #[cfg(feature = "simulator")]
        Command::Sandbox(it) => sandbox::run(&it),
        Command::Completion(it) => completion::run(&it, command()),
        Command::Man(it) => man::run(&it, command()),
        Command::Version(it) => version::run(&it),
    }
}

/// Usage errors of these commands exit with 2, because 1 means a difference or a failure.
const USAGE_EXITS_WITH_2: &[&str] = &[
    "generate",
    "install",
    "manifest",
    "precheck",
    "tag",
    "uninstall",
    "upgrade",
    "verify",
];

/// Replaces `-v` without a command by `--version`.
fn version_flag(mut argv: Vec<OsString>) -> Vec<OsString> {
    if let [_, flag] = argv.as_mut_slice()
        && flag == "-v"
    {
        *flag = "--version".into();
    }
    argv
}

/// Returns the error with the exit code of its command.
fn with_exit_code(error: CliError, argv: &[OsString]) -> CliError {
    let is_word = |word: &&OsString| !word.to_string_lossy().starts_with('-');
    let command = argv.iter().skip(1).find(is_word);
    match command.filter(|word| USAGE_EXITS_WITH_2.iter().any(|command| word == command)) {
        Some(_) => error.unless_quiet_exit(2),
        None => error,
    }
}

/// Returns the command tree. The arguments of `template` behave like Helm's (`--flag=false`, the last of two
/// wins, values may begin with a dash), which the derive macro cannot express for all of them.
fn command() -> clap::Command {
    let tree = Cli::command().mut_subcommand("operator", |it| operator::as_go_flags(it, as_go_flag));
    let tree = tree.mut_subcommand("template", |template| {
        template
            .args_override_self(true)
            .mut_args(|arg| match arg.get_action() {
                ArgAction::SetTrue => as_go_flag(arg),
                ArgAction::Set | ArgAction::Append if !arg.is_positional() => arg.allow_hyphen_values(true),
                _ => arg,
            })
    });
    help::join_paragraphs(tree)
}

fn as_go_flag(arg: clap::Arg) -> clap::Arg {
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .value_parser(crate::flag_value::go_bool)
        .hide_default_value(true)
        .hide_possible_values(true)
        .value_name("BOOL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tree_is_valid() {
        command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        fn check(command: &clap::Command) {
            let help = command.get_after_help().map(ToString::to_string);
            let name = command.get_name();
            assert!(
                help.unwrap_or_default().contains("Examples:\n"),
                "no examples: {name}"
            );
            command.get_subcommands().for_each(check);
        }
        check(&command());
    }

    /// Whether a command, such as `manifest generate`, or one of its subcommands has a flag; without a flag,
    /// whether the command exists.
    fn exists(command: &clap::Command, words: &[&str]) -> bool {
        match words {
            [] => true,
            [flag, ..] if flag.starts_with('-') => {
                let is_named = |one: &clap::Arg| {
                    let long = one.get_long().is_some_and(|long| format!("--{long}") == *flag);
                    long || one.get_short().is_some_and(|short| format!("-{short}") == *flag)
                };
                let mut below = command.get_subcommands();
                command.get_arguments().any(is_named) || below.any(|one| exists(one, words))
            }
            [name, rest @ ..] => command.find_subcommand(name).is_some_and(|one| exists(one, rest)),
        }
    }

    #[test]
    fn flags_that_are_documented_as_missing_do_not_exist() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let page = std::fs::read_to_string(root.join("docs/from-istioctl.md")).unwrap();
        let (_, table) = page
            .split_once("These flags of istioctl do not exist:\n")
            .unwrap();
        let rows = table.lines().skip(3).take_while(|line| line.starts_with('|'));
        let cells = rows.map(|row| row.split('|').nth(1).unwrap());
        let all: Vec<&str> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        assert!(all.len() >= 15, "{all:?}");
        for text in all {
            let words: Vec<&str> = text.split_whitespace().collect();
            // `template` has the flags of Helm, `-c` is a flag of other commands.
            assert!(!exists(&command(), &words) || text == "-c", "{text}");
        }
        assert!(exists(&command(), &["manifest", "generate", "--component"]));
        assert!(exists(&command(), &["uninstall", "-f"]));
        let install = command();
        assert!(!exists(install.find_subcommand("install").unwrap(), &["-c"]));
    }

    /// Returns all commands below `command` with their paths, such as `migration plan`.
    fn all_commands(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
        for child in command.get_subcommands() {
            let path = format!("{path} {}", child.get_name()).trim().to_owned();
            all_commands(child, &path, found);
            found.push((path, child.clone()));
        }
    }

    /// Returns the paths of all commands whose flags violate a rule.
    fn violations(is_violation: impl Fn(&clap::Command) -> bool) -> Vec<String> {
        let mut commands = Vec::new();
        all_commands(&command(), "", &mut commands);
        assert!(commands.len() > 40, "{} commands", commands.len());
        let found = commands.into_iter().filter(|(_, command)| is_violation(command));
        let mut paths: Vec<String> = found.map(|(path, _)| path).collect();
        paths.sort();
        paths
    }

    fn has_flag(command: &clap::Command, name: &str) -> bool {
        command.get_arguments().any(|arg| arg.get_long() == Some(name))
    }

    #[test]
    fn every_output_format_json_comes_with_yaml() {
        let values = |arg: &clap::Arg| -> Vec<String> {
            let values = arg.get_possible_values();
            values.iter().map(|value| value.get_name().to_owned()).collect()
        };
        let has = |values: &[String], name: &str| values.iter().any(|value| value == name);
        let lacks_yaml = |arg: &clap::Arg| {
            let values = values(arg);
            arg.get_short() == Some('o') && has(&values, "json") && !has(&values, "yaml")
        };
        assert_eq!(
            violations(|command| command.get_arguments().any(lacks_yaml)),
            [""; 0]
        );
    }

    #[test]
    fn every_command_on_a_cluster_selects_a_context() {
        let found = violations(|command| has_flag(command, "kubeconfig") && !has_flag(command, "context"));
        // The Sail Operator has no such flag, the sandbox writes a kubeconfig, and Helm's flag is
        // --kube-context.
        assert_eq!(found, ["operator run", "sandbox", "template"]);
    }

    #[test]
    fn every_file_flag_accepts_stdin() {
        let lacks_stdin = |arg: &clap::Arg| {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            arg.get_short() == Some('f') && !help.contains("`-` for stdin")
        };
        assert_eq!(
            violations(|command| command.get_arguments().any(lacks_stdin)),
            [""; 0]
        );
    }

    fn flag(argv: &[&str]) -> Result<bool, clap::Error> {
        let matches = command().try_get_matches_from(argv)?;
        match Cli::from_arg_matches(&matches)?.command {
            Command::Template(it) => Ok(it.is_include_crds()),
            _ => Ok(false),
        }
    }

    #[test]
    fn booleans_are_parsed_like_go() {
        let line = |flag| ["mainstay", "template", "x", flag];
        assert!(flag(&line("--include-crds")).unwrap());
        assert!(flag(&line("--include-crds=T")).unwrap());
        assert!(!flag(&line("--include-crds=false")).unwrap());
        assert!(!flag(&["mainstay", "template", "--include-crds", "x", "--include-crds=0"]).unwrap());
        assert!(flag(&line("--include-crds=yes")).is_err());
    }
}
