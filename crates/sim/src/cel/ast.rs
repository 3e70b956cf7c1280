//! The syntax tree. Macros are separate nodes; operators are calls.

/// A node of the syntax tree.
#[derive(Debug)]
pub(super) struct Expr {
    /// Position in the source, in characters.
    pub at: usize,
    pub kind: Kind,
    /// Height of the tree with this node as its root.
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
    /// Name of a function, its target if it has one, and its arguments.
    Call(String, Option<Box<Expr>>, Vec<Expr>),
    /// The items of a list. The flag marks optional items.
    List(Vec<(bool, Expr)>),
    Map(Vec<(bool, Expr, Expr)>),
    Fold(Box<Fold>),
    /// A macro over an optional value (`optMap`, `optFlatMap`).
    Optional(Box<Fold>),
}

/// A macro that is evaluated for each element of a range.
#[derive(Debug)]
pub(super) struct Fold {
    pub kind: Macro,
    pub range: Expr,
    /// Name of the first variable.
    pub name: String,
    /// Name of the second variable, if the macro has two.
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
    SortBy,
}

impl Expr {
    pub(super) fn new(at: usize, kind: Kind) -> Self {
        let mut expr = Self { at, kind, height: 0 };
        let height = expr.children().iter().map(|one| one.height).max();
        expr.height = height.unwrap_or(0) + 1;
        expr
    }

    /// Returns the direct children.
    pub(super) fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Select(operand, _) | Kind::OptionalSelect(operand, _) | Kind::Has(operand, _) => {
                vec![operand]
            }
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
    pub(super) fn refers_to(&self, name: &str) -> bool {
        matches!(&self.kind, Kind::Ident(ident) if ident == name)
            || self.children().iter().any(|child| child.refers_to(name))
    }
}
