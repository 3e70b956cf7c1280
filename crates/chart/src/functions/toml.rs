//! TOML as the Go library of Helm reads and writes it: values to text, text to values.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;
