//! Random strings and numbers, from the host's entropy.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
