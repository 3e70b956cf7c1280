//! Regular expressions in Go's RE2 syntax.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
