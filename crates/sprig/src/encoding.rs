//! Base64 and base32.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
