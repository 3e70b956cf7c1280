//! Compares functions that use other crates with Go's: times, versions, regular expressions, URLs, hashes,
//! keys.

// These are test helpers, which are not covered by clippy's exemption for test functions.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::match_wildcard_for_single_variants
)]

#[path = "library/crypto.rs"]
mod crypto;
#[path = "library/date.rs"]
mod date;
#[path = "library/engine.rs"]
mod engine;
#[path = "library/random.rs"]
mod random;
#[path = "library/regex.rs"]
mod regex;
#[path = "library/semver.rs"]
mod semver;
#[path = "library/support.rs"]
mod support;
#[path = "library/url.rs"]
mod url;
