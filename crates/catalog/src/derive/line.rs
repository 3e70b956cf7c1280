//! Line-based edits of YAML text that leave all other bytes unchanged.
//!
//! Chart files mix YAML with template actions and comments, so that no YAML parser can write them back.
//! These functions interpret only indentation, keys and comments of block mappings.

/// Result of an edit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The text has no match and is unchanged.
    NoMatch,
    /// The key has a value that the edit does not expect: this one.
    Unexpected(String),
    /// The new text.
    Done(String),
}

/// Sets the scalar at `path` to `to` if its value is one of `from` or `from` is empty. Keeps quotes and
/// comments.
pub(crate) fn set_scalar(text: &str, path: &[&str], from: &[&str], to: &str) -> Change {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(at) = find_key(&lines, path) else {
        return Change::NoMatch;
    };
    let line = lines.get(at).copied().unwrap_or_default();
    let Some((head, value, tail)) = split_entry(line) else {
        return Change::NoMatch;
    };
    if from.is_empty() || from.contains(&value) {
        let before: usize = lines.iter().take(at).map(|line| line.len()).sum();
        let after = text.get(before + line.len()..).unwrap_or_default();
        let before = text.get(..before).unwrap_or_default();
        Change::Done(format!("{before}{head}{to}{tail}{after}"))
    } else {
        Change::Unexpected(value.to_owned())
    }
}

/// Removes the key at `path` with its content and the comment directly above it.
pub(crate) fn remove_key(text: &str, path: &[&str]) -> Change {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(at) = find_key(&lines, path) else {
        return Change::NoMatch;
    };
    let (start, end) = (leading_comment(&lines, at), block_end(&lines, at));
    let mut kept: Vec<String> = lines
        .iter()
        .take(start)
        .chain(lines.iter().skip(end))
        .map(ToString::to_string)
        .collect();
    let (_, parent) = path.split_last().unwrap_or((&"", &[]));
    close_if_empty(&mut kept, parent);
    Change::Done(kept.concat())
}

/// Removes all lines that contain `needle`.
pub(crate) fn remove_lines(text: &str, needle: &str) -> Change {
    let kept: String = text
        .split_inclusive('\n')
        .filter(|line| !line.contains(needle))
        .collect();
    if kept.len() == text.len() {
        Change::NoMatch
    } else {
        Change::Done(kept)
    }
}

/// Inserts `addition` after the first line that equals `anchor`.
pub(crate) fn insert_after(text: &str, anchor: &str, addition: &str) -> Change {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        offset += line.len();
        if line.trim_end_matches(['\n', '\r']) == anchor && line.ends_with('\n') {
            let (before, after) = text.split_at(offset);
            return Change::Done(format!("{before}{addition}{after}"));
        }
    }
    Change::NoMatch
}

/// Kind of a line in a block mapping.
enum Kind<'a> {
    BlankOrComment,
    Item,
    Key(&'a str),
    Other,
}

fn classify_line(line: &str) -> Kind<'_> {
    let body = line.trim();
    if body.is_empty() || body.starts_with('#') {
        Kind::BlankOrComment
    } else if body == "-" || body.starts_with("- ") {
        Kind::Item
    } else {
        split_entry(line).map_or(Kind::Other, |(head, _, _)| Kind::Key(key_name(head)))
    }
}

fn key_name(head: &str) -> &str {
    let head = head.trim();
    let head = head.split_once(':').map_or(head, |(key, _)| key);
    head.trim_matches(['"', '\''])
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Splits an entry around its value: `  key: "value"  # comment` → (`  key: "`, `value`, `"  # comment`).
fn split_entry(line: &str) -> Option<(&str, &str, &str)> {
    let colon = line.find(':')?;
    let (head, rest) = line.split_at(colon + 1);
    if !rest.is_empty() && !rest.starts_with([' ', '\n', '\r']) {
        return None;
    }
    let content = rest.trim_start_matches(' ');
    let (value_at, quote) = match content.chars().next() {
        Some(quote @ ('"' | '\'')) => (1, Some(quote)),
        _ => (0, None),
    };
    let body = content.get(value_at..)?;
    let length = match quote {
        Some(quote) => body.find(quote)?,
        None => plain_scalar_length(body),
    };
    let head_length = head.len() + (rest.len() - content.len()) + value_at;
    let (head, tail) = line.split_at_checked(head_length)?;
    let (value, tail) = tail.split_at_checked(length)?;
    Some((head, value, tail))
}

fn plain_scalar_length(body: &str) -> usize {
    let commented = body
        .find(" #")
        .map_or(body, |at| body.get(..at).unwrap_or_default());
    let commented = if body.starts_with('#') { "" } else { commented };
    commented.trim_end().len()
}

/// Returns the index of the line with the key at `path`.
fn find_key(lines: &[&str], path: &[&str]) -> Option<usize> {
    let mut open: Vec<(usize, &str)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let key = match classify_line(line) {
            Kind::BlankOrComment => continue,
            Kind::Item => "-",
            Kind::Other => "",
            Kind::Key(key) => key,
        };
        open.retain(|(depth, _)| *depth < indent(line));
        open.push((indent(line), key));
        if open.iter().map(|(_, key)| key).eq(path.iter()) {
            return Some(at);
        }
    }
    None
}

