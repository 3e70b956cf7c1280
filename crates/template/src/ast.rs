//! Parsed template text. Nodes are stored in one flat table, which can be shared between threads. Neither
//! nesting nor drop needs stack space.

mod show;

use std::sync::Arc;

use crate::parse::Number;
use crate::string::Str;

/// Index of a node in its [`Source`].
pub(crate) type NodeId = u32;

/// A range of entries in one of the side tables of a [`Source`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self {
            start: start as u32,
            end: end as u32,
        }
    }

    pub(crate) fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }

    fn slice<T>(self, table: &[T]) -> &[T] {
        table
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// One parsed text with all templates that it defines.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(crate) text: Arc<[u8]>,
    pub(crate) nodes: Vec<Node>,
    /// Start offset of each node in the text, indexed by [`NodeId`].
    pub(crate) positions: Vec<u32>,
    pub(crate) children: Vec<NodeId>,
    pub(crate) names: Vec<Str>,
    pub(crate) strings: Vec<Str>,
    pub(crate) numbers: Vec<Number>,
}

/// A template: a root node in a source.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) name: Arc<str>,
    /// Name under which the text of the source was parsed. Error messages contain it.
    pub(crate) text_name: Arc<str>,
    pub(crate) source: Arc<Source>,
    pub(crate) root: NodeId,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    /// Text, stored as a range of the source.
    Text {
        start: u32,
        end: u32,
    },
    /// A sequence of nodes.
    List(Span),
    /// A pipeline. Its value is printed.
    Action {
        pipe: NodeId,
    },
    /// `if`, `with` or `range`.
    Branch {
        kind: Branch,
        pipe: NodeId,
        list: NodeId,
        otherwise: Option<NodeId>,
    },
    /// `template`. The name is an index of a string.
    Template {
        name: u32,
        pipe: Option<NodeId>,
    },
    Break,
    Continue,
    /// Commands, and the variables that receive the result. `decl` and `cmds` are ranges of children.
    Pipe {
        assign: bool,
        decl: Span,
        cmds: Span,
    },
    /// A call or an operand. The first child is the function or operand, the others are arguments.
    Command(Span),
    /// A function, stored as its index in the registry.
    Identifier {
        name: u32,
        function: u32,
    },
    /// A variable, stored as the index of its name within the source, and the names of the fields accessed
    /// on it.
    Variable {
        name: u32,
        fields: Span,
    },
    /// `.`
    Dot,
    /// `nil`
    Nil,
    /// Fields of dot, by name.
    Field(Span),
    /// Fields of an expression, by name.
    Chain {
        base: NodeId,
        fields: Span,
    },
    /// `true` or `false`.
    Bool(bool),
    /// A number and the range of its text.
    Number {
        number: u32,
        start: u32,
        end: u32,
    },
    /// A string and the range of its literal in the source.
    String {
        value: u32,
        start: u32,
        end: u32,
    },
}

/// The kind of a [`Node::Branch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Branch {
    If,
    With,
    Range,
}

/// Maximum length of text for which memory is reserved. Longer texts have few actions in proportion.
const MAX_RESERVED_LEN: usize = 32 << 10;

impl Source {
    /// Creates an empty source. Reserves the capacity that a text of `length` bytes typically needs.
    pub(crate) fn with_capacity(length: usize) -> Self {
        let capacity = 4 + length.min(MAX_RESERVED_LEN) / 16;
        Self {
            nodes: Vec::with_capacity(capacity),
            positions: Vec::with_capacity(capacity),
            children: Vec::with_capacity(capacity),
            names: Vec::with_capacity(capacity / 2),
            ..Self::default()
        }
    }

    /// Returns the node `id`, or an empty list if the index is invalid.
    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> Node {
        self.nodes
            .get(id as usize)
            .copied()
            .unwrap_or(Node::List(Span { start: 0, end: 0 }))
    }

    #[inline]
    pub(crate) fn children(&self, span: Span) -> &[NodeId] {
        span.slice(&self.children)
    }

    #[inline]
    pub(crate) fn names(&self, span: Span) -> &[Str] {
        span.slice(&self.names)
    }

    /// Returns the name with this index, for example of a function or variable.
    pub(crate) fn name(&self, index: u32) -> &[u8] {
        self.names
            .get(index as usize)
            .map(Str::as_bytes)
            .unwrap_or_default()
    }

    pub(crate) fn string(&self, index: u32) -> Str {
        self.strings.get(index as usize).cloned().unwrap_or_default()
    }

    pub(crate) fn number(&self, index: u32) -> Option<&Number> {
        self.numbers.get(index as usize)
    }

    pub(crate) fn slice(&self, start: u32, end: u32) -> &[u8] {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Returns line and column of a node as Go counts them: lines from 1, columns in bytes from 0.
    pub(crate) fn line_and_column(&self, id: NodeId) -> (u32, u32) {
        let pos = self.positions.get(id as usize).copied().unwrap_or(0);
        let before = self.slice(0, pos);
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count();
        (line as u32, column as u32)
    }

    /// Whether a tree contains only white space. Such a template does not replace another one.
    pub(crate) fn is_empty(&self, root: NodeId) -> bool {
        let Node::List(items) = self.node(root) else {
            return false;
        };
        self.children(items).iter().all(|&child| match self.node(child) {
            Node::Text { start, end } => is_blank(self.slice(start, end)),
            _ => false,
        })
    }
}

/// Whether `text` contains only white space, as in Go's `bytes.TrimSpace`.
pub(crate) fn is_blank(text: &[u8]) -> bool {
    String::from_utf8_lossy(text)
        .chars()
        .all(|c| c.is_whitespace() && c != '\u{feff}')
}
