//! The two flavours charts come in.

use std::fmt;

/// Which derivation of upstream's charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// Release charts, as `helm` and the installer use them.
    Installer,
    /// What the Sail Operator installs: no CRDs, no owner label, one more SCC rule, and the `revisiontags` chart.
    Operator,
}

impl Flavour {
    /// Both, in the order they are listed.
    pub const ALL: [Self; 2] = [Self::Installer, Self::Operator];

    /// The name of the flavour's directory.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Installer => "installer",
            Self::Operator => "operator",
        }
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
