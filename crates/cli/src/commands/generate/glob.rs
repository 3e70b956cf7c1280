//! Path patterns: `*`, `?` and `[a-z]` match within a name, `**` matches directories.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Whether a path contains a wildcard.
pub(super) fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(['*', '?', '[']))
}

/// Returns the files that match, sorted. Unreadable directories are errors; `**` does not follow symbolic
/// links.
pub(super) fn expand(pattern: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        found = match component {
            Component::Normal(name) => match name.to_str() {
                Some("**") => descendants(found)?,
                Some(name) if is_pattern(Path::new(name)) => children(&found, name)?,
                _ => found.into_iter().map(|path| path.join(name)).collect(),
            },
            other => found.into_iter().map(|path| path.join(other)).collect(),
        };
    }
    found.retain(|path| path.is_file());
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns the directories and all directories below them, except hidden ones and symbolic links.
fn descendants(directories: Vec<PathBuf>) -> io::Result<Vec<PathBuf>> {
    let mut waiting = directories;
    let mut all = Vec::new();
    while let Some(directory) = waiting.pop() {
        for (path, name) in list_entries(&directory)? {
            if path.is_dir() && !path.is_symlink() && !name.starts_with('.') {
                waiting.push(path);
            }
        }
        all.push(directory);
    }
    Ok(all)
}

/// Returns the entries of `directories` that match. As in a shell, only a pattern with
/// a leading dot matches hidden files.
fn children(directories: &[PathBuf], pattern: &str) -> io::Result<Vec<PathBuf>> {
    let pattern_chars: Vec<char> = pattern.chars().collect();
    let mut matching = Vec::new();
    for directory in directories {
        let wanted = |name: &str| {
            let hidden = name.starts_with('.') && !pattern.starts_with('.');
            !hidden && matches(&pattern_chars, &name.chars().collect::<Vec<_>>())
        };
        let entries = list_entries(directory)?.into_iter();
        matching.extend(entries.filter(|(_, name)| wanted(name)).map(|(path, _)| path));
    }
    Ok(matching)
}

/// Returns the entries of a directory with their names, or none if it is not a directory. Names that are not
/// UTF-8 match nothing.
fn list_entries(directory: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let here = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let entries = match fs::read_dir(here) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        other => other?,
    };
    let named = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        Some((directory.join(&name), name))
    };
    Ok(entries.filter_map(named).collect())
}

/// Whether `name` matches. After a mismatch, only the last star is extended by one character, so the time is
/// bounded by the product of both lengths.
fn matches(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p + 1, n));
            p += 1;
        } else if let Some(next) = name
            .get(n)
            .and_then(|character| match_one(pattern, p, *character))
        {
            (p, n) = (next, n + 1);
        } else if let Some((behind, taken)) = star {
            star = Some((behind, taken + 1));
            (p, n) = (behind, taken + 1);
        } else {
            return false;
        }
    }
    pattern.iter().skip(p).all(|rest| *rest == '*')
}

/// Returns the position after the element at `p` if it matches the character.
fn match_one(pattern: &[char], p: usize, character: char) -> Option<usize> {
    match pattern.get(p)? {
        '?' => Some(p + 1),
        '[' => match class(pattern, p) {
            Some((end, set)) => in_class(set, character).then_some(end),
            // An unclosed bracket is a plain character.
            None => (character == '[').then_some(p + 1),
        },
        same => (*same == character).then_some(p + 1),
    }
}

/// Returns the position after the bracket at `p`, and its contents.
fn class(pattern: &[char], p: usize) -> Option<(usize, &[char])> {
    let inside = pattern.get(p + 1..)?;
    // A closing bracket in first position is a plain character.
    let first = usize::from(inside.first().is_some_and(|it| matches!(it, '!' | '^'))) + 1;
    let end = inside
        .iter()
        .enumerate()
        .skip(first)
        .find(|(_, it)| **it == ']')?
        .0;
    Some((p + end + 2, inside.get(..end)?))
}

fn in_class(set: &[char], character: char) -> bool {
    let (set, negated) = match set {
        ['!' | '^', rest @ ..] => (rest, true),
        all => (all, false),
    };
    let mut rest = set;
    let mut found = false;
    loop {
        rest = match rest {
            [low, '-', high, rest @ ..] => {
                found |= (*low..=*high).contains(&character);
                rest
            }
            [one, rest @ ..] => {
                found |= *one == character;
                rest
            }
            [] => return found != negated,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, name: &str, expected: bool) {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(
            matches(&chars(pattern), &chars(name)),
            expected,
            "{pattern} {name}"
        );
    }

    #[test]
    fn names_match() {
        check("*.yaml", "a.yaml", true);
        check("*.yaml", "a.yml", false);
        check("*.y*ml", "a.yaml", true);
        check("a?c", "abc", true);
        check("a?c", "ac", false);
        check("*", "", true);
        check("**", "a", true);
        check("a*b*c", "axxbyyc", true);
        check("a*b*c", "axxbyy", false);
        check("[abc].yaml", "b.yaml", true);
        check("[a-c].yaml", "d.yaml", false);
        check("[!a-c].yaml", "d.yaml", true);
        check("[]].yaml", "].yaml", true);
        check("[a.yaml", "[a.yaml", true);
        check("[a-].yaml", "-.yaml", true);
        check("é?", "éü", true);
    }

    #[test]
    fn many_stars_match_in_bounded_time() {
        check(&"*a".repeat(200), &"ba".repeat(2_000), true);
        check(&("*a".repeat(200) + "c"), &"a".repeat(5_000), false);
    }

    #[test]
    fn directories_are_searched() {
        let directory = tempfile::tempdir().unwrap();
        for path in [
            "a.yaml",
            "b.json",
            "x/c.yaml",
            "x/y/d.yaml",
            ".hidden/e.yaml",
            ".f.yaml",
        ] {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let found = expand(&directory.path().join(pattern)).unwrap();
            found
                .iter()
                .map(|it| it.strip_prefix(directory.path()).unwrap().display().to_string())
                .collect()
        };
        assert_eq!(found("*.yaml"), ["a.yaml"]);
        assert_eq!(found("**/*.yaml"), ["a.yaml", "x/c.yaml", "x/y/d.yaml"]);
        assert_eq!(found("x/*"), ["x/c.yaml"]);
        assert_eq!(found(".*.yaml"), [".f.yaml"]);
        assert_eq!(found("nope/*.yaml"), Vec::<String>::new());
        assert_eq!(found("*/y/*.yaml"), ["x/y/d.yaml"]);
    }
}
