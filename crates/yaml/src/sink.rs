//! How a tree is written: its owner walks it and pushes each node into a [`Sink`], so that no tree is copied first.

/// A writer of one tree: YAML in one of its styles, JSON, or a builder of another tree.
///
/// The caller announces lengths, so that `{}` and `[]` need no look-ahead, and pushes map entries in [`Sink::key_order`]
/// (sort them with [`KeyOrder::sort`]).
/// Strings are bytes, as in Go; a writer that needs UTF-8 replaces what is not, as `encoding/json` does.
pub trait Sink {
    /// The order in which this writer wants the keys of a map.
    fn key_order(&self) -> KeyOrder;
    /// A null.
    fn null(&mut self);
    /// A boolean.
    fn bool(&mut self, value: bool);
    /// A signed integer.
    fn int(&mut self, value: i64);
    /// An unsigned integer.
    fn uint(&mut self, value: u64);
    /// A floating-point number.
    fn float(&mut self, value: f64);
    /// A string.
    fn string(&mut self, value: &[u8]);
    /// Opens a list of `len` items.
    fn begin_list(&mut self, len: usize);
    /// Closes the innermost list.
    fn end_list(&mut self);
    /// Opens a map of `len` entries.
    fn begin_map(&mut self, len: usize);
    /// The key of the entry whose value comes next.
    fn key(&mut self, key: &[u8]);
    /// Closes the innermost map.
    fn end_map(&mut self);
}

/// An order of map keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// By bytes, as Go's JSON encoder sorts them.
    Bytes,
    /// Digits as numbers (`a2` before `a10`), as go-yaml v2 sorts them; see [`natural_cmp`](crate::natural_cmp).
    Natural,
    /// The same with go-yaml v3's one change: after equal digits a letter comes first (`1a` before `10`).
    NaturalDigits,
}
