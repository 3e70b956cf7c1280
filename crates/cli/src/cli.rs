//! The command tree: takes argv, finds the command, runs it. Knows no command's insides.

use std::ffi::OsString;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    charts, completion, crds, demo, generate, migration, operator, rehearse, revision, sandbox, status,
    template, version,
};
use crate::error::CliError;
use crate::style::Color;

/// Renders and operates an Istio service mesh.
#[derive(Parser)]
#[command(
    name = "mainstay",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
#[command(after_help = "Examples:
  mainstay demo
  mainstay template istiod ./charts/istiod -n istio-system
  mainstay generate --check --diff k8s/
  mainstay charts list
  mainstay status --context prod
  mainstay migration plan --to v1.29.1
  mainstay rehearse --to v1.29.1 --report upgrade.html
  mainstay operator run --help
  mainstay sandbox
  mainstay completion bash > /etc/bash_completion.d/mainstay")]
struct Cli {
    /// When to colour messages
    #[arg(long, visible_alias = "colour", global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Watch an upgrade of Istio with twelve workloads: on an embedded cluster, in seconds, without anything
    Demo(demo::Args),
    /// Render a chart as `helm template` does, byte for byte
    Template(Box<template::Args>),
    /// Inject initializer and service mesh into manifests, keeping every other byte
    Generate(Box<generate::Args>),
    /// Look at the Istio versions that can be rendered, and add more
    Charts(charts::Args),
    /// Say how a cluster's meshes are: revisions, tags, who uses them, what goes when, what is wrong
    Status(Box<status::Args>),
    /// Look at revisions: who keeps them in use and why, and what becomes of them
    Revision(Box<revision::Args>),
    /// Move workloads to a new revision: what will happen, what does, and what did
    Migration(Box<migration::Args>),
    /// Play an upgrade on a copy of the cluster, in virtual time, and say what it will do
    Rehearse(Box<rehearse::Args>),
    /// Print or install the custom resource definitions: ours and Istio's
    Crds(crds::Args),
    /// Run the operator: a drop-in for the Sail Operator
    Operator(operator::Args),
    /// Run a Kubernetes API on loopback, with nodes and working controllers, until Ctrl-C
    Sandbox(sandbox::Args),
    /// Print a completion script for a shell
    Completion(completion::Args),
    /// Print what this binary is
    Version(version::Args),
}

/// Runs the command that `argv` names.
pub(crate) fn run(argv: impl IntoIterator<Item = OsString>) -> Result<(), CliError> {
    let argv = operator::with_two_dashes(argv.into_iter().collect());
    let matches = command()
        .try_get_matches_from(&argv)
        .map_err(|error| usage_error(error, &argv))?;
    let cli = Cli::from_arg_matches(&matches)?;
    cli.color.choose();
    match cli.command {
        Command::Demo(it) => demo::run(&it),
        Command::Template(it) => template::run(&it),
        Command::Generate(it) => generate::run(&it),
        Command::Charts(it) => charts::run(&it),
        Command::Status(it) => status::run(&it),
        Command::Revision(it) => revision::run(&it),
        Command::Migration(it) => migration::run(&it),
        Command::Rehearse(it) => rehearse::run(&it),
        Command::Crds(it) => crds::run(&it),
        Command::Operator(it) => operator::run(&it),
        Command::Sandbox(it) => sandbox::run(&it),
        Command::Completion(it) => completion::run(&it, command()),
        Command::Version(it) => version::run(&it),
    }
}

/// `generate` keeps 1 for "would change", so its usage errors end with 2.
fn usage_error(error: clap::Error, argv: &[OsString]) -> CliError {
    let error = CliError::from(error);
    let generating = argv.iter().skip(1).any(|word| word == "generate");
    if generating {
        error.unless_quiet_exit(2)
    } else {
        error
    }
}

/// The whole tree. The arguments of `template` behave as Helm's do (`--flag=false`, the last of two wins, a value may
/// begin with a dash), which the derive cannot say once for all of them.
fn command() -> clap::Command {
    let tree = Cli::command().mut_subcommand("operator", |it| operator::as_go_flags(it, as_go_flag));
    tree.mut_subcommand("template", |template| {
        template
            .args_override_self(true)
            .mut_args(|arg| match arg.get_action() {
                ArgAction::SetTrue => as_go_flag(arg),
                ArgAction::Set | ArgAction::Append if !arg.is_positional() => arg.allow_hyphen_values(true),
                _ => arg,
            })
    })
}

fn as_go_flag(arg: clap::Arg) -> clap::Arg {
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .value_parser(go_bool)
        .hide_default_value(true)
        .hide_possible_values(true)
        .value_name("BOOL")
}

/// What Go's `strconv.ParseBool` takes.
pub(crate) fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(format!("strconv.ParseBool: parsing {text:?}: invalid syntax")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_sound() {
        command().debug_assert();
    }

    fn flag(argv: &[&str]) -> Result<bool, clap::Error> {
        let matches = command().try_get_matches_from(argv)?;
        match Cli::from_arg_matches(&matches)?.command {
            Command::Template(it) => Ok(it.is_include_crds()),
            _ => Ok(false),
        }
    }

    #[test]
    fn booleans_are_those_of_go() {
        let line = |flag| ["mainstay", "template", "x", flag];
        assert!(flag(&line("--include-crds")).unwrap());
        assert!(flag(&line("--include-crds=T")).unwrap());
        assert!(!flag(&line("--include-crds=false")).unwrap());
        assert!(!flag(&["mainstay", "template", "--include-crds", "x", "--include-crds=0"]).unwrap());
        assert!(flag(&line("--include-crds=yes")).is_err());
    }
}
