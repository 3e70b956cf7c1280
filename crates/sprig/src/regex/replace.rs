//! Replacement of all matches, with Go's rules for `$name`.

use mainstay_gostd::unicode::{is_digit, is_letter};
use mainstay_template::{LimitExceeded, Meter};
use regex_automata::util::captures::Captures;

use super::program::{Haystack, Program};

/// Replacement text of a match.
#[derive(Clone, Copy)]
pub(super) struct Replacement<'r> {
    pub(super) text: &'r [u8],
    /// Whether `$1` and `${name}` refer to groups.
    pub(super) expand: bool,
}

/// Replaces all matches in `text`.
pub(super) fn replace_all(
    program: &Program,
    haystack: &Haystack<'_>,
    with: Replacement<'_>,
    meter: &mut Meter,
) -> Result<Vec<u8>, LimitExceeded> {
    let mut out = Vec::new();
    let mut groups = program.groups();
    let (mut copied, mut at) = (0, 0);
    while at <= haystack.len() {
        program.captures(haystack, at, &mut groups);
        let Some(found) = groups.get_match() else { break };
        out.extend_from_slice(haystack.slice(copied..found.start()));
        if found.end() > copied || found.start() == 0 {
            if with.expand {
                expand(&mut out, program, haystack, with.text, &groups);
            } else {
                out.extend_from_slice(with.text);
            }
            if out.len() > meter.limits().string {
                return Err(LimitExceeded::String);
            }
            meter.consume_fuel(1)?;
        }
        copied = found.end();
        at = (at + haystack.width(at).max(1)).max(found.end());
    }
    out.extend_from_slice(haystack.slice(copied..haystack.len()));
    meter.reserve_string(out.len())?;
    Ok(out)
}

fn expand(out: &mut Vec<u8>, program: &Program, haystack: &Haystack<'_>, template: &[u8], groups: &Captures) {
    let mut rest = template;
    while let Some(dollar) = rest.iter().position(|b| *b == b'$') {
        let (before, after) = rest.split_at(dollar);
        out.extend_from_slice(before);
        rest = after.get(1..).unwrap_or_default();
        if let Some(next) = rest.strip_prefix(b"$") {
            out.push(b'$');
            rest = next;
            continue;
        }
        let Some((name, next)) = reference(rest) else {
            out.push(b'$');
            continue;
        };
        rest = next;
        if let Some(span) = group(program, groups, name) {
            out.extend_from_slice(haystack.slice(span));
        }
    }
    out.extend_from_slice(rest);
}

/// Parses the name of a reference. `text` starts after the `$`. Returns the name and the rest.
fn reference(text: &[u8]) -> Option<(&str, &[u8])> {
    let braced = text.strip_prefix(b"{");
    let text = braced.unwrap_or(text);
    let valid = text.utf8_chunks().next()?.valid();
    let len = valid.find(|c: char| !is_name_character(c)).unwrap_or(valid.len());
    let (name, _) = valid.split_at_checked(len)?;
    let rest = text.get(len..)?;
    if name.is_empty() {
        return None;
    }
    Some((
        name,
        if braced.is_some() {
            rest.strip_prefix(b"}")?
        } else {
            rest
        },
    ))
}

fn is_name_character(c: char) -> bool {
    c == '_' || is_letter(c) || is_digit(c)
}

/// Returns the range of the group with this name or number. A number with a leading zero is a name.
fn group(program: &Program, groups: &Captures, name: &str) -> Option<std::ops::Range<usize>> {
    let numeric = name.bytes().all(|b| b.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'));
    if numeric && name.len() <= 9 {
        return Some(groups.get_group(name.parse().ok()?)?.range());
    }
    let mut named = program
        .names
        .iter()
        .enumerate()
        .filter(|(_, known)| *known == name);
    named
        .find_map(|(index, _)| groups.get_group(index))
        .map(|span| span.range())
}
