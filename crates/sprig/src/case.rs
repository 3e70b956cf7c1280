//! Letter case as the xstrings and goutils packages of Go change it.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
