//! Strings: cut, padded, split, joined, quoted.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
