//! Flags that are refused, and flags whose values Helm checks although nothing comes of them.

use mainstay_chart::Generation;

use super::Args;
use super::values::comma_list;
use crate::error::{CliError, Kind};

/// Complains about the first flag that cannot be honoured.
pub(super) fn check(args: &Args, generation: Generation) -> Result<(), CliError> {
    check_values(args)?;
    check_groups(args, generation)?;
    check_dry_run(args, generation)?;
    check_network(args)
}

fn refused(flag: &str, why: &str) -> CliError {
    CliError::new(Kind::Offline, format!("{flag} needs {why}, and rendering never reaches out")).hint(match why {
        "a cluster" => "leave the flag out; the API server checks manifests when they are applied",
        _ => "fetch the chart and its dependencies first, for example with `helm pull` and `helm dependency build`",
    })
}

fn check_dry_run(args: &Args, generation: Generation) -> Result<(), CliError> {
    if args.cluster.validate {
        return Err(refused("--validate", "a cluster"));
    }
    let value = args.cluster.dry_run.as_deref().unwrap_or("client");
    match (generation, value) {
        (_, "client" | "true" | "1" | "t" | "T" | "TRUE" | "True") | (Generation::Helm4, "unset") => Ok(()),
        (Generation::Helm3, "unset" | "" | "none" | "false") => Ok(()),
        (_, "server") => Err(refused("--dry-run=server", "a cluster")),
        (Generation::Helm3, _) => Err(CliError::new(
            Kind::Usage,
            "Invalid dry-run flag. Flag must one of the following: false, true, none, client, server",
        )),
        (Generation::Helm4, "none" | "0" | "f" | "F" | "FALSE" | "false" | "False") => Err(CliError::new(
            Kind::Usage,
            format!("invalid dry-run value ({value:?}). Must be \"server\" or \"client\""),
        )),
        (Generation::Helm4, _) => Err(CliError::new(
            Kind::Usage,
            format!("invalid dry-run value ({value:?}). Must be \"none\", \"server\", or \"client\""),
        )),
    }
}

fn check_network(args: &Args) -> Result<(), CliError> {
    if args.network.verify {
        return Err(refused("--verify", "a keyring"));
    }
    if args.network.dependency_update {
        return Err(refused("--dependency-update", "a chart repository"));
    }
    if args.release.enable_dns {
        return Err(refused("--enable-dns", "the network").hint("templates see an empty address without it"));
    }
    Ok(())
}

fn check_groups(args: &Args, generation: Generation) -> Result<(), CliError> {
    if generation == Generation::Helm4 && args.ignored.force_conflicts && args.ignored.force_replace {
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
