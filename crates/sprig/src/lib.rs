//! The Sprig function library for mainstay-template: takes nothing, gives a table of functions that behave as Sprig 3.3.0
//! does, byte for byte and in their error texts. Reads no clock, file, network or environment: what a function needs from
//! outside it asks the render's host for.

// Every function has the signature of a row, also those that cannot fail.
#![allow(clippy::unnecessary_wraps)]
// Go compares floats exactly, and so must we.
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
mod number;
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

/// Every function of Sprig but those of [`environment`], in no particular order.
#[must_use]
pub fn functions() -> &'static [Function] {
    static ALL: LazyLock<Vec<Function>> =
        LazyLock::new(|| [TABLES.concat(), GROUPS.concat().concat()].concat());
    &ALL
}

/// `env` and `expandenv`, which Helm takes away from charts.
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

/// The tables of subjects that fill more than one.
const GROUPS: &[&[&[Function]]] = &[
    crypto::TABLES,
    dict::TABLES,
    list::TABLES,
    numeric::TABLES,
    strings::TABLES,
];
