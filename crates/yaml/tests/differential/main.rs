//! Compares this crate with Go's libraries on random strings, documents and texts: every byte and every error
//! text. `MAINSTAY_CASES` sets the number of cases.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // A test fails by panicking.

mod generate;
mod read;
mod write;
