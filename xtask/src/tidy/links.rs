//! Checks relative links in Markdown files: the file and the heading of the anchor must exist.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::Finding;

/// Returns a finding for each dead relative link of the Markdown file `path`.
pub(super) fn check(root: &Path, path: &str, text: &str) -> Vec<Finding> {
    if !has_extension(path) {
        return Vec::new();
    }
    let links = prose(text).flat_map(|(line, content)| targets(content).map(move |target| (line, target)));
    let dead = links.filter_map(|(line, target)| {
        let problem = problem(root, path, target)?;
        Some(Finding::new(format!("{path}:{line}"), problem))
    });
    dead.collect()
}

fn has_extension(path: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "md")
}

/// Returns the numbered lines outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the targets of the inline links in a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let after = line.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

/// Returns the reason why a target is dead, or `None` if the target exists.
fn problem(root: &Path, from: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        PathBuf::from(from)
    } else {
        let joined = Path::new(from).parent()?.join(file);
        let Some(path) = normalize(&joined) else {
            return Some(format!("dead link {target:?}: leaves the repository"));
        };
        path
    };
    let Ok(text) = std::fs::read_to_string(root.join(&path)) else {
        let exists = root.join(&path).exists();
        return (!exists).then(|| format!("dead link {target:?}: no such file"));
    };
    let is_missing = !anchor.is_empty() && !anchors(&text).contains(anchor);
    is_missing.then(|| format!("dead link {target:?}: no such heading"))
}

/// Resolves `..` without the file system; `None` if the path leaves the repository.
fn normalize(path: &Path) -> Option<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir if !resolved.pop() => return None,
            Component::Normal(name) => resolved.push(name),
            _ => {}
        }
    }
    Some(resolved)
}

/// Returns the anchors of all headings: lower case, blanks as hyphens, without punctuation.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| Some(line.strip_prefix('#')?.trim_start_matches('#')));
    headings.map(|heading| anchor(heading.trim())).collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ if character.is_alphanumeric() => Some(character),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("docs")).unwrap();
        std::fs::write(directory.path().join("docs/a.md"), "# One `thing`, two\n").unwrap();
        let findings = check(directory.path(), "docs/b.md", text);
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn dead_files_and_anchors_are_found() {
        let none: [String; 0] = [];
        assert_eq!(
            found("[a](a.md) [b](../docs/a.md#one-thing-two) [c](https://x.y/z)"),
            none
        );
        assert_eq!(found("```\n[a](none.md)\n```\n"), none);
        assert_eq!(found("[a](none.md)"), ["dead link \"none.md\": no such file"]);
        assert_eq!(
            found("[a](a.md#three)"),
            ["dead link \"a.md#three\": no such heading"]
        );
    }
}
