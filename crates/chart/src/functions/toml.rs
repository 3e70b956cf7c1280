//! `fromToml` and `toToml` with the behaviour of BurntSushi/toml, the Go library of Helm.
//!
//! The crate `toml` was tried in place of the reader. Of 136 documents (54 valid, 82 invalid) its result
//! differs from Go's in 90, the reader's in 31. Error texts reach templates (`fromToml` returns them as
//! data), and the crate's are different in almost all invalid documents. It also rejects documents that Go
//! accepts, for example `a.b = 1` followed by `[a]`, and keeps `a = 2001-01-01` where Go returns
//! `2001-01-01T00:00:00Z`.

mod read;
mod write;

pub(super) use read::{TomlError, read};
pub(super) use write::write;
