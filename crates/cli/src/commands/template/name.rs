//! The release's name: given, generated or templated, and checked.

use mainstay_chart::{Dialect, release_name_from};

use super::Args;
use crate::error::{CliError, Kind};
use crate::host::SystemHost;

/// Returns the release name and the chart of the arguments. `--generate-name` has no effect if there is a
/// default name, as in Helm.
pub(super) fn name_and_chart(args: &Args) -> Result<(String, &str), CliError> {
    let usage = |text: &str| Err(CliError::new(Kind::Usage, text));
    let template = args.release.name_template.as_deref().unwrap_or_default();
    match args.positional.as_slice() {
        [] => Err(CliError::new(Kind::Usage, NO_CHART)),
        [_, _] if args.release.generate_name => usage("cannot set --generate-name and also specify a name"),
        [_, _] if !template.is_empty() => usage("cannot set --name-template and also specify a name"),
        [name, chart] => Ok((name.clone(), chart)),
        [chart] if template.is_empty() => Ok(("release-name".into(), chart)),
        [chart] => {
            let name = release_name_from(template, &mut SystemHost);
            Ok((
                name.map_err(|error| CliError::new(Kind::Usage, error.text))?,
                chart,
            ))
        }
        [_, _, rest @ ..] => usage(&format!(
            "expected at most two arguments, unexpected arguments: {}",
            rest.join(", ")
        )),
    }
}

const NO_CHART: &str =
    "\"mainstay template\" requires at least 1 argument\n\nUsage:  mainstay template [NAME] [CHART] [flags]";

/// Checks the name of a release by Helm's rule.
pub(super) fn check_release_name(name: &str, dialect: Dialect) -> Result<(), CliError> {
    let problem = match name {
        "" => "no name provided",
        _ if name.len() > 53 || !is_dns_name(name) => INVALID,
        _ => return Ok(()),
    };
    let prefix = if dialect == Dialect::Helm4 {
        "release name check failed: "
    } else {
        ""
    };
    Err(CliError::new(
        Kind::Usage,
        format!("{prefix}release name {name:?}: {problem}"),
    ))
}

const INVALID: &str = "invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53";

fn is_dns_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.split('.').all(|label| {
        !label.is_empty() && label.chars().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    })
}
