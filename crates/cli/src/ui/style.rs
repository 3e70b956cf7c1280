//! Colors of messages.

use anstyle::{AnsiColor, Style};

/// When to colour.
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
    /// Makes it the choice of this process; `auto` leaves `NO_COLOR`, `CLICOLOR_FORCE` and the terminal to
    /// decide.
    pub(crate) fn choose(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// `Error:`.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// `Warning:`.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// What is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// `hint:`.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
/// Line numbers, the bar beside a source line, and arrows.
pub(crate) const FRAME: Style = AnsiColor::Blue.on_default().bold();
