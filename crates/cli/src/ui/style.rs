//! Colors of messages.

use anstyle::{AnsiColor, Style};

/// When to color output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

impl Color {
    /// Applies the choice to this process. With `auto`, `NO_COLOR`, `CLICOLOR_FORCE` and the terminal
    /// determine whether output is colored.
    pub(crate) fn choose(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// Style of `Error:`.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Style of `Warning:`.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Style of successful results.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Style of `hint:`.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
/// Style of line numbers, the bar beside a source line, and arrows.
pub(crate) const FRAME: Style = AnsiColor::Blue.on_default().bold();
