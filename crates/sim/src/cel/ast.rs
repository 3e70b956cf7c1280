//! The syntax tree. Macros are separate nodes; operators are calls.

/// A node; `at` is its position in the source, in characters.
#[derive(Debug)]
pub(super) struct Expr {
    pub at: usize,
    pub kind: Kind,
    /// Height of the tree below this node.
    pub height: usize,
}

#[derive(Debug)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Ident(String),
    Select(Box<Expr>, String),
    /// `a.?b`
    OptionalSelect(Box<Expr>, String),
    /// `has(a.b)`
    Has(Box<Expr>, String),
    /// A function, its target if it has one, and its arguments.
    Call(String, Option<Box<Expr>>, Vec<Expr>),
    /// List items; the flag marks optional ones.
    List(Vec<(bool, Expr)>),
    Map(Vec<(bool, Expr, Expr)>),
    Fold(Box<Fold>),
    /// A macro over an optional value (`optMap`, `optFlatMap`).
    Optional(Box<Fold>),
}

/// A macro over a range.
#[derive(Debug)]
pub(super) struct Fold {
    pub kind: Macro,
    pub range: Expr,
    pub name: String,
    pub second: Option<String>,
    pub filter: Option<Expr>,
    pub body: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformMap,
    TransformMapEntry,
    OptMap,
    OptFlatMap,
    By,
}

impl Expr {
    pub(super) fn new(at: usize, kind: Kind) -> Self {
        let mut expr = Self { at, kind, height: 0 };
        let below = expr.children().iter().map(|one| one.height).max();
        expr.height = below.unwrap_or(0) + 1;
        expr
    }

    /// Returns the direct children.
    pub(super) fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Select(below, _) | Kind::OptionalSelect(below, _) | Kind::Has(below, _) => vec![below],
            Kind::Call(_, target, arguments) => target.iter().map(|one| &**one).chain(arguments).collect(),
            Kind::List(items) => items.iter().map(|(_, item)| item).collect(),
            Kind::Map(entries) => entries.iter().flat_map(|(_, key, value)| [key, value]).collect(),
            Kind::Fold(fold) | Kind::Optional(fold) => {
                let filter = fold.filter.iter();
                [&fold.range]
                    .into_iter()
                    .chain(filter)
                    .chain([&fold.body])
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether `name` occurs as an identifier.
    pub(super) fn names(&self, name: &str) -> bool {
        matches!(&self.kind, Kind::Ident(own) if own == name)
            || self.children().iter().any(|below| below.names(name))
    }
}
