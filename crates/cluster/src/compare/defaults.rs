//! Defaults set by the server: a table of kinds, paths and values. A default that is missing here costs one
//! write without effect.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::at::At;

/// The table: `[kinds]`, then lines of path and value. The value is JSON, `any`, or `= field` for the value
/// of a sibling field.
const TABLE: &str = include_str!("defaults.txt");

enum Filled {
    /// This value.
    With(Value),
    /// Any value.
    Any,
    /// The value of a sibling field.
    Beside(&'static str),
}

type Places = BTreeMap<String, Filled>;

/// Whether `value`, at a path that is not desired, is the server's default; `beside` is the map that holds
/// it.
pub(super) fn is_default(at: At<'_>, value: &Value, beside: &Value) -> bool {
    let place = at.dotted();
    let kinds = [at.kind(), "*"];
    let found = kinds.iter().find_map(|kind| table().get(*kind)?.get(&place));
    match found {
        Some(Filled::With(default)) => default == value,
        Some(Filled::Any) => true,
        Some(Filled::Beside(field)) => beside.get(*field) == Some(value),
        None => false,
    }
}

fn table() -> &'static BTreeMap<&'static str, Places> {
    static READ: OnceLock<BTreeMap<&'static str, Places>> = OnceLock::new();
    READ.get_or_init(|| read(TABLE))
}

fn read(text: &'static str) -> BTreeMap<&'static str, Places> {
    let mut table: BTreeMap<&str, Places> = BTreeMap::new();
    let (mut kinds, mut prefixes) = (Vec::new(), vec![String::new()]);
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(heading) = line.strip_prefix('[') {
            let (names, below) = heading
                .trim_end_matches(']')
                .split_once(" below ")
                .unwrap_or((heading.trim_end_matches(']'), ""));
            kinds = names.split(' ').collect();
            prefixes = below
                .split(' ')
                .map(|one| {
                    if one.is_empty() {
                        String::new()
                    } else {
                        format!("{one}.")
                    }
                })
                .collect();
            continue;
        }
        let Some((place, value)) = line.split_once(' ') else {
            continue;
        };
        for kind in &kinds {
            for prefix in &prefixes {
                if let Some(filled) = filled(value.trim()) {
                    table
                        .entry(kind)
                        .or_default()
                        .insert(format!("{prefix}{place}"), filled);
                }
            }
        }
    }
    table
}

fn filled(text: &'static str) -> Option<Filled> {
    match text.strip_prefix('=') {
        Some(field) => Some(Filled::Beside(field.trim())),
        None if text == "any" => Some(Filled::Any),
        None => serde_json::from_str(text).ok().map(Filled::With),
    }
}
