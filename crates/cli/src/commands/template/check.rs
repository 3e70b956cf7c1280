//! Checks unsupported flags, and flags without effect whose values Helm validates.

use std::io::Write;

use mainstay_chart::{Dialect, Warning};
use mainstay_gostd::time::parse_duration;

use super::Args;
use super::values::comma_list;
use crate::error::{CliError, Kind};

/// Rejects the first unsupported flag; prints Helm's warnings about the others.
pub(super) fn check(args: &Args, dialect: Dialect) -> Result<(), CliError> {
    check_values(args)?;
    check_wait(args, dialect)?;
    if dialect == Dialect::Helm4 {
        deprecated(args).for_each(|line| note(&line));
        if let Some(text) = dry_run_advice(args) {
            note(&Warning::Advice(text).line(dialect));
        }
    }
    check_groups(args, dialect)?;
    check_dry_run(args, dialect)?;
    check_network(args)
}

/// Prints one line to stderr.
fn note(line: &str) {
    // A closed stderr is ignored.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns Helm 4's warnings about deprecated flags.
fn deprecated(args: &Args) -> impl Iterator<Item = String> {
    const NO_EFFECT: &str = "this flag has no effect for 'helm template' and will be removed in Helm 5";
    let flags = [
        (args.ignored.atomic, "atomic", "use --rollback-on-failure instead"),
        (args.ignored.force, "force", "use --force-replace instead"),
        (args.ignored.hide_notes, "hide-notes", NO_EFFECT),
        (
            args.ignored.render_subchart_notes,
            "render-subchart-notes",
            NO_EFFECT,
        ),
        (
            args.cluster.validate,
            "validate",
            "use '--dry-run=server' instead",
        ),
    ];
    flags
        .into_iter()
        .filter(|(set, ..)| *set)
        .map(|(_, flag, advice)| format!("Flag --{flag} has been deprecated, {advice}"))
}

fn dry_run_advice(args: &Args) -> Option<String> {
    match args.cluster.dry_run.as_deref()? {
        "unset" => Some("--dry-run is deprecated and should be replaced with '--dry-run=client'".into()),
        value @ ("true" | "1" | "t" | "T" | "TRUE" | "True") => Some(format!(
            "boolean '--dry-run={value}' flag is deprecated and must be replaced with '--dry-run=client'"
        )),
        _ => None,
    }
}

/// Validates `--wait` and `--timeout`, which have no effect.
fn check_wait(args: &Args, dialect: Dialect) -> Result<(), CliError> {
    let invalid = |flag: &str, value: &str, why: String| {
        Err(CliError::new(
            Kind::Usage,
            format!("invalid argument {value:?} for \"--{flag}\" flag: {why}"),
        ))
    };
    if let Some(value) = args
        .ignored
        .timeout
        .as_deref()
        .filter(|value| parse_duration(value).is_err())
    {
        return invalid("timeout", value, format!("time: invalid duration {value:?}"));
    }
    match args.ignored.wait.as_deref() {
        None | Some("watcher" | "true" | "false") => Ok(()),
        Some("hookOnly" | "legacy") if dialect == Dialect::Helm4 => Ok(()),
        Some("1" | "t" | "T" | "TRUE" | "True" | "0" | "f" | "F" | "FALSE" | "False")
            if dialect == Dialect::Helm3 =>
        {
            Ok(())
        }
        Some(value) if dialect == Dialect::Helm3 => invalid(
            "wait",
            value,
            format!("strconv.ParseBool: parsing {value:?}: invalid syntax"),
        ),
        Some(value) => {
            let valid = "Valid inputs are watcher, hookOnly, and legacy";
            invalid("wait", value, format!("invalid wait input {value:?}. {valid}"))
        }
    }
}

fn unsupported(flag: &str, why: &str) -> CliError {
    CliError::new(Kind::Offline, format!("{flag} needs {why}, but rendering works offline")).hint(match why {
        "a cluster" => "omit the flag; the API server validates manifests when they are applied",
        _ => "fetch the chart and its dependencies first, for example with `helm pull` and `helm dependency build`",
    })
}

fn check_dry_run(args: &Args, dialect: Dialect) -> Result<(), CliError> {
    if args.cluster.validate {
        return Err(unsupported("--validate", "a cluster"));
    }
    let value = args.cluster.dry_run.as_deref().unwrap_or("client");
    match (dialect, value) {
        (_, "client" | "true" | "1" | "t" | "T" | "TRUE" | "True" | "unset")
        | (Dialect::Helm3, "" | "none" | "false") => Ok(()),
        (_, "server") => Err(unsupported("--dry-run=server", "a cluster")),
        (Dialect::Helm3, _) => Err(CliError::new(
            Kind::Usage,
            "Invalid dry-run flag. Flag must one of the following: false, true, none, client, server",
        )),
        (Dialect::Helm4, "none" | "0" | "f" | "F" | "FALSE" | "false" | "False") => Err(CliError::new(
            Kind::Usage,
            format!("invalid dry-run value ({value:?}). Must be \"server\" or \"client\""),
        )),
        (Dialect::Helm4, _) => Err(CliError::new(
            Kind::Usage,
            format!("invalid dry-run value ({value:?}). Must be \"none\", \"server\", or \"client\""),
        )),
    }
}

fn check_network(args: &Args) -> Result<(), CliError> {
    if args.network.verify {
        return Err(unsupported("--verify", "a keyring"));
    }
    if args.network.dependency_update {
        return Err(unsupported("--dependency-update", "a chart repository"));
    }
    Ok(())
}

fn check_groups(args: &Args, dialect: Dialect) -> Result<(), CliError> {
    if dialect == Dialect::Helm4 && args.ignored.force_conflicts && args.ignored.force_replace {
        return Err(CliError::new(
            Kind::Usage,
            "if any flags in the group [force-replace force-conflicts] are set none of the others can be; [force-conflicts force-replace] were all set",
        ));
    }
    Ok(())
}

const SYSTEM_LABELS: &[&str] = &["name", "owner", "status", "version", "createdAt", "modifiedAt"];

fn check_values(args: &Args) -> Result<(), CliError> {
    for list in &args.ignored.labels {
        for pair in comma_list(list) {
            let Some((key, _)) = pair.split_once('=') else {
                return Err(CliError::new(
                    Kind::Usage,
                    format!(
                        "invalid argument {list:?} for \"-l, --labels\" flag: {pair} must be formatted as key=value"
                    ),
                ));
            };
            if SYSTEM_LABELS.contains(&key) {
                return Err(CliError::new(
                    Kind::Usage,
                    format!(
                        "user supplied labels contains system reserved label name. System labels: [{}]",
                        SYSTEM_LABELS.join(" ")
                    ),
                ));
            }
        }
    }
    Ok(())
}
