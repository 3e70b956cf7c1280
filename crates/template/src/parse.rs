//! Parsing of template text into a [`Source`] with one root per template. Errors have Go's text.

mod action;
mod lex;
mod number;
mod operand;
mod token;

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Node, NodeId, Source, Span};
use crate::error::{Error, Position};
use crate::names::{BuildNameHasher, InternedNames};
use crate::stack;
use crate::string::Str;
use lex::Lexer;
use mainstay_gostd::quote::{quote, unquote};
pub(crate) use number::Number;
use token::{Kind, Token};

/// Maximum nesting of blocks. Parentheses have Go's own limit, which has the same value.
const MAX_DEPTH: u32 = 10_000;

/// Definitions of one text: the roots by name. The template of the text itself is last.
#[derive(Clone)]
pub(crate) struct Parsed {
    /// Name under which the text was parsed.
    pub(crate) name: Arc<str>,
    pub(crate) source: Arc<Source>,
    pub(crate) templates: Vec<(Arc<str>, NodeId)>,
    /// Root of the text itself. By Go's rules, it may be missing in `templates`.
    pub(crate) main: NodeId,
    /// Whether the text contains no definition with its own name.
    is_own_name_free: bool,
}

/// Returns the index of the function with the given name.
pub(crate) type FindFunction<'a> = &'a dyn Fn(&[u8]) -> Option<u32>;

/// Parses `text` as the template `name`. `names` contains the interned names of earlier texts.
pub(crate) fn parse(
    name: &str,
    text: &Arc<[u8]>,
    functions: FindFunction<'_>,
    names: &mut InternedNames,
) -> Result<Parsed, Error> {
    let mut lexer = Lexer::new(text);
    lexer.break_ok = functions(b"break").is_none();
    lexer.continue_ok = functions(b"continue").is_none();
    let mut parser = Parser {
        lexer,
        name: Arc::from(name),
        source: Source::with_capacity(text.len()),
        functions,
        tree: Tree::new(),
        templates: Vec::new(),
        by_name: HashMap::default(),
        names,
        known: HashMap::default(),
        pending: Vec::with_capacity(32),
        depth: 0,
    };
    let main = parser.parse_whole()?;
    let is_own_name_free = !parser.by_name.contains_key(name);
    parser.add_template(Arc::clone(&parser.name), main)?;
    let Parser {
        name,
        mut source,
        templates,
        ..
    } = parser;
    source.text = Arc::clone(text);
    Ok(Parsed {
        name,
        source: Arc::new(source),
        templates,
        main,
        is_own_name_free,
    })
}

impl Parsed {
    /// Returns the result of parsing the same text as the template `name`, or `None` if the text contains a
    /// definition with the old or the new name.
    pub(crate) fn under_name(&self, name: &str) -> Option<Self> {
        if !self.is_own_name_free || self.templates.iter().any(|(known, _)| **known == *name) {
            return None;
        }
        let name: Arc<str> = Arc::from(name);
        let mut templates = self.templates.clone();
        if let Some((last, _)) = templates.last_mut() {
            *last = Arc::clone(&name);
        }
        Some(Self {
            name,
            source: Arc::clone(&self.source),
            templates,
            main: self.main,
            is_own_name_free: true,
        })
    }
}

/// State that Go keeps for each template during parsing, including its lookahead, so that the line numbers
/// of errors are equal.
struct Tree {
    token: [Token; 3],
    peeked: usize,
    /// Variables in scope, by the index of their name.
    vars: Vec<u32>,
    /// Line of the current action; 0 outside of actions.
    action_line: u32,
    range_depth: u32,
    paren_depth: u32,
}

impl Tree {
    fn new() -> Self {
        Self {
            token: [Token::NONE; 3],
            peeked: 0,
            vars: vec![0],
            action_line: 0,
            range_depth: 0,
            paren_depth: 0,
        }
    }
}

struct Parser<'a> {
    name: Arc<str>,
    lexer: Lexer<'a>,
    source: Source,
    functions: FindFunction<'a>,
    tree: Tree,
    templates: Vec<(Arc<str>, NodeId)>,
    by_name: HashMap<Arc<str>, usize, BuildNameHasher>,
    names: &'a mut InternedNames,
    /// Names of variables and functions so far.
    known: HashMap<&'a [u8], KnownName, BuildNameHasher>,
    /// Children of the nodes that are being parsed, innermost last.
    pending: Vec<NodeId>,
    depth: u32,
}

