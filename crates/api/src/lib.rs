//! The kinds of `sailoperator.io`.

pub mod crd;
