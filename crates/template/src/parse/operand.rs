//! Parsing of commands and their operands.

use super::number::{self, Syntax};
use super::token::{Kind, Token};
use super::{KnownName, MAX_DEPTH, Parse, Parser};
use crate::ast::{Node, NodeId, Span};
use crate::stack;
use mainstay_gostd::quote::{quote, unquote};

impl Parser<'_> {
    /// Parses operands up to a pipe, which is consumed, or to the end of the pipeline, which is not
    /// consumed. `first` has already been consumed.
    pub(super) fn parse_command(&mut self, first: Token) -> Parse<NodeId> {
        let mark = self.pending.len();
        let mut token = first;
        loop {
            if let Some(operand) = self.parse_operand(token)? {
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
        let args = self.take_pending(mark);
        Ok(self.add_node(first.pos, Node::Command(args)))
    }

    /// Parses a term and its fields. `token` has already been consumed. If no term starts with it, it is
    /// put back and the result is `None`.
    fn parse_operand(&mut self, token: Token) -> Parse<Option<NodeId>> {
        let Some(term) = self.parse_term(token)? else {
            return Ok(None);
        };
        let first = self.peek();
        if first.kind != Kind::Field {
            return Ok(Some(term));
        }
        let node = match self.source.node(term) {
            Node::Field(known) => Node::Field(self.parse_fields(known)),
            Node::Variable { name, fields } => Node::Variable {
                name,
                fields: self.parse_fields(fields),
            },
            Node::Bool(_) | Node::String { .. } | Node::Number { .. } | Node::Nil | Node::Dot => {
                while self.peek().kind == Kind::Field {
                    self.next();
                }
                return self.unexpected_field(term);
            }
            _ => Node::Chain {
                base: term,
                fields: self.parse_fields(Span::default()),
            },
        };
        Ok(Some(self.add_node(first.pos, node)))
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

    /// Parses the rest of a field chain. `known` are the names parsed so far, which are the last ones in
    /// the table. Returns the range of all names.
    fn parse_fields(&mut self, known: Span) -> Span {
        let start = self.source.names.len() - known.len();
        while self.peek().kind == Kind::Field {
            let field = self.next();
            self.push_field(field);
        }
        Span::new(start, self.source.names.len())
    }

    fn push_field(&mut self, field: Token) -> Span {
        let name = self.lexer.slice(field.pos + 1, field.end);
        let shared = self.names.intern(name);
        self.source.names.push(shared);
        let end = self.source.names.len();
        Span::new(end - 1, end)
    }

    fn parse_term(&mut self, token: Token) -> Parse<Option<NodeId>> {
        let node = match token.kind {
            Kind::Identifier => self.parse_identifier(token)?,
            Kind::Dot => Node::Dot,
            Kind::Nil => Node::Nil,
            Kind::Variable => self.parse_variable(token)?,
            Kind::Field => Node::Field(self.push_field(token)),
            Kind::Bool => Node::Bool(self.lexer.token_text(token) == b"true"),
            Kind::CharConstant => self.parse_number(token, Syntax::Char)?,
            Kind::Complex => self.parse_number(token, Syntax::Complex)?,
            Kind::Number => self.parse_number(token, Syntax::Plain)?,
            Kind::LeftParen => return self.parse_parenthesized().map(Some),
            Kind::String | Kind::RawString => self.parse_literal(token)?,
            _ => {
                self.backup();
                return Ok(None);
            }
        };
        Ok(Some(self.add_node(token.pos, node)))
    }

    fn parse_identifier(&mut self, token: Token) -> Parse<Node> {
        let (text, functions) = (self.lexer.token_text(token), self.functions);
        let known = self.known_name(text);
        known.function = known.function.or_else(|| functions(text));
        let KnownName {
            number: name,
            function: Some(function),
        } = *known
        else {
            return self.fail(format!("function {} not defined", quote(text)));
        };
        Ok(Node::Identifier { name, function })
    }

    fn parse_variable(&mut self, token: Token) -> Parse<Node> {
        let text = self.lexer.token_text(token);
        let name = self.name_index(text);
        if !self.tree.vars.contains(&name) {
            return self.fail(format!("undefined variable {}", quote(text)));
        }
        Ok(Node::Variable {
            name,
            fields: Span::default(),
        })
    }

    fn parse_number(&mut self, token: Token, syntax: Syntax) -> Parse<Node> {
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

    fn parse_literal(&mut self, token: Token) -> Parse<Node> {
        let Ok(text) = unquote(self.lexer.token_text(token)) else {
            return self.fail("invalid syntax");
        };
        let value = self.add_string(&text);
        Ok(Node::String {
            value,
            start: token.pos,
            end: token.end,
        })
    }

    fn parse_parenthesized(&mut self) -> Parse<NodeId> {
        if self.tree.paren_depth >= MAX_DEPTH {
            return self.fail("max expression depth exceeded");
        }
        self.tree.paren_depth += 1;
        let pipe = stack::ensure_stack(|| self.parse_pipeline("parenthesized pipeline", Kind::RightParen));
        self.tree.paren_depth -= 1;
        pipe
    }
}
