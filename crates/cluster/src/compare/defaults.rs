//! Defaults that the server sets: a table of kinds, paths and values. A default that is missing in the
//! table causes one write without effect.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::path::PathRef;

/// The table: sections `[KIND…]` or `[KIND… below PATH…]` with lines of path and value. The value is
/// JSON, `any`, or `= FIELD` for the value of a sibling field.
const TABLE: &str = include_str!("defaults.txt");

/// Default value of a field.
enum DefaultValue {
    /// A fixed value.
    Fixed(Value),
    /// Any value.
    Any,
    /// The value of a sibling field.
    Sibling(&'static str),
}

type DefaultsByPath = BTreeMap<String, DefaultValue>;

/// Whether `value`, at a path that is not desired, is the server's default. `siblings` is the map that
/// contains the value.
pub(super) fn is_default(at: PathRef<'_>, value: &Value, siblings: &Value) -> bool {
    let path = at.dotted();
    let kinds = [at.kind(), "*"];
    let found = kinds.iter().find_map(|kind| table().get(*kind)?.get(&path));
    match found {
        Some(DefaultValue::Fixed(default)) => default == value,
        Some(DefaultValue::Any) => true,
        Some(DefaultValue::Sibling(field)) => siblings.get(*field) == Some(value),
        None => false,
    }
}

fn table() -> &'static BTreeMap<&'static str, DefaultsByPath> {
    static PARSED: OnceLock<BTreeMap<&'static str, DefaultsByPath>> = OnceLock::new();
    PARSED.get_or_init(|| parse_table(TABLE))
}

fn parse_table(text: &'static str) -> BTreeMap<&'static str, DefaultsByPath> {
    let mut table: BTreeMap<&str, DefaultsByPath> = BTreeMap::new();
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
        let Some((path, value)) = line.split_once(' ') else {
            continue;
        };
        for kind in &kinds {
            for prefix in &prefixes {
                if let Some(default) = parse_value(value.trim()) {
                    table
                        .entry(kind)
                        .or_default()
                        .insert(format!("{prefix}{path}"), default);
                }
            }
        }
    }
    table
}

fn parse_value(text: &'static str) -> Option<DefaultValue> {
    match text.strip_prefix('=') {
        Some(field) => Some(DefaultValue::Sibling(field.trim())),
        None if text == "any" => Some(DefaultValue::Any),
        None => serde_json::from_str(text).ok().map(DefaultValue::Fixed),
    }
}
