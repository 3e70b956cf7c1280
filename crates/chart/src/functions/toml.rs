//! `fromToml` and `toToml` with the behaviour of BurntSushi/toml, the Go library that Helm uses.
//!
//! The `toml` crate was tested as a replacement of the reader. For 136 documents (54 valid, 82 invalid),
//! its result differs from Go's in 90 cases, that of this reader in 31. Error texts are visible in
//! templates (`fromToml` returns them as data), and those of the crate are different for almost all invalid
//! documents. The crate also rejects documents that Go accepts, for example `a.b = 1` followed by `[a]`,
//! and returns `a = 2001-01-01` unchanged where Go returns `2001-01-01T00:00:00Z`.

mod read;
mod write;

pub(super) use read::{TomlError, read};
pub(super) use write::write;
