//! The function `getHostByName`. It always returns an empty string, as in Helm, since templates have no
//! network access.

use mainstay_template::{Function, Type};

use crate::table::fixed;

pub(crate) const TABLE: &[Function] = &[fixed("getHostByName", &[Type::String], |_| Ok("".into()))];
