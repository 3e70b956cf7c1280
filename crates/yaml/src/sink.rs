//! Interface between trees and writers: the owner of a tree traverses it and passes each node to a
//! [`Sink`], so that no tree is copied.

/// A writer of one tree: YAML in one of its styles, JSON, or a builder of another tree.
///
/// The caller passes lengths in advance, so that `{}` and `[]` need no lookahead, and passes map entries in
/// [`Sink::key_order`] (sort them with [`KeyOrder::sort`]). Strings are bytes, as in Go. A writer that
/// requires UTF-8 replaces invalid bytes as `encoding/json` does.
pub trait Sink {
    /// Returns the order of map keys that this writer expects.
    fn key_order(&self) -> KeyOrder;
    /// Writes a null.
    fn null(&mut self);
    /// Writes a boolean.
    fn bool(&mut self, value: bool);
    /// Writes a signed integer.
    fn int(&mut self, value: i64);
    /// Writes an unsigned integer.
    fn uint(&mut self, value: u64);
    /// Writes a floating-point number.
    fn float(&mut self, value: f64);
    /// Writes a string.
    fn string(&mut self, value: &[u8]);
    /// Opens a list of `len` items.
    fn begin_list(&mut self, len: usize);
    /// Closes the innermost list.
    fn end_list(&mut self);
    /// Opens a map of `len` entries.
    fn begin_map(&mut self, len: usize);
    /// Writes the key of the next entry.
    fn key(&mut self, key: &[u8]);
    /// Closes the innermost map.
    fn end_map(&mut self);
}

/// An order of map keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// Order by bytes, as in Go's JSON encoder.
    Bytes,
    /// Digits as numbers (`a2` before `a10`), as in go-yaml v2; see [`natural_cmp`](crate::natural_cmp).
    Natural,
    /// Like `Natural`, with the change of go-yaml v3: after equal digits a letter sorts first (`1a` before
    /// `10`).
    NaturalDigits,
}
