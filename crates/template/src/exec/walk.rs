//! Control structures: which nodes run, how often, and with which dot.

use super::{Run, Step};
use crate::ast::{Branch, Node, NodeId};
use crate::fmt;
use crate::object::GoKind;
use crate::slot::Slot;
use crate::stack;
use crate::value::{ListType, Map, MapType, Value};
use mainstay_gostd::quote::quote;

/// The way in which a node ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

/// A branch with its parts.
#[derive(Clone, Copy)]
struct Parts {
    pipe: NodeId,
    list: NodeId,
    otherwise: Option<NodeId>,
}

impl<'a> Run<'a> {
    /// Runs the template from its root.
    pub(super) fn root(&mut self, dot: &Slot) -> Step<()> {
        self.vars.push((0, dot.clone()));
        self.walk(dot, self.template.root)?;
        Ok(())
    }

    /// Runs a list of nodes.
    pub(super) fn walk(&mut self, dot: &Slot, list: NodeId) -> Step<Flow> {
        self.at = Some(list);
        let source: &'a _ = self.source;
        let Node::List(items) = source.node(list) else {
            return Ok(Flow::Next);
        };
        let items = source.children(items);
        self.consume_fuel(1 + items.len() as u64)?;
        for &item in items {
            self.at = Some(item);
            match source.node(item) {
                Node::Text { start, end } => self.text(source.slice(start, end))?,
                Node::Action { pipe } => self.action(dot, item, pipe)?,
                node => {
                    let flow = self.control(dot, item, node)?;
                    if flow != Flow::Next {
                        return Ok(flow);
                    }
                }
            }
        }
        Ok(Flow::Next)
    }

    fn control(&mut self, dot: &Slot, id: NodeId, node: Node) -> Step<Flow> {
        match node {
            Node::Branch {
                kind,
                pipe,
                list,
                otherwise,
            } => {
                let parts = Parts {
                    pipe,
                    list,
                    otherwise,
                };
                return stack::ensure_stack(|| self.branch(dot, id, kind, parts));
            }
            Node::Template { name, pipe } => self.template(dot, name, pipe)?,
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
            _ => return self.fail(format!("unknown node: {}", self.source.show(id))),
        }
        Ok(Flow::Next)
    }

    #[inline]
    fn text(&mut self, text: &[u8]) -> Step<()> {
        if let Err(limit) = self.meter.write(text.len()) {
            return Err(self.limit_fault(limit));
        }
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn action(&mut self, dot: &Slot, id: NodeId, pipe: NodeId) -> Step<()> {
        if let Some(written) = self.peek(dot, pipe, fmt::write_value) {
            return written.map_err(|limit| self.limit_fault(limit));
        }
        let value = self.pipeline(dot, pipe)?;
        if let Node::Pipe { decl, .. } = self.source.node(pipe)
            && !decl.is_empty()
        {
            return Ok(());
        }
        self.at = Some(id);
        fmt::write_value(&value.value, &mut self.out, self.meter).map_err(|limit| self.limit_fault(limit))
    }

    fn branch(&mut self, dot: &Slot, id: NodeId, kind: Branch, parts: Parts) -> Step<Flow> {
        let scope = self.vars.len();
        let flow = match kind {
            Branch::Range => self.range(dot, id, parts),
            Branch::If | Branch::With => self.condition(dot, kind, parts),
        };
        self.vars.truncate(scope);
        flow
    }

    fn condition(&mut self, dot: &Slot, kind: Branch, parts: Parts) -> Step<Flow> {
        if kind == Branch::With {
            let value = self.pipeline(dot, parts.pipe)?;
            if value.value.is_true() {
                return self.walk(&value, parts.list);
            }
        } else if self.truth(dot, parts.pipe)? {
            return self.walk(dot, parts.list);
        }
        match parts.otherwise {
            Some(otherwise) => self.walk(dot, otherwise),
            None => Ok(Flow::Next),
        }
    }

    fn template(&mut self, dot: &Slot, name: u32, pipe: Option<NodeId>) -> Step<()> {
        let name = self.source.string(name);
        let Some(template) = std::str::from_utf8(&name)
            .ok()
            .and_then(|name| self.scope.find(name))
        else {
            return self.fail(format!("template {} not defined", quote(&*name)));
        };
        self.meter.enter().map_err(|limit| self.limit_fault(limit))?;
        let dot = match pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Slot::NOTHING,
        };
        let (outer, source, at, frame) = (self.template, self.source, self.at, self.frame);
        let scope = self.vars.len();
        (self.template, self.source, self.frame) = (template, &template.source, scope);
        stack::ensure_stack(|| self.root(&dot))?;
        self.vars.truncate(scope);
        (self.template, self.source, self.at, self.frame) = (outer, source, at, frame);
        self.meter.leave();
        Ok(())
    }

