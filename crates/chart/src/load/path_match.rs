//! Go's `filepath.Match`: takes a shell pattern and a path with forward slashes, says whether the whole path fits.

/// The pattern is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub(crate) struct BadPattern;

/// Whether `name` fits `pattern`: `*` and `?` stop at slashes, `[a-z]` and `[^a-z]` are sets, `\` quotes.
pub(crate) fn match_path(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    match_from(&pattern, &name)
}

fn match_from(mut pattern: &[char], mut name: &[char]) -> Result<bool, BadPattern> {
    while !pattern.is_empty() {
        let (star, chunk, rest) = next_chunk(pattern);
        pattern = rest;
        if star && chunk.is_empty() {
            return Ok(!name.contains(&'/'));
        }
        match fit(chunk, name)? {
            Some(left) if left.is_empty() || !pattern.is_empty() => {
                name = left;
                continue;
            }
            _ if !star => return well_formed(pattern),
            _ => {}
        }
        match after_star(chunk, pattern, name)? {
            Some(left) => name = left,
            None => return well_formed(pattern),
        }
    }
    Ok(name.is_empty())
}

/// Lets the star take one more character at a time, never a slash.
fn after_star<'n>(
    chunk: &[char],
    pattern: &[char],
    name: &'n [char],
) -> Result<Option<&'n [char]>, BadPattern> {
    let mut from = name;
    while let Some((first, rest)) = from.split_first() {
        if *first == '/' {
            break;
        }
        from = rest;
        match fit(chunk, from)? {
            Some(left) if pattern.is_empty() && !left.is_empty() => {}
            Some(left) => return Ok(Some(left)),
            None => {}
        }
    }
    Ok(None)
}

/// No match; but a malformed rest is still an error.
fn well_formed(mut pattern: &[char]) -> Result<bool, BadPattern> {
    while !pattern.is_empty() {
        let (_, chunk, rest) = next_chunk(pattern);
        pattern = rest;
        fit(chunk, &[])?;
    }
    Ok(false)
}

/// Whether stars come first, what follows up to the next star, and the rest.
fn next_chunk(pattern: &[char]) -> (bool, &[char], &[char]) {
    let stars = pattern.iter().take_while(|c| **c == '*').count();
    let pattern = pattern.get(stars..).unwrap_or_default();
    let mut in_set = false;
    let mut at = 0;
    while let Some(c) = pattern.get(at) {
        match c {
            '\\' if at + 1 < pattern.len() => at += 1,
            '[' => in_set = true,
            ']' => in_set = false,
            '*' if !in_set => break,
            _ => {}
        }
        at += 1;
    }
    let (chunk, rest) = pattern.split_at_checked(at).unwrap_or((pattern, &[]));
    (stars > 0, chunk, rest)
}

/// What is left of `name` after `chunk`, which has no star. Goes on after a mismatch, to find malformed sets.
fn fit<'n>(mut chunk: &[char], mut name: &'n [char]) -> Result<Option<&'n [char]>, BadPattern> {
    let mut failed = false;
    while let Some((first, rest)) = chunk.split_first() {
        failed |= name.is_empty();
        let next = if failed {
            None
        } else {
            name.split_first().map(|(c, rest)| (*c, rest))
        };
        chunk = rest;
        let fits = match first {
            '[' => {
                let (set_fits, rest) = fit_set(chunk, next.map(|(c, _)| c))?;
                chunk = rest;
                set_fits
            }
            '?' => next.is_some_and(|(c, _)| c != '/'),
            '\\' => {
                let (quoted, rest) = chunk.split_first().ok_or(BadPattern)?;
                chunk = rest;
                next.is_some_and(|(c, _)| c == *quoted)
            }
            literal => next.is_some_and(|(c, _)| c == *literal),
        };
        failed |= !fits;
        name = next.map_or(name, |(_, rest)| rest);
    }
    Ok((!failed).then_some(name))
}

/// A set after its `[`: whether `c` is in it, and what follows its `]`.
fn fit_set(chunk: &[char], c: Option<char>) -> Result<(bool, &[char]), BadPattern> {
    let (negated, mut chunk) = match chunk.split_first() {
        Some(('^', rest)) => (true, rest),
        _ => (false, chunk),
    };
    let mut inside = false;
    let mut ranges = 0;
    loop {
        if let Some((']', rest)) = chunk.split_first()
            && ranges > 0
        {
            return Ok((c.is_some() && inside != negated, rest));
        }
        let (low, rest) = set_char(chunk)?;
        chunk = rest;
        let mut high = low;
        if let Some(('-', rest)) = chunk.split_first() {
            (high, chunk) = set_char(rest)?;
        }
        inside |= c.is_some_and(|c| (low..=high).contains(&c));
        ranges += 1;
    }
}

/// One character of a set, perhaps quoted; something must follow it.
fn set_char(chunk: &[char]) -> Result<(char, &[char]), BadPattern> {
    let (first, rest) = chunk.split_first().ok_or(BadPattern)?;
    let (c, rest) = match first {
        '-' | ']' => return Err(BadPattern),
        '\\' => rest.split_first().ok_or(BadPattern)?,
        _ => (first, rest),
    };
    if rest.is_empty() {
        Err(BadPattern)
    } else {
        Ok((*c, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, name: &str, expected: Result<bool, BadPattern>) {
        assert_eq!(match_path(pattern, name), expected, "{pattern} on {name}");
    }

    /// The table of Go's own test.
    #[test]
    fn fits_as_go_does() {
        for (pattern, name, expected) in [
            ("abc", "abc", true),
            ("*", "abc", true),
            ("*c", "abc", true),
            ("a*", "a", true),
            ("a*", "abc", true),
            ("a*", "ab/c", false),
            ("a*/b", "abc/b", true),
            ("a*/b", "a/c/b", false),
            ("a*b*c*d*e*/f", "axbxcxdxe/f", true),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/f", true),
            ("a*b*c*d*e*/f", "axbxcxdxe/xxx/f", false),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/fff", false),
            ("a*b?c*x", "abxbbxdbxebxczzx", true),
            ("a*b?c*x", "abxbbxdbxebxczzy", false),
            ("ab[c]", "abc", true),
            ("ab[b-d]", "abc", true),
            ("ab[e-g]", "abc", false),
            ("ab[^c]", "abc", false),
            ("ab[^b-d]", "abc", false),
            ("ab[^e-g]", "abc", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "ab", false),
            ("a?b", "a☺b", true),
            ("a[^a]b", "a☺b", true),
            ("a???b", "a☺b", false),
            ("a[^a][^a][^a]b", "a☺b", false),
            ("[a-ζ]*", "α", true),
            ("*[a-ζ]", "A", false),
            ("a?b", "a/b", false),
            ("a*b", "a/b", false),
            ("[\\]a]", "]", true),
            ("[\\-]", "-", true),
            ("[x\\-]", "x", true),
            ("[x\\-]", "z", false),
            ("[\\-x]", "a", false),
            ("*x", "xxx", true),
            ("templates/.?*", "templates/.x", true),
        ] {
            check(pattern, name, Ok(expected));
        }
        for (pattern, name) in [
            ("[]a]", "]"),
            ("[-]", "-"),
            ("[x-]", "x"),
            ("[-x]", "x"),
            ("\\", "a"),
            ("[a-b-c]", "a"),
            ("[", "a"),
            ("[^", "a"),
            ("[^bc", "a"),
            ("a[", "a"),
            ("a[", "ab"),
            ("a[", "x"),
            ("a/b[", "x"),
        ] {
            check(pattern, name, Err(BadPattern));
        }
    }
}
