//! Integer and decimal arithmetic, ranges and conversions.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
