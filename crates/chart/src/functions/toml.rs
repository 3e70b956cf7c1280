//! TOML as BurntSushi's Go library reads and writes it: values to text, text to values.

mod read;
mod write;

pub(super) use read::read;
pub(super) use write::write;
