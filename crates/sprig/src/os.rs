//! The process environment, in a table of its own since Helm takes it away from charts.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
