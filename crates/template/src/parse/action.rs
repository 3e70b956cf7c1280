//! Parsing of actions down to the pipeline: control structures and lists of commands.

use std::sync::Arc;

use super::token::{Kind, Token};
use super::{Item, Parse, Parser, Stop, Tree};
use crate::ast::{Branch, Node, NodeId, Span};

impl Parser<'_> {
    /// Parses an action. Its left delimiter has already been consumed.
    pub(super) fn parse_action(&mut self) -> Parse<Item> {
        let token = self.next_non_space();
        let node = match token.kind {
            Kind::Block => self.parse_block()?,
            Kind::Break => self.parse_jump(token, Node::Break, "{{break}}")?,
            Kind::Continue => self.parse_jump(token, Node::Continue, "{{continue}}")?,
            Kind::Else => return self.parse_else(),
            Kind::End => return Ok(Item::Stop(Stop::End, self.expect(Kind::RightDelim, "end")?.pos)),
            Kind::If => self.parse_branch(Branch::If)?,
            Kind::Range => self.parse_branch(Branch::Range)?,
            Kind::Template => self.parse_template()?,
            Kind::With => self.parse_branch(Branch::With)?,
            _ => {
                let pipe = self.parse_pipeline_from(token, "command", Kind::RightDelim)?;
                self.add_node(token.pos, Node::Action { pipe })
            }
        };
        Ok(Item::Node(node))
    }

    fn parse_jump(&mut self, keyword: Token, node: Node, shown: &str) -> Parse<NodeId> {
        let token = self.next_non_space();
        if token.kind != Kind::RightDelim {
            return self.unexpected(token, shown);
        }
        if self.tree.range_depth == 0 {
            return self.fail(format!("{shown} outside {{{{range}}}}"));
        }
        Ok(self.add_node(keyword.pos, node))
    }

    /// Parses the rest of an `else` action. After `else if` and `else with`, the keyword is not consumed,
    /// because the branch parses it.
    fn parse_else(&mut self) -> Parse<Item> {
        let next = self.peek_non_space();
        if matches!(next.kind, Kind::If | Kind::With) {
            return Ok(Item::Stop(Stop::Else, next.pos));
        }
        Ok(Item::Stop(Stop::Else, self.expect(Kind::RightDelim, "else")?.pos))
    }

    fn parse_branch(&mut self, kind: Branch) -> Parse<NodeId> {
        let scope = self.tree.vars.len();
        let context = match kind {
            Branch::If => "if",
            Branch::With => "with",
            Branch::Range => "range",
        };
        let pipe = self.parse_pipeline(context, Kind::RightDelim)?;
        let is_range = u32::from(kind == Branch::Range);
        self.tree.range_depth += is_range;
        let (list, stop, at) = self.parse_item_list()?;
        self.tree.range_depth -= is_range;
        let otherwise = if stop == Stop::Else {
            Some(self.parse_else_list(kind, at)?)
        } else {
            None
        };
        self.tree.vars.truncate(scope);
        let pos = self.source.positions.get(pipe as usize).copied().unwrap_or(0);
        Ok(self.add_node(
            pos,
            Node::Branch {
                kind,
                pipe,
                list,
                otherwise,
            },
        ))
    }

    fn parse_else_list(&mut self, kind: Branch, at: u32) -> Parse<NodeId> {
        let chained = match kind {
            Branch::If => self.peek().kind == Kind::If,
            Branch::With => self.peek().kind == Kind::With,
            Branch::Range => false,
        };
        if chained {
            self.next();
            let branch = self.parse_nested_branch(kind)?;
            let mark = self.pending.len();
            self.pending.push(branch);
            return Ok(self.add_list(at, mark));
        }
        let (list, stop, _) = self.parse_item_list()?;
        if stop != Stop::End {
            return self.fail(format!("expected end; found {}", stop.describe()));
        }
        Ok(list)
    }

    fn parse_nested_branch(&mut self, kind: Branch) -> Parse<NodeId> {
        if self.depth >= super::MAX_DEPTH {
            return self.fail("max block depth exceeded");
        }
        self.depth += 1;
        let branch = crate::stack::ensure_stack(|| self.parse_branch(kind));
        self.depth -= 1;
        branch
    }

    fn parse_block(&mut self) -> Parse<NodeId> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        let pipe = self.parse_pipeline(CONTEXT, Kind::RightDelim)?;
        let outer = std::mem::replace(&mut self.tree, Tree::new());
        let (root, stop, _) = self.parse_item_list()?;
        let inner = std::mem::replace(&mut self.tree, outer);
        if stop != Stop::End {
            return self.fail(format!("unexpected {} in {CONTEXT}", stop.describe()));
        }
        let outer = std::mem::replace(&mut self.tree, inner);
        self.add_template(Arc::clone(&name), root)?;
        self.tree = outer;
        let name = self.add_string(name.as_bytes());
        Ok(self.add_node(
            token.pos,
            Node::Template {
                name,
                pipe: Some(pipe),
            },
        ))
    }

    fn parse_template(&mut self) -> Parse<NodeId> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != Kind::RightDelim {
            self.backup();
            pipe = Some(self.parse_pipeline(CONTEXT, Kind::RightDelim)?);
        }
        let name = self.add_string(name.as_bytes());
        Ok(self.add_node(token.pos, Node::Template { name, pipe }))
    }

    /// Parses declarations, then commands up to `end`.
    pub(super) fn parse_pipeline(&mut self, context: &str, end: Kind) -> Parse<NodeId> {
        let first = self.next_non_space();
        self.parse_pipeline_from(first, context, end)
    }

    /// Parses a pipeline. Its token `first` has already been consumed.
    fn parse_pipeline_from(&mut self, first: Token, context: &str, end: Kind) -> Parse<NodeId> {
        let pos = first.pos;
        let mark = self.pending.len();
        let (mut token, mut assign) = (first, false);
        if first.kind == Kind::Variable {
            self.backup();
            assign = self.parse_declarations(context)?;
            token = self.next_non_space();
        }
        let decl = self.take_pending(mark);
        loop {
            match token.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    let command = self.parse_command(token)?;
                    self.pending.push(command);
                }
                _ => return self.unexpected(token, context),
            }
            token = self.next_non_space();
        }
        self.check_pipeline(mark, context)?;
        let cmds = self.take_pending(mark);
        Ok(self.add_node(pos, Node::Pipe { assign, decl, cmds }))
    }

    /// Parses the variables before the commands onto `pending`. Returns whether they are assigned instead
    /// of declared.
    fn parse_declarations(&mut self, context: &str) -> Parse<bool> {
        let mut count = 0;
        loop {
            let variable = self.peek_non_space();
            if variable.kind != Kind::Variable {
                return Ok(false);
            }
            self.next();
            let adjacent = self.peek();
            let next = self.peek_non_space();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    self.next_non_space();
                    self.declare(variable);
                    return Ok(next.kind == Kind::Assign);
                }
                Kind::Char if self.lexer.token_text(next) == b"," => {
                    self.next_non_space();
                    self.declare(variable);
                    count += 1;
                    if context != "range" || count >= 2 {
                        return self.fail(format!("too many declarations in {context}"));
                    }
                    if !matches!(
                        self.peek_non_space().kind,
                        Kind::Variable | Kind::RightDelim | Kind::RightParen
                    ) {
                        return self.fail("range can only initialize variables");
                    }
                }
                _ => {
                    if adjacent.kind == Kind::Space {
                        self.backup3(variable, adjacent);
                    } else {
                        self.backup2(variable);
                    }
                    return Ok(false);
                }
            }
        }
    }

    fn declare(&mut self, variable: Token) {
        let name = self.name_index(self.lexer.token_text(variable));
        self.tree.vars.push(name);
        let fields = Span::default();
        let node = self.add_node(variable.pos, Node::Variable { name, fields });
        self.pending.push(node);
    }

    /// Checks that only the first command of a pipeline is an operand that cannot be called.
    fn check_pipeline(&self, mark: usize, context: &str) -> Parse<()> {
        let commands = self.pending.get(mark..).unwrap_or_default();
        if commands.is_empty() {
            return self.fail(format!("missing value for {context}"));
        }
        for (index, &command) in commands.iter().enumerate().skip(1) {
            let Node::Command(args) = self.source.node(command) else {
                continue;
            };
            let first = self
                .source
                .children(args)
                .first()
                .map(|&first| self.source.node(first));
            if let Some(Node::Bool(_) | Node::Dot | Node::Nil | Node::Number { .. } | Node::String { .. }) =
                first
            {
                return self.fail(format!("non executable command in pipeline stage {}", index + 1));
            }
        }
        Ok(())
    }
}
