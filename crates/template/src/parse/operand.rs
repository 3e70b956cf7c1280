//! Commands and their operands.

use super::number::{self, Syntax};
use super::token::{Kind, Token};
use super::{Known, MAX_DEPTH, Parse, Parser};
use crate::ast::{Node, NodeId, Span};
use crate::stack;
use mainstay_gostd::quote::{quote, unquote};

impl Parser<'_> {
    /// Parses operands up to a pipe, which is consumed, or to the end of the pipeline, which is not. `first`
    /// has been consumed.
    pub(super) fn command(&mut self, first: Token) -> Parse<NodeId> {
        let mark = self.pending.len();
        let mut token = first;
        loop {
            if let Some(operand) = self.operand(token)? {
                self.pending.push(operand);
            }
            token = self.next();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelim | Kind::RightParen => {
                    self.backup();
                    break;
                }
                Kind::Pipe => break,
                _ => return self.unexpected(token, "operand"),
            }
            token = self.next_non_space();
        }
        if self.pending.len() == mark {
            return self.fail("empty command");
        }
        let args = self.span(mark);
        Ok(self.node(first.pos, Node::Command(args)))
    }

    /// Parses a term and its fields; `None` if `token`, which has been consumed, starts none: then it is put
    /// back.
    fn operand(&mut self, token: Token) -> Parse<Option<NodeId>> {
        let Some(term) = self.term(token)? else {
            return Ok(None);
        };
        let first = self.peek();
        if first.kind != Kind::Field {
            return Ok(Some(term));
        }
        let node = match self.source.node(term) {
            Node::Field(known) => Node::Field(self.fields(known)),
            Node::Variable { name, fields } => Node::Variable {
                name,
                fields: self.fields(fields),
            },
            Node::Bool(_) | Node::String { .. } | Node::Number { .. } | Node::Nil | Node::Dot => {
                while self.peek().kind == Kind::Field {
                    self.next();
                }
                return self.unexpected_field(term);
            }
            _ => Node::Chain {
                of: term,
                fields: self.fields(Span::default()),
            },
        };
        Ok(Some(self.node(first.pos, node)))
    }

    fn unexpected_field<T>(&self, term: NodeId) -> Parse<T> {
        let shown = match self.source.node(term) {
            Node::Number { start, end, .. } | Node::String { start, end, .. } => {
                String::from_utf8_lossy(self.lexer.slice(start, end)).into_owned()
            }
            _ => self.source.show(term),
        };
        self.fail(format!("unexpected . after term {}", quote(shown)))
    }

    /// Returns the names of a field chain, after those already parsed, which are the last in the table.
    fn fields(&mut self, known: Span) -> Span {
        let start = self.source.names.len() - known.len();
        while self.peek().kind == Kind::Field {
            let field = self.next();
            self.push_field(field);
        }
        Span::new(start, self.source.names.len())
    }

    fn push_field(&mut self, field: Token) -> Span {
        let name = self.lexer.slice(field.pos + 1, field.end);
        let shared = self.names.share(name);
        self.source.names.push(shared);
        let end = self.source.names.len();
        Span::new(end - 1, end)
    }

    fn term(&mut self, token: Token) -> Parse<Option<NodeId>> {
        let node = match token.kind {
            Kind::Identifier => self.identifier(token)?,
            Kind::Dot => Node::Dot,
            Kind::Nil => Node::Nil,
            Kind::Variable => self.variable(token)?,
            Kind::Field => Node::Field(self.push_field(token)),
            Kind::Bool => Node::Bool(self.lexer.token_text(token) == b"true"),
            Kind::CharConstant => self.number(token, Syntax::Char)?,
            Kind::Complex => self.number(token, Syntax::Complex)?,
            Kind::Number => self.number(token, Syntax::Plain)?,
            Kind::LeftParen => return self.parenthesized().map(Some),
            Kind::String | Kind::RawString => self.literal(token)?,
            _ => {
                self.backup();
                return Ok(None);
            }
        };
        Ok(Some(self.node(token.pos, node)))
    }

    fn identifier(&mut self, token: Token) -> Parse<Node> {
        let (text, functions) = (self.lexer.token_text(token), self.functions);
        let known = self.known(text);
        known.function = known.function.or_else(|| functions(text));
        let Known {
            number: name,
            function: Some(function),
        } = *known
        else {
            return self.fail(format!("function {} not defined", quote(text)));
        };
        Ok(Node::Identifier { name, function })
    }

    fn variable(&mut self, token: Token) -> Parse<Node> {
        let text = self.lexer.token_text(token);
        let name = self.name(text);
        if !self.tree.vars.contains(&name) {
            return self.fail(format!("undefined variable {}", quote(text)));
        }
        Ok(Node::Variable {
            name,
            fields: Span::default(),
        })
    }

    fn number(&mut self, token: Token, syntax: Syntax) -> Parse<Node> {
        let number = match number::parse(self.lexer.token_text(token), syntax) {
            Ok(number) => number,
            Err(error) => return self.fail(error.to_string()),
        };
        self.source.numbers.push(number);
        let number = (self.source.numbers.len() - 1) as u32;
        Ok(Node::Number {
            number,
            start: token.pos,
            end: token.end,
        })
    }

    fn literal(&mut self, token: Token) -> Parse<Node> {
        let Ok(text) = unquote(self.lexer.token_text(token)) else {
            return self.fail("invalid syntax");
        };
        let value = self.string(&text);
        Ok(Node::String {
            value,
            start: token.pos,
            end: token.end,
        })
    }

    fn parenthesized(&mut self) -> Parse<NodeId> {
        if self.tree.paren_depth >= MAX_DEPTH {
            return self.fail("max expression depth exceeded");
        }
        self.tree.paren_depth += 1;
        let pipe = stack::ensure_stack(|| self.pipeline("parenthesized pipeline", Kind::RightParen));
        self.tree.paren_depth -= 1;
        pipe
    }
}
