//! JSON, both ways.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
