//! Random strings, documents and texts through Go's libraries and ours: every byte and every error text must agree.
//! `MAINSTAY_CASES` sets how many of each.

mod generate;
mod read;
mod write;
