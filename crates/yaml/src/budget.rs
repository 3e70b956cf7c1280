//! How much one text may cost: takes nothing, gives the limits every parser of this crate obeys.

/// Limits of one parse. Going past any of them is an error, reached before the memory is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of text.
    pub bytes: usize,
    /// Nesting of lists, maps and aliases. The default fits a thread of 2 MiB with room to spare; who raises it needs a
    /// larger stack, since trees are walked by recursion.
    pub depth: usize,
    /// Nodes of one document, those that aliases repeat included.
    pub nodes: usize,
    /// Nodes that come from aliases. Go's own rule (a share of all nodes that shrinks with their number) applies as well.
    pub alias_expansion: usize,
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
            documents: 100_000,
        }
    }
}

/// Which numbers a parser gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// Every number is a float, as `json.Unmarshal` into an `interface{}` gives it: what Helm's values and `fromYaml` hold.
    #[default]
    Float,
    /// Whole numbers stay [`Value::Int`](crate::Value) or [`Value::Uint`](crate::Value).
    Exact,
}
