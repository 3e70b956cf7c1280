//! Semantic versions and their constraints.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
