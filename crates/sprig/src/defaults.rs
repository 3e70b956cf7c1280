//! Emptiness, defaults and choices.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
