//! Requests confirmation on stderr.

use std::io::{BufRead as _, Write as _};

use crate::error::CliError;

/// Shows a prompt; only `y` and `yes` confirm it.
pub(crate) fn confirm(prompt: &str) -> Result<bool, CliError> {
    write!(anstream::stderr(), "{prompt} (y/N) ")?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
