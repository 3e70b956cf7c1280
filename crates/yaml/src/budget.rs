//! Limits that every parser of this crate enforces.

/// Limits of one parse. Exceeding one is an error, reported before the memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of text.
    pub bytes: usize,
    /// Nesting of lists, maps and aliases. The default fits a thread with a stack of 2 MiB; a higher limit
    /// needs a larger stack, since trees are traversed by recursion.
    pub depth: usize,
    /// Nodes of one document, including those that aliases repeat.
    pub nodes: usize,
    /// Nodes that come from aliases. Go's own rule (a share of all nodes that shrinks with their number)
    /// applies as well.
    pub alias_expansion: usize,
    /// Bytes of scalars that come from aliases.
    pub expanded_bytes: usize,
    /// Documents in a stream.
    pub documents: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            depth: 400,
            nodes: 8_000_000,
            alias_expansion: 400_000,
            expanded_bytes: 16 << 20,
            documents: 100_000,
        }
    }
}

/// The types of parsed numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// Every number is a float, as `json.Unmarshal` into an `interface{}` produces it: the numbers of Helm's
    /// values and `fromYaml`.
    #[default]
    Float,
    /// Integers stay [`Value::Int`](crate::Value) or [`Value::Uint`](crate::Value).
    Exact,
}
