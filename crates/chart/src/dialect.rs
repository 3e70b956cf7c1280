//! Which Helm to be: the two dialects differ in a few rules and in how they word warnings.

/// A dialect of Helm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Helm 3.
    Helm3,
    /// Helm 4.
    #[default]
    Helm4,
}
