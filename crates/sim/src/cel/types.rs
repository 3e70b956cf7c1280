//! Types of expressions: derived from schemas, with rules for assignability.

use std::rc::Rc;

use crate::crd::schema::{Additional, Node};

#[derive(Clone, Debug)]
pub(crate) enum Type<'t> {
    /// Any type. It is checked during the evaluation.
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Time,
    Duration,
    List(Rc<Type<'t>>),
    Map(Rc<Type<'t>>, Rc<Type<'t>>),
    /// An object of a schema. The flag marks root objects, which also have `apiVersion`, `kind` and
    /// `metadata`.
    Object(&'t Node, bool),
    /// Metadata of an object. Expressions may access only its `name` and `generateName`.
    Meta,
    Optional(Rc<Type<'t>>),
    /// A type of a library.
    Library(&'static str),
    /// The type of types: `type(1)` has this type.
    Kind,
}

impl<'t> Type<'t> {
    /// Returns the type of a schema node; `None` if expressions cannot access it.
    pub(crate) fn from_schema(node: &'t Node, is_root: bool) -> Option<Self> {
        let is_root = is_root || node.embedded;
        if node.int_or_string {
            return Some(Self::Dyn);
        }
        Some(match node.kind.as_str() {
            "object" => match &node.additional {
                Some(Additional::Schema(values)) => {
                    Self::Map(Rc::new(Self::Text), Rc::new(Self::from_schema(values, false)?))
                }
                _ => Self::Object(node, is_root),
            },
            "array" => Self::List(Rc::new(Self::from_schema(node.items.as_deref()?, false)?)),
            "string" => match node.checks.format.as_str() {
                "byte" => Self::Bytes,
                "duration" => Self::Duration,
                "date" | "date-time" => Self::Time,
                _ => Self::Text,
            },
            "boolean" => Self::Bool,
            "number" => Self::Double,
            "integer" => Self::Int,
            _ => return None,
        })
    }

    /// Returns the type of the field with this escaped name, or `None` if it does not exist.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        match self {
            Self::Dyn => Some(Self::Dyn),
            Self::Map(_, value) => Some((**value).clone()),
            Self::Meta => matches!(name, "name" | "generateName").then_some(Self::Text),
            Self::Object(node, is_root) => {
                if *is_root {
                    match name {
                        "apiVersion" | "kind" => return Some(Self::Text),
                        "metadata" => return Some(Self::Meta),
                        _ => {}
                    }
                }
                let property = node.properties.get(&unescape(name)?)?;
                Self::from_schema(property, false)
            }
            _ => None,
        }
    }

    /// Returns the name of the type in reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Dyn => "dyn".into(),
            Self::Null => "null".into(),
            Self::Bool => "bool".into(),
            Self::Int => "int".into(),
            Self::Uint => "uint".into(),
            Self::Double => "double".into(),
            Self::Text => "string".into(),
            Self::Bytes => "bytes".into(),
            Self::Time => "timestamp".into(),
            Self::Duration => "duration".into(),
            Self::List(item) => format!("list({})", item.name()),
            Self::Map(key, value) => format!("map({}, {})", key.name(), value.name()),
            Self::Object(..) | Self::Meta => "object".into(),
            Self::Optional(inner) => format!("optional_type({})", inner.name()),
            Self::Library(name) => (*name).into(),
            Self::Kind => "type".into(),
        }
    }

    /// Returns whether values of one of the types can be used as values of the other.
    pub(crate) fn is_assignable(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, _) | (_, Self::Dyn) => true,
            (Self::Null, other) | (other, Self::Null) => matches!(
                other,
                Self::Null
                    | Self::Object(..)
                    | Self::Meta
                    | Self::Time
                    | Self::Duration
                    | Self::Library(_)
                    | Self::Optional(_)
            ),
            (Self::List(a), Self::List(b)) | (Self::Optional(a), Self::Optional(b)) => a.is_assignable(b),
            (Self::Map(a, x), Self::Map(b, y)) => a.is_assignable(b) && x.is_assignable(y),
            (Self::Object(a, _), Self::Object(b, _)) => std::ptr::eq(*a, *b),
            (Self::Library(a), Self::Library(b)) => a == b,
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

/// Reserved words, which must be escaped in property names.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Returns the property name for an escaped name in an expression, or `None` if the name is invalid.
pub(crate) fn unescape(name: &str) -> Option<String> {
    if !name.contains("__") {
        return (!RESERVED.contains(&name)).then(|| name.to_owned());
    }
    if let Some(word) = name.strip_prefix("__").and_then(|rest| rest.strip_suffix("__"))
        && RESERVED.contains(&word)
    {
        return Some(word.to_owned());
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("__") {
        out.push_str(rest.get(..at)?);
        rest = rest.get(at..)?;
        let codes = [
            ("__underscores__", "__"),
            ("__dot__", "."),
            ("__dash__", "-"),
            ("__slash__", "/"),
        ];
        let (code, letter) = codes.iter().find(|(code, _)| rest.starts_with(code))?;
        out.push_str(letter);
        rest = rest.get(code.len()..)?;
    }
    out.push_str(rest);
    Some(out)
}
