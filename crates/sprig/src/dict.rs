//! Maps: changed in place, visible through every alias.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
