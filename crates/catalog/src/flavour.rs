//! The two flavours of charts: installer and operator.

use std::fmt;

/// A derivation of upstream's charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flavour {
    /// Release charts, as used by `helm` and the installer.
    Installer,
    /// Charts of the Sail Operator: no CRDs, no owner label, an additional SCC rule, and the `revisiontags`
    /// chart.
    Operator,
}

impl Flavour {
    /// All flavours in display order.
    pub const ALL: [Self; 2] = [Self::Installer, Self::Operator];

    /// Returns the name of the flavour's directory.
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