    fn range(&mut self, dot: &Slot, id: NodeId, parts: Parts) -> Step<Flow> {
        self.at = Some(id);
        let value = self.pipeline(dot, parts.pipe)?;
        let ran = match &value.value {
            Value::Int(count, kind) => {
                let (count, kind) = (*count, *kind);
                self.count(&value, parts, (0..count).map(|number| Value::Int(number, kind)))?
            }
            Value::Uint(count, kind) => {
                let (count, kind) = (*count, *kind);
                self.count(&value, parts, (0..count).map(|number| Value::Uint(number, kind)))?
            }
            Value::List(list) => {
                let boxed = list.ty() == ListType::Any;
                let items = list.items().iter().enumerate();
                let held = |item: &Value| {
                    if boxed {
                        Slot::boxed(item.clone())
                    } else {
                        Slot::bare(item.clone())
                    }
                };
                self.each(
                    parts,
                    items.map(|(index, item)| (Slot::bare(Value::int(index as i64)), held(item))),
                )?
            }
            Value::Map(map) => self.entries(parts, map)?,
            Value::Object(object) if object.go_kind() == GoKind::Map => {
                let keys = object.map_keys().into_iter();
                let entry = |key: crate::string::Str| {
                    let value = object.field(&key.to_str_lossy()).unwrap_or_default();
                    (Slot::bare(Value::String(key)), Slot::bare(value))
                };
                self.each(parts, keys.map(entry))?
            }
            Value::Nil => false,
            other => {
                let shown =
                    fmt::in_message(other, b'v', self.meter).map_err(|limit| self.limit_fault(limit))?;
                return self.fail(format!("range can't iterate over {shown}"));
            }
        };
        match parts.otherwise {
            // A `break` in an else list belongs to an outer range, but Go lets it end this one; a `continue`
            // reaches the outer range.
            Some(otherwise) if !ran => match self.walk(dot, otherwise)? {
                Flow::Break => Ok(Flow::Next),
                flow => Ok(flow),
            },
            _ => Ok(Flow::Next),
        }
    }

    fn count(&mut self, value: &Slot, parts: Parts, numbers: impl Iterator<Item = Value>) -> Step<bool> {
        if let Node::Pipe { decl, .. } = self.source.node(parts.pipe)
            && decl.len() > 1
        {
            let shown =
                fmt::in_message(&value.value, b'v', self.meter).map_err(|limit| self.limit_fault(limit))?;
            return self.fail(format!(
                "can't use {shown} to iterate over more than one variable"
            ));
        }
        self.each(parts, numbers.map(|number| (Slot::NOTHING, Slot::bare(number))))
    }

    /// A map is ranged over in its state at the start: the body may change it.
    fn entries(&mut self, parts: Parts, map: &Map) -> Step<bool> {
        let boxed = map.ty() != MapType::String;
        let entries: Vec<_> = map
            .entries()
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let held = |value: Value| {
            if boxed {
                Slot::boxed(value)
            } else {
                Slot::bare(value)
            }
        };
        self.each(
            parts,
            entries
                .into_iter()
                .map(|(key, value)| (Slot::bare(Value::String(key)), held(value))),
        )
    }

    /// Runs the body once per item; returns whether there was any item.
    fn each(&mut self, parts: Parts, items: impl Iterator<Item = (Slot, Slot)>) -> Step<bool> {
        let Node::Pipe { assign, decl, .. } = self.source.node(parts.pipe) else {
            return Ok(false);
        };
        let scope = self.vars.len();
        let mut ran = false;
        for (index, item) in items {
            ran = true;
            self.consume_fuel(1)?;
            if !decl.is_empty() {
                self.bind(self.source.children(decl), assign, index, &item)?;
            }
            let flow = self.walk(&item, parts.list)?;
            self.vars.truncate(scope);
            if flow == Flow::Break {
                break;
            }
        }
        Ok(ran)
    }

    fn bind(&mut self, decl: &[NodeId], assign: bool, index: Slot, item: &Slot) -> Step<()> {
        if !assign {
            let mut top = self.vars.iter_mut().rev();
            if let Some(last) = top.next() {
                last.1 = item.clone();
            }
            if let (2, Some(first)) = (decl.len(), top.next()) {
                first.1 = index;
            }
            return Ok(());
        }
        match *decl {
            [only] => self.assign(only, item.clone()),
            [first, second, ..] => {
                self.assign(first, index)?;
                self.assign(second, item.clone())
            }
            [] => Ok(()),
        }
    }
}
