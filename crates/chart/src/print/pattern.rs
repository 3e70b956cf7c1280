//! Go's `filepath.Match`: takes a pattern and a path, says whether all of the path fits. A malformed pattern fits nothing.

/// Whether `path` fits `pattern`.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let Some(nodes) = parse(pattern) else { return false };
    let text: Vec<char> = path.chars().collect();
    let mut at = vec![false; text.len() + 1];
    if let Some(first) = at.first_mut() {
        *first = true;
    }
    nodes
        .iter()
        .fold(at, |at, node| step(node, &text, &at))
        .last()
        .copied()
        .unwrap_or(false)
}

enum Node {
    Char(char),
    Any,
    Star,
    Class { not: bool, ranges: Vec<(char, char)> },
}

fn parse(pattern: &str) -> Option<Vec<Node>> {
    let mut chars = pattern.chars().peekable();
    let mut nodes = Vec::new();
    while let Some(c) = chars.next() {
        nodes.push(match c {
            '*' => Node::Star,
            '?' => Node::Any,
            '\\' => Node::Char(chars.next()?),
            '[' => class(&mut chars)?,
            other => Node::Char(other),
        });
    }
    Some(nodes)
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn class(chars: &mut Chars<'_>) -> Option<Node> {
    let not = chars.next_if_eq(&'^').is_some();
    let mut ranges = Vec::new();
    while ranges.is_empty() || *chars.peek()? != ']' {
        let low = class_char(chars)?;
        let high = if chars.next_if_eq(&'-').is_some() {
            class_char(chars)?
        } else {
            low
        };
        ranges.push((low, high));
    }
    chars.next();
    Some(Node::Class { not, ranges })
}

fn class_char(chars: &mut Chars<'_>) -> Option<char> {
    match chars.next()? {
        '-' | ']' => None,
        '\\' => chars.next(),
        c => Some(c),
    }
}

/// Where the node can end, from every position where it can begin.
fn step(node: &Node, text: &[char], at: &[bool]) -> Vec<bool> {
    if matches!(node, Node::Star) {
        let mut open = false;
        let before = std::iter::once(None).chain(text.iter().map(Some));
        return at
            .iter()
            .zip(before)
            .map(|(here, before)| {
                open = *here || (open && before.is_some_and(|c| *c != '/'));
                open
            })
            .collect();
    }
    let fits = |c: char| match node {
        Node::Char(wanted) => c == *wanted,
        Node::Any => c != '/',
        Node::Class { not, ranges } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *not,
        Node::Star => false,
    };
    std::iter::once(false)
        .chain(text.iter().zip(at).map(|(c, here)| *here && fits(*c)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_go() {
        let check = |pattern: &str, path: &str, expected: bool| {
            assert_eq!(matches(pattern, path), expected, "{pattern} on {path}");
        };
        check("templates/*.yaml", "templates/a.yaml", true);
        check("templates/*", "templates/a/b.yaml", false);
        check("templates/?.yaml", "templates/a.yaml", true);
        check("templates/[a-c].yaml", "templates/b.yaml", true);
        check("templates/[^a-c].yaml", "templates/b.yaml", false);
        check("a\\*", "a*", true);
        check("[]a]", "a", false);
        check("[-]", "-", false);
        check("[a", "a", false);
        check("a\\", "a", false);
        check("**", "a/b", false);
    }
}
