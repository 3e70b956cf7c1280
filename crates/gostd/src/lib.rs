//! Formatting and parsing rules of Go's standard library: quoting, numbers, durations, path patterns,
//! URLs and Unicode classes, equal to Go 1.26 (Unicode 15.0.0).
//!
//! Output that must equal Helm's or Kubernetes' depends on these rules. Rust's rules differ in detail:
//! its Unicode tables are newer, and its escapes and float formats are different. Text is bytes here,
//! because Go strings need not be UTF-8.

pub mod error;
pub mod float;
pub mod number;
pub mod path;
pub mod quote;
pub mod time;
pub mod unicode;
pub mod url;
pub mod utf8;
