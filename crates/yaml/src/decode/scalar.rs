//! Typed values of scalar nodes after resolution of tags.

use super::binary;
use crate::read::TreeNode;
use crate::resolve::{GoYamlVersion, Resolved, resolve};
use crate::{Position, Problem};

/// A scalar after resolution.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'t> {
    Resolved(Resolved),
    Text(&'t str),
    /// Content of a scalar with the tag `!!binary`.
    Bytes(Vec<u8>),
}

const PREFIX: &str = "tag:yaml.org,2002:";

/// Returns the value of `node`, or an error if its text does not match its tag.
pub(super) fn read<'t>(
    node: &'t TreeNode<'_>,
    at: impl Fn() -> Position,
) -> Result<Scalar<'t>, crate::Error> {
    let text: &str = &node.value;
    let Some(tag) = node.tag.as_deref() else {
        if !node.implicit {
            return Ok(Scalar::Text(text));
        }
        return Ok(from_resolved(resolve(text, GoYamlVersion::V2, true), text));
    };
    match tag.strip_prefix(PREFIX) {
        Some("binary") => {
            let bytes = binary::decode(text).ok_or_else(|| Problem::Binary.at(at()))?;
            Ok(Scalar::Bytes(bytes))
        }
        Some(known @ ("bool" | "int" | "float" | "null" | "timestamp")) => {
            let found = resolve(text, GoYamlVersion::V2, known == "timestamp");
            convert_to_tag(found, known, text).ok_or_else(|| mismatch(found, known, text).at(at()))
        }
        _ => Ok(Scalar::Text(text)),
    }
}

fn from_resolved(resolved: Resolved, text: &str) -> Scalar<'_> {
    match resolved {
        Resolved::Text | Resolved::Timestamp => Scalar::Text(text),
        other => Scalar::Resolved(other),
    }
}

/// Returns the value if it has the type of the tag. Integers become floats if the tag requires it.
fn convert_to_tag<'t>(found: Resolved, wanted: &str, text: &'t str) -> Option<Scalar<'t>> {
    match (wanted, found) {
        ("float", Resolved::Int(whole)) => Some(Scalar::Resolved(Resolved::Float(whole as f64))),
        _ if tag_name(found) == wanted => Some(from_resolved(found, text)),
        _ => None,
    }
}

fn tag_name(resolved: Resolved) -> &'static str {
    match resolved {
        Resolved::Null => "null",
        Resolved::Bool(_) => "bool",
        Resolved::Int(_) | Resolved::Uint(_) => "int",
        Resolved::Float(_) => "float",
        Resolved::Timestamp => "timestamp",
        Resolved::Text => "str",
    }
}

fn mismatch(found: Resolved, wanted: &str, text: &str) -> Problem {
    let short = |tag: &str| match tag {
        "null" => "!!null",
        "bool" => "!!bool",
        "int" => "!!int",
        "float" => "!!float",
        "timestamp" => "!!timestamp",
        _ => "!!str",
    };
    Problem::Tag {
        found: short(tag_name(found)),
        text: text.to_owned(),
        wanted: short(wanted),
    }
}
