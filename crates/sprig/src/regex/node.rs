//! Nodes of an expression with their size, depth and repetition count, for which limits are checked.

use regex_syntax::hir::Hir;

use super::error::{Reason, RegexError};

/// Maximum size in instructions, as in Go.
const MAX_SIZE: u64 = (128 << 20) / 40;
/// Maximum depth. Go's limit is 1000. The engines recurse over the tree; this depth fits a small stack.
const MAX_HEIGHT: u32 = 250;

/// A node of an expression.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) hir: Hir,
    /// Go's estimate of the compiled size in instructions.
    size: u64,
    height: u32,
    kind: Kind,
    /// Product of nested repetition counts.
    pub(super) repeats: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Concat,
    Alternation,
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Repeat {
    pub(super) min: u32,
    pub(super) max: Option<u32>,
    /// Whether the repetition is written in braces.
    pub(super) counted: bool,
}

impl Repeat {
    /// Whether Go checks the repetition count.
    pub(super) fn has_checked_count(self) -> bool {
        self.counted && (self.min >= 2 || self.max.is_some_and(|max| max >= 2))
    }

    fn size(self, sub: u64) -> u64 {
        let min = u64::from(self.min);
        match (self.counted, self.max) {
            (_, None) if self.min == 0 => sub + 2,
            (false, _) => sub + 1,
            (true, None) => min.saturating_mul(sub) + 1,
            (true, Some(max)) => u64::from(max).saturating_mul(sub) + u64::from(max).saturating_sub(min),
        }
        .max(1)
    }

    fn repeats(self, sub: u64) -> u64 {
        match self {
            Self { counted: false, .. } => sub,
            Self { max: Some(0), .. } => 0,
            Self { min, max, .. } => u64::from(max.unwrap_or(min).max(1)).saturating_mul(sub),
        }
    }
}

impl Node {
    /// Creates a leaf.
    pub(super) fn leaf(hir: Hir) -> Self {
        Self {
            hir,
            size: 1,
            height: 1,
            kind: Kind::Other,
            repeats: 1,
        }
    }

    /// Creates a concatenation.
    pub(super) fn concat(parts: Vec<Self>) -> Self {
        Self::join(parts, Kind::Concat)
    }

    /// Creates an alternation.
    pub(super) fn alternation(parts: Vec<Self>) -> Self {
        Self::join(parts, Kind::Alternation)
    }

    fn join(mut parts: Vec<Self>, kind: Kind) -> Self {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        let bars = if kind == Kind::Alternation {
            parts.len().saturating_sub(1) as u64
        } else {
            0
        };
        let size = parts
            .iter()
            .map(|part| part.size)
            .fold(bars, u64::saturating_add)
            .max(1);
        // Nested concatenations are flattened, as are nested alternations.
        let height = parts
            .iter()
            .map(|part| part.height + u32::from(part.kind != kind))
            .max();
        let repeats = parts.iter().map(|part| part.repeats).max().unwrap_or(1);
        let hirs = parts.into_iter().map(|part| part.hir).collect();
        let hir = if kind == Kind::Concat {
            Hir::concat(hirs)
        } else {
            Hir::alternation(hirs)
        };
        Self {
            hir,
            size,
            height: height.unwrap_or(1),
            kind,
            repeats,
        }
    }

    /// Wraps the node in an enclosing node that costs `more` instructions.
    pub(super) fn wrap(self, more: u64, make: impl FnOnce(Hir) -> Hir) -> Self {
        Self {
            hir: make(self.hir),
            size: self.size.saturating_add(more),
            height: self.height + 1,
            kind: Kind::Other,
            repeats: self.repeats,
        }
    }

    /// Creates a repetition.
    pub(super) fn repeat(self, repeat: Repeat, make: impl FnOnce(Hir) -> Hir) -> Self {
        let (size, repeats) = (repeat.size(self.size), repeat.repeats(self.repeats));
        Self {
            size,
            repeats,
            ..self.wrap(0, make)
        }
    }

    /// Fails if the node exceeds the size or depth limit of the expression `whole`.
    pub(super) fn check(&self, whole: &[u8]) -> Result<(), RegexError> {
        if self.size > MAX_SIZE {
            return Err(Reason::Large.at(whole));
        }
        if self.height > MAX_HEIGHT {
            return Err(Reason::NestingDepth.at(whole));
        }
        Ok(())
    }
}
