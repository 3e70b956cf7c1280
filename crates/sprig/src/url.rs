//! URLs, taken apart and put together.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
