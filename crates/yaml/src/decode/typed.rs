//! Documents with the types that go-yaml assigns, for errors that print them in Go's syntax.

use std::fmt::Write as _;

use mainstay_gostd::float::format_float;
use mainstay_gostd::quote::append_quote;

use super::scalar::{self, Scalar};
use super::value::is_merge;
use crate::read::{Kind, Tree};
use crate::resolve::Resolved;
use crate::{Position, Problem};

/// A value as Go represents it.
#[derive(Clone, Debug, PartialEq)]
enum Typed {
    Nil,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Text(Vec<u8>),
    List(Vec<Typed>),
    Map(Vec<(Typed, Typed)>),
}

/// Maximum length of printed values in bytes. Limits the length of errors.
const MAX_PRINTED_LEN: usize = 1 << 20;

/// Formats the node `id` as Go's `%#v`.
pub(super) fn print_node(tree: &Tree<'_>, id: u32) -> String {
    let mut out = String::new();
    print(&to_typed(tree, id), &mut out, true);
    out
}

/// Returns the first key of the document that JSON cannot represent.
pub(super) fn key_problem(tree: &Tree<'_>) -> Option<Problem> {
    key_problem_in(&to_typed(tree, 0))
}

fn key_problem_in(value: &Typed) -> Option<Problem> {
    match value {
        Typed::List(items) => items.iter().find_map(key_problem_in),
        Typed::Map(entries) => entries.iter().find_map(|(key, value)| {
            let kind = match key {
                Typed::Nil => "%!s(<nil>)",
                Typed::Uint(_) => "uint64",
                _ => return key_problem_in(value),
            };
            let (mut shown_key, mut shown) = (String::new(), String::new());
            print(key, &mut shown_key, true);
            print(value, &mut shown, true);
            Some(Problem::UnsupportedKey {
                kind,
                key: shown_key,
                value: shown,
            })
        }),
        _ => None,
    }
}

/// Converts the node to Go's types. Cannot fail, because the document has been decoded before.
fn to_typed(tree: &Tree<'_>, id: u32) -> Typed {
    let Some(node) = tree.node(id) else {
        return Typed::Nil;
    };
    match node.kind {
        Kind::Alias => to_typed(tree, node.first),
        Kind::Scalar => match scalar::read(node, Position::start) {
            Ok(Scalar::Text(text)) => Typed::Text(text.as_bytes().to_vec()),
            Ok(Scalar::Bytes(bytes)) => Typed::Text(bytes),
            Ok(Scalar::Resolved(Resolved::Bool(value))) => Typed::Bool(value),
            Ok(Scalar::Resolved(Resolved::Int(value))) => Typed::Int(value),
            Ok(Scalar::Resolved(Resolved::Uint(value))) => Typed::Uint(value),
            Ok(Scalar::Resolved(Resolved::Float(value))) => Typed::Float(value),
            _ => Typed::Nil,
        },
        Kind::Sequence => Typed::List(tree.children(id).map(|child| to_typed(tree, child)).collect()),
        Kind::Mapping => {
            let mut entries = Vec::new();
            add_entries(tree, id, &mut entries);
            Typed::Map(entries)
        }
    }
}

fn add_entries(tree: &Tree<'_>, id: u32, entries: &mut Vec<(Typed, Typed)>) {
    let children: Vec<u32> = tree.children(id).collect();
    for pair in children.chunks_exact(2) {
        let [key, value] = *pair else { continue };
        if tree.node(key).is_some_and(is_merge) {
            add_merged_entries(tree, value, entries);
            continue;
        }
        let (key, value) = (to_typed(tree, key), to_typed(tree, value));
        match entries.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => entries.push((key, value)),
        }
    }
}

fn add_merged_entries(tree: &Tree<'_>, id: u32, entries: &mut Vec<(Typed, Typed)>) {
    match tree.node(id).map(|node| (node.kind, node.first)) {
        Some((Kind::Alias, target)) => add_entries(tree, target, entries),
        Some((Kind::Sequence, _)) => {
            let children: Vec<u32> = tree.children(id).collect();
            children
                .into_iter()
                .rev()
                .for_each(|child| add_merged_entries(tree, child, entries));
        }
        _ => add_entries(tree, id, entries),
    }
}

fn print(value: &Typed, out: &mut String, top: bool) {
    if out.len() > MAX_PRINTED_LEN {
        return;
    }
    // Writing to a string cannot fail.
    let _ = match value {
        Typed::Nil if top => write!(out, "<nil>"),
        Typed::Nil => write!(out, "interface {{}}(nil)"),
        Typed::Bool(value) => write!(out, "{value}"),
        Typed::Int(value) => write!(out, "{value}"),
        Typed::Uint(value) => write!(out, "{value:#x}"),
        Typed::Float(value) => write!(out, "{}", format_float(*value, 'g', None)),
        Typed::Text(text) => {
            append_quote(out, text);
            Ok(())
        }
        Typed::List(items) => {
            print_list(items, out);
            Ok(())
        }
        Typed::Map(entries) => {
            print_map(entries, out);
            Ok(())
        }
    };
}

fn print_list(items: &[Typed], out: &mut String) {
    out.push_str("[]interface {}{");
    for (at, item) in items.iter().enumerate() {
        out.push_str(if at > 0 { ", " } else { "" });
        print(item, out, false);
    }
    out.push('}');
}

fn print_map(entries: &[(Typed, Typed)], out: &mut String) {
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by(|(a, _), (b, _)| compare(a, b));
    out.push_str("map[interface {}]interface {}{");
    for (at, (key, value)) in sorted.into_iter().enumerate() {
        out.push_str(if at > 0 { ", " } else { "" });
        print(key, out, false);
        out.push(':');
        print(value, out, false);
    }
    out.push('}');
}

/// Compares in Go's order of printed keys: by type, then by value.
fn compare(a: &Typed, b: &Typed) -> std::cmp::Ordering {
    match (a, b) {
        (Typed::Bool(a), Typed::Bool(b)) => a.cmp(b),
        (Typed::Int(a), Typed::Int(b)) => a.cmp(b),
        (Typed::Uint(a), Typed::Uint(b)) => a.cmp(b),
        // NaN sorts first.
        (Typed::Float(a), Typed::Float(b)) => (!a.is_nan()).cmp(&!b.is_nan()).then(a.total_cmp(b)),
        (Typed::Text(a), Typed::Text(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Returns the position of the type in Go's order. Go orders types by address, and its linker assigns
/// addresses in this order.
fn rank(value: &Typed) -> u8 {
    match value {
        Typed::Nil => 0,
        Typed::Text(_) => 1,
        Typed::Uint(_) => 2,
        Typed::Int(_) => 3,
        Typed::Float(_) => 4,
        Typed::Bool(_) => 5,
        Typed::List(_) | Typed::Map(_) => 6,
    }
}
