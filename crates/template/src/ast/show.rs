//! Formatting of nodes as in Go's error messages.

use super::{Branch, Node, NodeId, Source};
use crate::stack;
use mainstay_gostd::quote::quote;

impl Source {
    /// Formats the node as Go's `Node.String` does.
    pub(crate) fn show(&self, id: NodeId) -> String {
        let mut out = Vec::new();
        self.show_into(id, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    fn show_into(&self, id: NodeId, out: &mut Vec<u8>) {
        stack::ensure_stack(|| match self.node(id) {
            Node::Text { start, end } => out.extend_from_slice(self.slice(start, end)),
            Node::List(items) => self
                .children(items)
                .iter()
                .for_each(|&item| self.show_into(item, out)),
            Node::Action { pipe } => {
                out.extend_from_slice(b"{{");
                self.show_into(pipe, out);
                out.extend_from_slice(b"}}");
            }
            Node::Branch {
                kind,
                pipe,
                list,
                otherwise,
            } => {
                out.extend_from_slice(open_branch(kind));
                self.show_into(pipe, out);
                out.extend_from_slice(b"}}");
                self.show_into(list, out);
                if let Some(otherwise) = otherwise {
                    out.extend_from_slice(b"{{else}}");
                    self.show_into(otherwise, out);
                }
                out.extend_from_slice(b"{{end}}");
            }
            Node::Template { name, pipe } => {
                out.extend_from_slice(b"{{template ");
                out.extend_from_slice(quote(self.string(name)).as_bytes());
                if let Some(pipe) = pipe {
                    out.push(b' ');
                    self.show_into(pipe, out);
                }
                out.extend_from_slice(b"}}");
            }
            Node::Break => out.extend_from_slice(b"{{break}}"),
            Node::Continue => out.extend_from_slice(b"{{continue}}"),
            Node::Pipe { assign, decl, cmds } => {
                self.show_joined(self.children(decl), b", ", out);
                if !decl.is_empty() {
                    out.extend_from_slice(if assign { b" = " } else { b" := " });
                }
                self.show_joined(self.children(cmds), b" | ", out);
            }
            Node::Command(args) => self.show_args(self.children(args), out),
            Node::Identifier { name, .. } => out.extend_from_slice(self.name(name)),
            Node::Variable { name, fields } => {
                out.extend_from_slice(self.name(name));
                self.show_fields(fields, out);
            }
            Node::Dot => out.push(b'.'),
            Node::Nil => out.extend_from_slice(b"nil"),
            Node::Field(fields) => self.show_fields(fields, out),
            Node::Chain { base, fields } => {
                self.show_args(&[base], out);
                self.show_fields(fields, out);
            }
            Node::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Node::Number { start, end, .. } | Node::String { start, end, .. } => {
                out.extend_from_slice(self.slice(start, end));
            }
        });
    }

    fn show_joined(&self, ids: &[NodeId], between: &[u8], out: &mut Vec<u8>) {
        for (index, &id) in ids.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(between);
            }
            self.show_into(id, out);
        }
    }

    /// Formats operands. Pipelines among them are written in parentheses.
    fn show_args(&self, ids: &[NodeId], out: &mut Vec<u8>) {
        for (index, &id) in ids.iter().enumerate() {
            if index > 0 {
                out.push(b' ');
            }
            let pipeline = matches!(self.node(id), Node::Pipe { .. });
            if pipeline {
                out.push(b'(');
            }
            self.show_into(id, out);
            if pipeline {
                out.push(b')');
            }
        }
    }

    fn show_fields(&self, fields: super::Span, out: &mut Vec<u8>) {
        for field in self.names(fields) {
            out.push(b'.');
            out.extend_from_slice(field);
        }
    }
}

/// Returns the start of a branch.
fn open_branch(kind: Branch) -> &'static [u8] {
    match kind {
        Branch::If => b"{{if ",
        Branch::With => b"{{with ",
        Branch::Range => b"{{range ",
    }
}
