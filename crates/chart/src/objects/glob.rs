//! Glob patterns of `.Files.Glob`. The separator is `/`, which is also matched by `**`.

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Glob(Vec<Node>);

#[derive(Debug)]
enum Node {
    Char(char),
    /// `?`: one character except the separator.
    AnyChar,
    /// `*`: any number of characters except the separator.
    AnyChars,
    /// `**`: any number of any characters.
    AnyPath,
    /// `[…]`: a character of a class, which may include the separator.
    Class {
        negated: bool,
        class: Class,
    },
    /// `{a,b}`: alternatives.
    Alternatives(Vec<Vec<Node>>),
}

#[derive(Debug)]
enum Class {
    Range(char, char),
    List(Vec<char>),
}

/// Maximum nesting of braces.
const MAX_DEPTH: usize = 64;

impl Glob {
    /// Compiles a pattern. Returns `None` if it is malformed.
    pub(super) fn new(pattern: &str) -> Option<Self> {
        let mut parser = Parser {
            chars: pattern.chars().collect(),
            at: 0,
            depth: 0,
        };
        let nodes = parser.parse_sequence()?;
        Some(Self(nodes))
    }

    /// Returns a pattern that matches all paths, which Helm uses in place of malformed patterns.
    pub(super) fn match_all() -> Self {
        Self(vec![Node::AnyPath])
    }

    /// Whether the pattern matches the whole `path`.
    pub(super) fn matches(&self, path: &str) -> bool {
        let text: Vec<char> = path.chars().collect();
        let mut at = vec![false; text.len() + 1];
        if let Some(first) = at.first_mut() {
            *first = true;
        }
        advance(&self.0, &text, at).last().copied().unwrap_or(false)
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied()?;
        self.at += 1;
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn accept(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Parses nodes up to the end of the pattern, or up to a comma or closing brace inside braces.
    fn parse_sequence(&mut self) -> Option<Vec<Node>> {
        let mut nodes = Vec::new();
        while let Some(c) = self.peek() {
            if self.depth > 0 && matches!(c, ',' | '}') {
                break;
            }
            self.at += 1;
            nodes.push(match c {
                '*' if self.accept('*') => Node::AnyPath,
                '*' => Node::AnyChars,
                '?' => Node::AnyChar,
                '[' => self.parse_class()?,
                '{' => self.parse_alternatives()?,
                '\\' => match self.next() {
                    Some(escaped) => Node::Char(escaped),
                    None => break,
                },
                other => Node::Char(other),
            });
        }
        Some(nodes)
    }

    /// Parses alternatives. Missing closing braces are implied at the end.
    fn parse_alternatives(&mut self) -> Option<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut branches = vec![self.parse_sequence()?];
        while self.accept(',') {
            branches.push(self.parse_sequence()?);
        }
        self.accept('}');
        self.depth -= 1;
        Some(Node::Alternatives(branches))
    }

    fn parse_class(&mut self) -> Option<Node> {
        let negated = self.accept('!');
        let low = self.next()?;
        let class = if self.accept('-') {
            let high = self.next()?;
            if high < low {
                return None;
            }
            Class::Range(low, high)
        } else {
            self.at -= 1;
            self.parse_class_list()?
        };
        self.accept(']').then_some(Node::Class { negated, class })
    }

    fn parse_class_list(&mut self) -> Option<Class> {
        let mut chars = Vec::new();
        while self.peek()? != ']' {
            match self.next()? {
                '\\' => chars.push(self.next()?),
                c => chars.push(c),
            }
        }
        (!chars.is_empty()).then_some(Class::List(chars))
    }
}

/// Returns the end positions of matches of `nodes` that start at any position marked in `at`. Linear in
/// text and pattern.
fn advance(nodes: &[Node], text: &[char], at: Vec<bool>) -> Vec<bool> {
    nodes.iter().fold(at, |at, node| advance_node(node, text, at))
}

fn advance_node(node: &Node, text: &[char], at: Vec<bool>) -> Vec<bool> {
    match node {
        Node::AnyChars => match_any_number(text, at, |c| c != '/'),
        Node::AnyPath => match_any_number(text, at, |_| true),
        Node::Char(wanted) => match_one(text, &at, |c| c == *wanted),
        Node::AnyChar => match_one(text, &at, |c| c != '/'),
        Node::Class { negated, class } => match_one(text, &at, |c| class.contains(c) != *negated),
        Node::Alternatives(branches) => {
            let ends = branches.iter().map(|branch| advance(branch, text, at.clone()));
            ends.reduce(|a, b| a.iter().zip(&b).map(|(a, b)| *a || *b).collect())
                .unwrap_or(at)
        }
    }
}

fn match_one(text: &[char], at: &[bool], fits: impl Fn(char) -> bool) -> Vec<bool> {
    std::iter::once(false)
        .chain(text.iter().zip(at).map(|(c, here)| *here && fits(*c)))
        .collect()
}

fn match_any_number(text: &[char], mut at: Vec<bool>, fits: impl Fn(char) -> bool) -> Vec<bool> {
    let mut open = false;
    for (index, here) in at.iter_mut().enumerate() {
        let before = index.checked_sub(1).and_then(|before| text.get(before));
        open = *here || (open && before.is_some_and(|c| fits(*c)));
        *here = open;
    }
    at
}

impl Class {
    fn contains(&self, c: char) -> bool {
        match self {
            Self::Range(low, high) => (*low..=*high).contains(&c),
            Self::List(chars) => chars.contains(&c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_helm() {
        let check = |pattern: &str, path: &str, expected: bool| {
            let glob = Glob::new(pattern).unwrap_or_else(Glob::match_all);
            assert_eq!(glob.matches(path), expected, "{pattern} on {path}");
        };
        check("*", "a.txt", true);
        check("*", "d/a.txt", false);
        check("**", "d/a.txt", true);
        check("d/*", "d/a.txt", true);
        check("d/**.txt", "d/e/a.txt", true);
        check("d/**.txt", "d/e/a.yaml", false);
        check("?.txt", "a.txt", true);
        check("?.txt", "ab.txt", false);
        check("[a-c].txt", "b.txt", true);
        check("[!a-c].txt", "b.txt", false);
        check("[abd].txt", "d.txt", true);
        check("{a,b/*}.txt", "b/x.txt", true);
        check("{a,b/*}.txt", "c.txt", false);
        check("a\\*", "a*", true);
        check("a\\*", "ab", false);
        check("[", "anything/at/all", true);
        check("[c-a]", "anything/at/all", true);
        check("", "", true);
        check("", "a", false);
    }

    #[test]
    fn hostile_patterns_are_fast_or_rejected() {
        assert!(Glob::new(&"{".repeat(100)).is_none());
        let stars = "*a".repeat(500);
        assert!(!Glob::new(&stars).unwrap().matches(&"a".repeat(400)));
    }
}
