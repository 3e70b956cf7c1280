//! Slash-separated paths.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
