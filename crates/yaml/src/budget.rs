//! Limits that every parser of this crate enforces.

/// Limits of one parse. Exceeding one is an error, reported before the memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Maximum length of the text in bytes.
    pub bytes: usize,
    /// Maximum nesting of lists, maps and aliases. The default fits a thread with a stack of 2 MiB; a
    /// higher limit needs a larger stack, since trees are traversed by recursion.
    pub depth: usize,
    /// Maximum number of nodes of one document, including those that aliases repeat.
    pub nodes: usize,
    /// Maximum number of nodes that come from aliases. go-yaml's own limit applies as well: a share of all
    /// nodes that shrinks with their number.
    pub alias_expansion: usize,
    /// Maximum number of bytes of scalars that come from aliases.
    pub expanded_bytes: usize,
    /// Maximum number of documents in a stream.
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

/// Types of parsed numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbers {
    /// Every number is a float, as in the result of `json.Unmarshal` into an `interface{}`. Helm's values
    /// and `fromYaml` have such numbers.
    #[default]
    Float,
    /// Integers are parsed as [`Value::Int`](crate::Value) or [`Value::Uint`](crate::Value).
    Exact,
}
