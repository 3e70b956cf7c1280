//! What an expression is made of. Macros are nodes of their own; operators are calls.

/// One node; `at` is where it stands in the source, in characters.
#[derive(Debug)]
pub(super) struct Expr {
    pub at: usize,
    pub kind: Kind,
    /// How many nodes stand on top of each other here.
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
    Maybe(Box<Expr>, String),
    /// `has(a.b)`
    Has(Box<Expr>, String),
    /// A function, its target if it has one, and its arguments.
    Call(String, Option<Box<Expr>>, Vec<Expr>),
    /// Items; marked when absent ones are to be left out.
    List(Vec<(bool, Expr)>),
    Map(Vec<(bool, Expr, Expr)>),
    Fold(Box<Fold>),
    /// `cel.bind` is no part of the server's dialect; optional values bind, too.
    Optional(Box<Fold>),
}

/// A macro over a range.
#[derive(Debug)]
pub(super) struct Fold {
    pub sort: Sort,
    pub range: Expr,
    pub name: String,
    pub second: Option<String>,
    pub filter: Option<Expr>,
    pub body: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
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

    /// The nodes right below.
    pub(super) fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Select(below, _) | Kind::Maybe(below, _) | Kind::Has(below, _) => vec![below],
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

    /// Whether `name` occurs as a name of its own.
    pub(super) fn names(&self, name: &str) -> bool {
        matches!(&self.kind, Kind::Ident(own) if own == name)
            || self.children().iter().any(|below| below.names(name))
    }
}
