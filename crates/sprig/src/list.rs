//! Lists: never changed in place, always made anew.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