/// A known name.
#[derive(Clone, Copy)]
struct KnownName {
    /// Index in `source.names`.
    number: u32,
    /// Index of the function with this name, after the first lookup.
    function: Option<u32>,
}

/// Token that ended a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    End,
    Else,
}

impl Stop {
    fn describe(self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

/// A node, or the token that ends the enclosing list.
enum Item {
    Node(NodeId),
    Stop(Stop, u32),
}

type Parse<T> = Result<T, Error>;

impl<'a> Parser<'a> {
    fn next(&mut self) -> Token {
        if self.tree.peeked == 0 {
            let token = self.lexer.next_token();
            self.tree.token[0] = token;
            return token;
        }
        self.tree.peeked -= 1;
        self.tree
            .token
            .get(self.tree.peeked)
            .copied()
            .unwrap_or(Token::NONE)
    }

    fn backup(&mut self) {
        self.tree.peeked += 1;
    }

    fn backup2(&mut self, first: Token) {
        self.tree.token[1] = first;
        self.tree.peeked = 2;
    }

    fn backup3(&mut self, first: Token, second: Token) {
        self.tree.token[1] = second;
        self.tree.token[2] = first;
        self.tree.peeked = 3;
    }

    fn peek(&mut self) -> Token {
        if self.tree.peeked == 0 {
            let token = self.lexer.next_token();
            self.tree.peeked = 1;
            self.tree.token[0] = token;
            return token;
        }
        self.tree
            .token
            .get(self.tree.peeked - 1)
            .copied()
            .unwrap_or(Token::NONE)
    }

    fn next_non_space(&mut self) -> Token {
        if self.tree.peeked == 0 {
            self.lexer.skip_space();
        }
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.backup();
        token
    }

    fn fail<T>(&self, message: impl AsRef<str>) -> Parse<T> {
        let line = self.tree.token[0].line;
        let name = &self.name;
        Err(Error {
            text: format!("template: {name}:{line}: {}", message.as_ref()),
            at: vec![Position {
                template: name.to_string(),
                line,
                column: None,
            }],
            limit_exceeded: None,
        })
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parse<Token> {
        let token = self.next_non_space();
        if token.kind == kind {
            Ok(token)
        } else {
            self.unexpected(token, context)
        }
    }

    fn unexpected<T>(&self, token: Token, context: &str) -> Parse<T> {
        if token.kind != Kind::Error {
            let shown = token.describe(self.lexer.token_text(token));
            return self.fail(format!("unexpected {shown} in {context}"));
        }
        let (error, line) = (&self.lexer.error, self.tree.action_line);
        if line == 0 || line == token.line {
            return self.fail(error);
        }
        let inside = if error.ends_with(" action") {
            ""
        } else {
            " in action"
        };
        self.fail(format!("{error}{inside} started at {}:{line}", self.name))
    }

    fn add_node(&mut self, pos: u32, node: Node) -> NodeId {
        self.source.nodes.push(node);
        self.source.positions.push(pos);
        (self.source.nodes.len() - 1) as NodeId
    }

    /// Creates a range with the entries of `pending` since `mark` as the children of one node.
    fn take_pending(&mut self, mark: usize) -> Span {
        let start = self.source.children.len();
        self.source.children.extend(self.pending.drain(mark..));
        Span::new(start, self.source.children.len())
    }

    fn add_list(&mut self, pos: u32, mark: usize) -> NodeId {
        let span = self.take_pending(mark);
        self.add_node(pos, Node::List(span))
    }

    /// Returns the index of a name. Equal names have the same index.
    fn name_index(&mut self, name: &'a [u8]) -> u32 {
        self.known_name(name).number
    }

    fn known_name(&mut self, name: &'a [u8]) -> &mut KnownName {
        self.known.entry(name).or_insert_with(|| {
            self.source.names.push(self.names.intern(name));
            KnownName {
                number: (self.source.names.len() - 1) as u32,
                function: None,
            }
        })
    }

    fn add_string(&mut self, text: &[u8]) -> u32 {
        self.source.strings.push(Str::from(text));
        (self.source.strings.len() - 1) as u32
    }

    /// Parses the whole text: a list of nodes that may also contain definitions.
    fn parse_whole(&mut self) -> Parse<NodeId> {
        self.name_index(b"$");
        let pos = self.peek().pos;
        let mark = self.pending.len();
        while self.peek().kind != Kind::Eof {
            if self.peek().kind == Kind::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == Kind::Define {
                    self.parse_definition()?;
                    continue;
                }
                self.backup2(delim);
            }
            let token = self.next_non_space();
            match self.parse_text_or_action(token)? {
                Item::Node(node) => self.pending.push(node),
                Item::Stop(stop, _) => return self.fail(format!("unexpected {}", stop.describe())),
            }
        }
        Ok(self.add_list(pos, mark))
    }

    fn parse_definition(&mut self) -> Parse<()> {
        const CONTEXT: &str = "define clause";
        let outer = std::mem::replace(&mut self.tree, Tree::new());
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        self.expect(Kind::RightDelim, CONTEXT)?;
        let (root, stop, _) = self.parse_item_list()?;
        if stop != Stop::End {
            return self.fail(format!("unexpected {} in {CONTEXT}", stop.describe()));
        }
        self.add_template(name, root)?;
        self.tree = outer;
        Ok(())
    }

    fn template_name(&mut self, token: Token, context: &str) -> Parse<Arc<str>> {
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(token, context);
        }
        match unquote(self.lexer.token_text(token)) {
            Ok(name) => Ok(Arc::from(String::from_utf8_lossy(&name).as_ref())),
            Err(_) => self.fail("invalid syntax"),
        }
    }

    /// Adds a template. A name may be defined only once within one text, except for blank definitions.
    fn add_template(&mut self, name: Arc<str>, root: NodeId) -> Parse<()> {
        let Some(&index) = self.by_name.get(&name) else {
            self.by_name.insert(Arc::clone(&name), self.templates.len());
            self.templates.push((name, root));
            return Ok(());
        };
        let known = self.templates.get(index).map_or(root, |(_, known)| *known);
        if self.is_blank(known) {
            if let Some(entry) = self.templates.get_mut(index) {
                entry.1 = root;
            }
            return Ok(());
        }
        if self.is_blank(root) {
            return Ok(());
        }
        self.fail(format!(
            "template: multiple definition of template {}",
            quote(name.as_bytes())
        ))
    }

    fn is_blank(&self, root: NodeId) -> bool {
        let Node::List(items) = self.source.node(root) else {
            return false;
        };
        self.source
            .children(items)
            .iter()
            .all(|&item| match self.source.node(item) {
                Node::Text { start, end } => crate::ast::is_blank(self.lexer.slice(start, end)),
                _ => false,
            })
    }

    /// Parses nodes up to `end` or `else`. Returns the list, that token and its position.
    fn parse_item_list(&mut self) -> Parse<(NodeId, Stop, u32)> {
        if self.depth >= MAX_DEPTH {
            return self.fail("max block depth exceeded");
        }
        self.depth += 1;
        let list = stack::ensure_stack(|| self.parse_items());
        self.depth -= 1;
        list
    }

    fn parse_items(&mut self) -> Parse<(NodeId, Stop, u32)> {
        let pos = self.peek_non_space().pos;
        let mark = self.pending.len();
        loop {
            let token = self.next_non_space();
            if token.kind == Kind::Eof {
                return self.fail("unexpected EOF");
            }
            match self.parse_text_or_action(token)? {
                Item::Node(node) => self.pending.push(node),
                Item::Stop(stop, at) => return Ok((self.add_list(pos, mark), stop, at)),
            }
        }
    }

    /// Parses a node or an end token. `token` has already been consumed.
    fn parse_text_or_action(&mut self, token: Token) -> Parse<Item> {
        match token.kind {
            Kind::Text => {
                let (start, end) = (token.pos, token.end);
                Ok(Item::Node(self.add_node(start, Node::Text { start, end })))
            }
            Kind::LeftDelim => {
                self.tree.action_line = token.line;
                let item = self.parse_action();
                self.tree.action_line = 0;
                item
            }
            _ => self.unexpected(token, "input"),
        }
    }
}