fn leading_comment(lines: &[&str], at: usize) -> usize {
    let depth = lines.get(at).map_or(0, |line| indent(line));
    let comments = lines
        .iter()
        .take(at)
        .rev()
        .take_while(|line| line.trim().starts_with('#') && indent(line) == depth);
    at - comments.count()
}

/// Returns the index of the line after the block of the key at `at`, including a following blank line.
fn block_end(lines: &[&str], at: usize) -> usize {
    let depth = lines.get(at).map_or(0, |line| indent(line));
    let mut end = at + 1;
    for (index, line) in lines.iter().enumerate().skip(at + 1) {
        match classify_line(line) {
            Kind::BlankOrComment => {}
            Kind::Item if indent(line) >= depth => end = index + 1,
            _ if indent(line) > depth => end = index + 1,
            _ => break,
        }
    }
    let blank = lines.get(end).is_some_and(|line| line.trim().is_empty());
    end + usize::from(blank)
}

/// Writes `{}` as the value of a key without children, which would otherwise be null.
fn close_if_empty(lines: &mut [String], path: &[&str]) {
    let view: Vec<&str> = lines.iter().map(String::as_str).collect();
    let Some(at) = find_key(&view, path) else { return };
    let depth = view.get(at).map_or(0, |line| indent(line));
    let next = view
        .iter()
        .skip(at + 1)
        .find(|line| !matches!(classify_line(line), Kind::BlankOrComment));
    let empty = next.is_none_or(|line| {
        indent(line) < depth || (indent(line) == depth && !matches!(classify_line(line), Kind::Item))
    });
    if let (true, Some(line)) = (empty, lines.get_mut(at)) {
        *line = format!("{} {{}}\n", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: &str =
        "# head\na:\n  # why\n  hub: old # keep\n\n  tag: \"x\"\nb:\n- hub: old\nhub: other\n";

    fn done(text: &str) -> Change {
        Change::Done(text.to_owned())
    }

    #[test]
    fn set_scalar_changes_only_the_scalar() {
        let expected = VALUES.replace("  hub: old # keep", "  hub: new # keep");
        assert_eq!(
            set_scalar(VALUES, &["a", "hub"], &["old"], "new"),
            done(&expected)
        );
        assert_eq!(
            set_scalar(VALUES, &["a", "tag"], &["x"], "1.2"),
            done(&VALUES.replace("\"x\"", "\"1.2\""))
        );
        assert_eq!(
            set_scalar(VALUES, &["hub"], &["other"], "n"),
            done(&VALUES.replace("other", "n"))
        );
    }

    #[test]
    fn a_missing_final_newline_is_not_added() {
        assert_eq!(
            set_scalar("a:\n  b: x", &["a", "b"], &["x"], "y"),
            done("a:\n  b: y")
        );
        assert_eq!(
            set_scalar("a: x\r\nb: y\r\n", &["a"], &["x"], "z"),
            done("a: z\r\nb: y\r\n")
        );
    }

    #[test]
    fn missing_and_unexpected_scalars_are_reported() {
        assert_eq!(
            set_scalar(VALUES, &["b", "hub"], &["old"], "new"),
            Change::NoMatch
        );
        assert_eq!(
            set_scalar(VALUES, &["a", "hub"], &["older"], "new"),
            Change::Unexpected("old".into())
        );
        assert_eq!(
            set_scalar("{{ .x }}\na:b\n", &["a"], &["b"], "c"),
            Change::NoMatch
        );
    }

    #[test]
    fn a_key_is_removed_with_its_block_and_comment() {
        let text = "spec:\n  # parts\n  parts:\n    a: 1\n\n    # inner\n    list:\n    - x\n\n  # stays\n  values:\n    p: q\n";
        assert_eq!(
            remove_key(text, &["spec", "parts"]),
            done("spec:\n  # stays\n  values:\n    p: q\n")
        );
        assert_eq!(remove_key("a:\n- x\n- y\nb: 1\n", &["a"]), done("b: 1\n"));
        assert_eq!(remove_key(text, &["spec", "none"]), Change::NoMatch);
    }

    #[test]
    fn a_mapping_without_keys_stays_a_mapping() {
        assert_eq!(
            remove_key("a: 1\nspec:\n  parts:\n    x: y\n", &["spec", "parts"]),
            done("a: 1\nspec: {}\n")
        );
        assert_eq!(
            remove_key("spec:\n  parts:\n    x: y\nz: 1\n", &["spec", "parts"]),
            done("spec: {}\nz: 1\n")
        );
    }

    #[test]
    fn lines_are_removed_and_inserted() {
        assert_eq!(remove_lines("a\n  x: {{ y }}\nb", "x:"), done("a\nb"));
        assert_eq!(remove_lines("a\n", "x:"), Change::NoMatch);
        assert_eq!(
            insert_after("rules:\n- a\nrules:\n", "rules:", "- b\n"),
            done("rules:\n- b\n- a\nrules:\n")
        );
        assert_eq!(insert_after("  rules:\n", "rules:", "- b\n"), Change::NoMatch);
        assert_eq!(insert_after("rules:", "rules:", "- b\n"), Change::NoMatch);
    }
}
