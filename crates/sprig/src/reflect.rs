//! Go types and kinds of values.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
