//! Shell patterns for slash-separated paths (`path.Match`, and `filepath.Match` on Unix).

/// The pattern is malformed (`path.ErrBadPattern`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct BadPattern;

/// Reports whether the whole of `name` matches `pattern`: `*` and `?` do not match a slash, `[a-z]` and
/// `[^a-z]` are character sets, `\` escapes.
pub fn match_path(pattern: &str, name: &str) -> Result<bool, BadPattern> {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    match_runes(&pattern, &name)
}

fn match_runes(mut pattern: &[char], mut name: &[char]) -> Result<bool, BadPattern> {
    while !pattern.is_empty() {
        let (star, chunk, rest) = next_chunk(pattern);
        pattern = rest;
        if star && chunk.is_empty() {
            return Ok(!name.contains(&'/'));
        }
        match match_chunk(chunk, name)? {
            Some(left) if left.is_empty() || !pattern.is_empty() => {
                name = left;
                continue;
            }
            _ if !star => return validate_rest(pattern),
            _ => {}
        }
        match match_after_star(chunk, pattern, name)? {
            Some(left) => name = left,
            None => return validate_rest(pattern),
        }
    }
    Ok(name.is_empty())
}

/// Matches `chunk` after a star. Extends the match of the star by one character at a time, but not beyond a
/// slash. Returns the rest of `name`, or `None` if `chunk` does not match. `pattern` is the text after
/// `chunk`; if it is empty, the rest of `name` must be empty, too.
fn match_after_star<'n>(
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
        match match_chunk(chunk, from)? {
            Some(left) if pattern.is_empty() && !left.is_empty() => {}
            Some(left) => return Ok(Some(left)),
            None => {}
        }
    }
    Ok(None)
}

/// Validates the rest of a pattern that does not match. Returns `false`, or an error if it is malformed.
fn validate_rest(mut pattern: &[char]) -> Result<bool, BadPattern> {
    while !pattern.is_empty() {
        let (_, chunk, rest) = next_chunk(pattern);
        pattern = rest;
        match_chunk(chunk, &[])?;
    }
    Ok(false)
}

/// Splits off the next chunk of `pattern`. Returns whether stars precede it, the text up to the next
/// star, and the rest.
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

/// Matches the start of `name` against `chunk`, which contains no star. Returns the rest of `name`, or
/// `None` after a mismatch. Continues after a mismatch to detect malformed sets.
fn match_chunk<'n>(mut chunk: &[char], mut name: &'n [char]) -> Result<Option<&'n [char]>, BadPattern> {
    let mut failed = false;
    while let Some((first, rest)) = chunk.split_first() {
        failed |= name.is_empty();
        let next = if failed {
            None
        } else {
            name.split_first().map(|(c, rest)| (*c, rest))
        };
        chunk = rest;
        let matches = match first {
            '[' => {
                let (in_set, rest) = match_set(chunk, next.map(|(c, _)| c))?;
                chunk = rest;
                in_set
            }
            '?' => next.is_some_and(|(c, _)| c != '/'),
            '\\' => {
                let (quoted, rest) = chunk.split_first().ok_or(BadPattern)?;
                chunk = rest;
                next.is_some_and(|(c, _)| c == *quoted)
            }
            literal => next.is_some_and(|(c, _)| c == *literal),
        };
        failed |= !matches;
        name = next.map_or(name, |(_, rest)| rest);
    }
    Ok((!failed).then_some(name))
}

/// Matches `c` against the character set that starts after its `[`. Returns whether the set contains `c`,
/// and the text after the closing `]`.
fn match_set(chunk: &[char], c: Option<char>) -> Result<(bool, &[char]), BadPattern> {
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
        let (low, rest) = parse_set_char(chunk)?;
        chunk = rest;
        let mut high = low;
        if let Some(('-', rest)) = chunk.split_first() {
            (high, chunk) = parse_set_char(rest)?;
        }
        inside |= c.is_some_and(|c| (low..=high).contains(&c));
        ranges += 1;
    }
}

/// Parses one character of a set, possibly escaped. Fails if it is the last character of `chunk`.
fn parse_set_char(chunk: &[char]) -> Result<(char, &[char]), BadPattern> {
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

    /// Contains the table of Go's `TestMatch`.
    #[test]
    fn patterns_match_as_in_go() {
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
