//! Times and durations.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
