//! One file per command: each takes its arguments, calls the library, prints.

pub(crate) mod charts;
pub(crate) mod completion;
pub(crate) mod crds;
pub(crate) mod generate;
pub(crate) mod sandbox;
pub(crate) mod template;
pub(crate) mod version;

use std::io::{self, Write};

use crate::error::CliError;

/// Writes `bytes` to stdout as they are: manifests may hold anything, so nothing here may look at them.
pub(crate) fn print(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(())
}
