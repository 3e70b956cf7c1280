//! The commands, one module each.

pub(crate) mod adopt;
pub(crate) mod charts;
pub(crate) mod cluster;
pub(crate) mod completion;
pub(crate) mod crds;
#[cfg(feature = "simulator")]
pub(crate) mod demo;
pub(crate) mod generate;
pub(crate) mod install;
pub(crate) mod man;
pub(crate) mod manifest;
pub(crate) mod migration;
pub(crate) mod operator;
pub(crate) mod precheck;
pub(crate) mod profile;
#[cfg(feature = "simulator")]
pub(crate) mod rehearse;
pub(crate) mod revision;
pub(crate) mod rollout;
#[cfg(feature = "simulator")]
pub(crate) mod sandbox;
pub(crate) mod status;
pub(crate) mod tag;
pub(crate) mod template;
pub(crate) mod uninstall;
pub(crate) mod verify;
pub(crate) mod version;

use std::io::{self, Write};

use crate::error::CliError;

/// Writes `bytes` to stdout unchanged: manifests may contain anything.
pub(crate) fn print(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(())
}

/// Writes `text` to stdout, with colors if they are enabled. Text from a cluster may contain control
/// characters, so all of them except line breaks and color sequences are replaced.
pub(crate) fn print_styled(text: &str) -> Result<(), CliError> {
    let mut stdout = anstream::stdout().lock();
    stdout.write_all(escape_control_characters(text).as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Replaces control characters other than line breaks and color sequences.
pub(crate) fn escape_control_characters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kept, length) = match (first, color_sequence(rest)) {
            (_, Some(length)) => (rest.get(..length), length),
            ('\n', None) => (Some("\n"), 1),
            (other, None) if other.is_control() => (Some("\u{fffd}"), other.len_utf8()),
            (other, None) => (rest.get(..other.len_utf8()), other.len_utf8()),
        };
        out.push_str(kept.unwrap_or_default());
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

/// Returns the length of a color sequence at the start of `text`.
fn color_sequence(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let digits = inner.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inner.get(digits..)?.starts_with('m').then_some(digits + 3)
}

#[cfg(test)]
mod tests {
    use super::escape_control_characters;

    #[test]
    fn only_colors_and_newlines_are_kept() {
        assert_eq!(
            escape_control_characters("a\u{1b}[1;31mb\u{1b}[0m\nü"),
            "a\u{1b}[1;31mb\u{1b}[0m\nü"
        );
        assert_eq!(
            escape_control_characters("\u{1b}[2Jx\u{7}\ty\u{9b}z"),
            "\u{fffd}[2Jx\u{fffd}\u{fffd}y\u{fffd}z"
        );
        assert_eq!(escape_control_characters("\u{1b}["), "\u{fffd}[");
    }
}
