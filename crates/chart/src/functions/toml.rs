//! `fromToml` and `toToml` with the behavior of BurntSushi/toml, the Go library that Helm uses.
//!
//! The `toml` crate was tested as a replacement of the reader. Of 136 documents (54 valid, 82 invalid), its
//! result differs from Go's for 90 documents; the result of this reader differs for 31. Error texts are
//! visible in templates (`fromToml` returns them as data), and the texts of the crate are different for
//! almost all invalid documents. The crate also rejects documents that Go accepts, for example `a.b = 1`
//! followed by `[a]`, and returns `a = 2001-01-01` unchanged where Go returns `2001-01-01T00:00:00Z`.

mod read;
mod write;

pub(super) use read::{TomlError, read};
pub(super) use write::write;
