//! Execution of control structures.

use super::{Run, Step};
use crate::ast::{Branch, Node, NodeId};
use crate::fmt;
use crate::object::GoKind;
use crate::slot::Slot;
use crate::stack;
use crate::value::{ListType, Map, MapType, Value};
use mainstay_gostd::quote::quote;

/// Control flow after the execution of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

/// Parts of a branch.
#[derive(Clone, Copy)]
struct BranchParts {
    pipe: NodeId,
    list: NodeId,
    otherwise: Option<NodeId>,
}

impl<'a> Run<'a> {
    /// Runs the template from its root.
    pub(super) fn run_root(&mut self, dot: &Slot) -> Step<()> {
        self.vars.push((0, dot.clone()));
        self.run_list(dot, self.template.root)?;
        Ok(())
    }

    /// Runs a list of nodes.
    pub(super) fn run_list(&mut self, dot: &Slot, list: NodeId) -> Step<Flow> {
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
                Node::Text { start, end } => self.write_text(source.slice(start, end))?,
                Node::Action { pipe } => self.run_action(dot, item, pipe)?,
                node => {
                    let flow = self.run_control(dot, item, node)?;
                    if flow != Flow::Next {
                        return Ok(flow);
                    }
                }
            }
        }
        Ok(Flow::Next)
    }

    fn run_control(&mut self, dot: &Slot, id: NodeId, node: Node) -> Step<Flow> {
        match node {
            Node::Branch {
                kind,
                pipe,
                list,
                otherwise,
            } => {
                let parts = BranchParts {
                    pipe,
                    list,
                    otherwise,
                };
                return stack::ensure_stack(|| self.run_branch(dot, id, kind, parts));
            }
            Node::Template { name, pipe } => self.run_template(dot, name, pipe)?,
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
            _ => return self.fail(format!("unknown node: {}", self.source.show(id))),
        }
        Ok(Flow::Next)
    }

    #[inline]
    fn write_text(&mut self, text: &[u8]) -> Step<()> {
        if let Err(limit) = self.meter.consume_output(text.len()) {
            return Err(self.limit_fault(limit));
        }
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn run_action(&mut self, dot: &Slot, id: NodeId, pipe: NodeId) -> Step<()> {
        if let Some(written) = self.with_operand(dot, pipe, fmt::write_value) {
            return written.map_err(|limit| self.limit_fault(limit));
        }
        let value = self.evaluate_pipeline(dot, pipe)?;
        if let Node::Pipe { decl, .. } = self.source.node(pipe)
            && !decl.is_empty()
        {
            return Ok(());
        }
        self.at = Some(id);
        fmt::write_value(&value.value, &mut self.out, self.meter).map_err(|limit| self.limit_fault(limit))
    }

    fn run_branch(&mut self, dot: &Slot, id: NodeId, kind: Branch, parts: BranchParts) -> Step<Flow> {
        let scope = self.vars.len();
        let flow = match kind {
            Branch::Range => self.run_range(dot, id, parts),
            Branch::If | Branch::With => self.run_condition(dot, kind, parts),
        };
        self.vars.truncate(scope);
        flow
    }

    fn run_condition(&mut self, dot: &Slot, kind: Branch, parts: BranchParts) -> Step<Flow> {
        if kind == Branch::With {
            let value = self.evaluate_pipeline(dot, parts.pipe)?;
            if value.value.is_true() {
                return self.run_list(&value, parts.list);
            }
        } else if self.evaluate_truth(dot, parts.pipe)? {
            return self.run_list(dot, parts.list);
        }
        match parts.otherwise {
            Some(otherwise) => self.run_list(dot, otherwise),
            None => Ok(Flow::Next),
        }
    }

    fn run_template(&mut self, dot: &Slot, name: u32, pipe: Option<NodeId>) -> Step<()> {
        let name = self.source.string(name);
        let Some(template) = std::str::from_utf8(&name)
            .ok()
            .and_then(|name| self.scope.find(name))
        else {
            return self.fail(format!("template {} not defined", quote(&*name)));
        };
        self.meter.enter().map_err(|limit| self.limit_fault(limit))?;
        let dot = match pipe {
            Some(pipe) => self.evaluate_pipeline(dot, pipe)?,
            None => Slot::NO_VALUE,
        };
        let (outer, source, at, frame) = (self.template, self.source, self.at, self.frame);
        let scope = self.vars.len();
        (self.template, self.source, self.frame) = (template, &template.source, scope);
        stack::ensure_stack(|| self.run_root(&dot))?;
        self.vars.truncate(scope);
        (self.template, self.source, self.at, self.frame) = (outer, source, at, frame);
        self.meter.leave();
        Ok(())
    }

    fn run_range(&mut self, dot: &Slot, id: NodeId, parts: BranchParts) -> Step<Flow> {
        self.at = Some(id);
        let value = self.evaluate_pipeline(dot, parts.pipe)?;
        let ran = match &value.value {
            Value::Int(count, kind) => {
                let (count, kind) = (*count, *kind);
                self.range_over_numbers(&value, parts, (0..count).map(|number| Value::Int(number, kind)))?
            }
            Value::Uint(count, kind) => {
                let (count, kind) = (*count, *kind);
                self.range_over_numbers(&value, parts, (0..count).map(|number| Value::Uint(number, kind)))?
            }
            Value::List(list) => {
                let as_interface = list.ty() == ListType::Any;
                let items = list.items().iter().enumerate();
                let element_slot = |item: &Value| {
                    if as_interface {
                        Slot::interface(item.clone())
                    } else {
                        Slot::concrete(item.clone())
                    }
                };
                self.run_body(
                    parts,
                    items.map(|(index, item)| (Slot::concrete(Value::int(index as i64)), element_slot(item))),
                )?
            }
            Value::Map(map) => self.range_over_map(parts, map)?,
            Value::Object(object) if object.go_kind() == GoKind::Map => {
                let keys = object.map_keys().into_iter();
                let entry = |key: crate::string::Str| {
                    let value = object.field(&key.to_str_lossy()).unwrap_or_default();
                    (Slot::concrete(Value::String(key)), Slot::concrete(value))
                };
                self.run_body(parts, keys.map(entry))?
            }
            Value::Nil => false,
            other => {
                let shown = fmt::format_for_message(other, b'v', self.meter)
                    .map_err(|limit| self.limit_fault(limit))?;
                return self.fail(format!("range can't iterate over {shown}"));
            }
        };
        match parts.otherwise {
            // A `break` in an else list belongs to an outer range, but in Go it ends this one. A `continue`
            // affects the outer range.
            Some(otherwise) if !ran => match self.run_list(dot, otherwise)? {
                Flow::Break => Ok(Flow::Next),
                flow => Ok(flow),
            },
            _ => Ok(Flow::Next),
        }
    }

    fn range_over_numbers(
        &mut self,
        value: &Slot,
        parts: BranchParts,
        numbers: impl Iterator<Item = Value>,
    ) -> Step<bool> {
        if let Node::Pipe { decl, .. } = self.source.node(parts.pipe)
            && decl.len() > 1
        {
            let shown = fmt::format_for_message(&value.value, b'v', self.meter)
                .map_err(|limit| self.limit_fault(limit))?;
            return self.fail(format!(
                "can't use {shown} to iterate over more than one variable"
            ));
        }
        self.run_body(
            parts,
            numbers.map(|number| (Slot::NO_VALUE, Slot::concrete(number))),
        )
    }

    /// Ranges over a copy of the entries, because the body may change the map.
    fn range_over_map(&mut self, parts: BranchParts, map: &Map) -> Step<bool> {
        let as_interface = map.ty() != MapType::String;
        let entries: Vec<_> = map
            .entries()
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let element_slot = |value: Value| {
            if as_interface {
                Slot::interface(value)
            } else {
                Slot::concrete(value)
            }
        };
        self.run_body(
            parts,
            entries
                .into_iter()
                .map(|(key, value)| (Slot::concrete(Value::String(key)), element_slot(value))),
        )
    }

    /// Runs the body once per item. Returns whether there was any item.
    fn run_body(&mut self, parts: BranchParts, items: impl Iterator<Item = (Slot, Slot)>) -> Step<bool> {
        let Node::Pipe { assign, decl, .. } = self.source.node(parts.pipe) else {
            return Ok(false);
        };
        let scope = self.vars.len();
        let mut ran = false;
        for (index, item) in items {
            ran = true;
            self.consume_fuel(1)?;
            if !decl.is_empty() {
                self.set_variables(self.source.children(decl), assign, index, &item)?;
            }
            let flow = self.run_list(&item, parts.list)?;
            self.vars.truncate(scope);
            if flow == Flow::Break {
                break;
            }
        }
        Ok(ran)
    }

    fn set_variables(&mut self, decl: &[NodeId], assign: bool, index: Slot, item: &Slot) -> Step<()> {
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
