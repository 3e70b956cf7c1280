//! What the server fills in by itself: a table of kinds, places and values. Takes a place and what is there, says whether the server
//! would have put it there. What the table does not know costs a write that changes nothing, once.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::at::At;

/// The table: `[kinds]`, then lines of a place and a value. The value is JSON, `any`, or `= field` for "as that field beside it".
const TABLE: &str = include_str!("defaults.txt");

enum Filled {
    /// With this.
    With(Value),
    /// With anything.
    Any,
    /// With the value of a field beside it.
    Beside(&'static str),
}

type Places = BTreeMap<String, Filled>;

/// Whether `value`, at a place that nobody asked to be set, is what the server puts there; `beside` is the map it is in.
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
