//! Keys, certificates, hashes and passwords.

use mainstay_template::Function;

pub(crate) const TABLE: &[Function] = &[];
