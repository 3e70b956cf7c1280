//! Patterns for paths: takes a pattern, gives the files it matches, sorted. `*`, `?` and `[a-z]` stay within a name, `**` goes through folders.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Whether a path has a wildcard in it.
pub(super) fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(['*', '?', '[']))
}

/// Every file that `pattern` matches. Folders that cannot be read are errors; links to folders are not followed by `**`.
pub(super) fn expand(pattern: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        found = match component {
            Component::Normal(name) => match name.to_str() {
                Some("**") => below(found)?,
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

/// The folders and everything below them.
fn below(folders: Vec<PathBuf>) -> io::Result<Vec<PathBuf>> {
    let mut waiting = folders;
    let mut all = Vec::new();
    while let Some(folder) = waiting.pop() {
        for (path, name) in listed(&folder)? {
            if path.is_dir() && !path.is_symlink() && !name.starts_with('.') {
                waiting.push(path);
            }
        }
        all.push(folder);
    }
    Ok(all)
}

/// What in `folders` is called like `pattern`. As in a shell, a leading dot must be asked for.
fn children(folders: &[PathBuf], pattern: &str) -> io::Result<Vec<PathBuf>> {
    let pattern_chars: Vec<char> = pattern.chars().collect();
    let mut matching = Vec::new();
    for folder in folders {
        let wanted = |name: &str| {
            let hidden = name.starts_with('.') && !pattern.starts_with('.');
            !hidden && matches(&pattern_chars, &name.chars().collect::<Vec<_>>())
        };
        let entries = listed(folder)?.into_iter();
        matching.extend(entries.filter(|(_, name)| wanted(name)).map(|(path, _)| path));
    }
    Ok(matching)
}

/// The entries of a folder with their names; none if it is no folder. Names that are not UTF-8 match nothing.
fn listed(folder: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let here = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
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
        Some((folder.join(&name), name))
    };
    Ok(entries.filter_map(named).collect())
}

/// Whether `name` is what `pattern` describes. A star remembers where it stood: on a mismatch it takes one letter more, and
/// only the last star ever needs to, so the time is bounded by the product of both lengths.
fn matches(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p + 1, n));
            p += 1;
        } else if let Some(next) = name.get(n).and_then(|letter| one(pattern, p, *letter)) {
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

/// Where the pattern goes on if its element at `p` takes `letter`.
fn one(pattern: &[char], p: usize, letter: char) -> Option<usize> {
    match pattern.get(p)? {
        '?' => Some(p + 1),
        '[' => match class(pattern, p) {
            Some((end, set)) => in_class(set, letter).then_some(end),
            // Without its end a bracket is a letter like any other.
            None => (letter == '[').then_some(p + 1),
        },
        same => (*same == letter).then_some(p + 1),
    }
}

/// The inside of the bracket that opens at `p`, and where the pattern goes on.
fn class(pattern: &[char], p: usize) -> Option<(usize, &[char])> {
    let inside = pattern.get(p + 1..)?;
    // The first letter may be a closing bracket that is meant.
    let first = usize::from(inside.first().is_some_and(|it| matches!(it, '!' | '^'))) + 1;
    let end = inside
        .iter()
        .enumerate()
        .skip(first)
        .find(|(_, it)| **it == ']')?
        .0;
    Some((p + end + 2, inside.get(..end)?))
}

fn in_class(set: &[char], letter: char) -> bool {
    let (set, negated) = match set {
        ['!' | '^', rest @ ..] => (rest, true),
        all => (all, false),
    };
    let mut rest = set;
    let mut found = false;
    loop {
        rest = match rest {
            [low, '-', high, rest @ ..] => {
                found |= (*low..=*high).contains(&letter);
                rest
            }
            [one, rest @ ..] => {
                found |= *one == letter;
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
    fn many_stars_take_no_time() {
        check(&"*a".repeat(200), &"ba".repeat(2_000), true);
        check(&("*a".repeat(200) + "c"), &"a".repeat(5_000), false);
    }

    #[test]
    fn folders_are_walked() {
        let folder = tempfile::tempdir().unwrap();
        for path in [
            "a.yaml",
            "b.json",
            "x/c.yaml",
            "x/y/d.yaml",
            ".hidden/e.yaml",
            ".f.yaml",
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| -> Vec<String> {
            let found = expand(&folder.path().join(pattern)).unwrap();
            found
                .iter()
                .map(|it| it.strip_prefix(folder.path()).unwrap().display().to_string())
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
