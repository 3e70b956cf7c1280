//! Which Helm to be: the two generations differ in a few rules and in how they word warnings.

/// A generation of Helm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generation {
    /// Helm 3.
    Helm3,
    /// Helm 4.
    #[default]
    Helm4,
}
