//! Function library of Sprig 3.3.0 for mainstay-template, with identical output and error texts. Functions
//! do not access the clock, files, network or environment; they use the host of the render.

// All functions have the same signature, including those that cannot fail.
#![allow(clippy::unnecessary_wraps)]
// Floats are compared exactly, as in Go.
#![allow(clippy::float_cmp)]

mod bytes;
mod case;
mod cast;
mod crypto;
mod date;
mod defaults;
mod dict;
mod encoding;
mod equal;
mod flow;
mod json;
mod list;
mod network;
mod numeric;
mod os;
mod path;
mod random;
mod reflect;
mod regex;
pub mod semver;
mod strings;
mod table;
mod text;
mod url;

pub use regex::{Regex, RegexError};
use std::sync::LazyLock;

use mainstay_template::Function;

/// Returns all functions except those of [`environment`], in no particular order.
#[must_use]
pub fn functions() -> &'static [Function] {
    static ALL: LazyLock<Vec<Function>> =
        LazyLock::new(|| [TABLES.concat(), GROUPS.concat().concat()].concat());
    &ALL
}

/// Returns `env` and `expandenv`, which Helm removes from charts.
#[must_use]
pub fn environment() -> &'static [Function] {
    os::TABLE
}

const TABLES: &[&[Function]] = &[
    case::TABLE,
    date::TABLE,
    defaults::TABLE,
    encoding::TABLE,
    flow::TABLE,
    json::TABLE,
    network::TABLE,
    path::TABLE,
    random::TABLE,
    reflect::TABLE,
    regex::TABLE,
    semver::TABLE,
    url::TABLE,
];

/// Modules with several tables.
const GROUPS: &[&[&[Function]]] = &[
    crypto::TABLES,
    dict::TABLES,
    list::TABLES,
    numeric::TABLES,
    strings::TABLES,
];
