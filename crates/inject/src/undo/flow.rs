//! The way back in brackets and braces: the counterpart of [`crate::editor::flow`].

use mainstay_yaml::{NodeId, NodeKind};

use super::{Room, Undo, is_our_name};
use crate::editor::flow::{comma, opening};
use crate::lines;
use crate::mark::{FLOW_MARK, FORMER_VALUES};
use crate::refusal::refuse;
use crate::splice::Splice;
use crate::tree::{Entry, View};
use crate::{Code, Finding, Severity};

impl Undo<'_, '_> {
    pub(super) fn flow_list(&mut self, map: NodeId, (name, list): (NodeId, NodeId)) {
        let items = self.view.items(list);
        let ours: Vec<bool> = items
            .iter()
            .map(|item| is_flow_marked(self.view, *item))
            .collect();
        if !ours.is_empty() && ours.iter().all(|ours| *ours) {
            return self.whole_flow_list(map, name, list);
        }
        let elements: Vec<(usize, usize)> = items.iter().map(|item| span(self.view, *item)).collect();
        for (index, _) in ours.iter().enumerate().filter(|(_, ours)| **ours) {
            let later = ours.iter().skip(index + 1).any(|ours| !ours);
            self.remove_element(&elements, index, later);
        }
    }

    /// All items are ours: the list was filled, took the place of a null, or came with its key.
    fn whole_flow_list(&mut self, map: NodeId, name: NodeId, list: NodeId) {
        let Some(open) = opening(self.view, list) else {
            return;
        };
        let (start, end) = span(self.view, list);
        let rest = self.view.text.get(open..).unwrap_or_default();
        let tabs = rest.iter().take_while(|byte| **byte == b'\t').count();
        let filled = self
            .view
            .items(list)
            .last()
            .map_or(open, |item| span(self.view, *item).1);
        match (tabs, FORMER_VALUES.get(tabs.wrapping_sub(1))) {
            (0, _) => self.remove_key(map, name, (open, filled)),
            (2.., Some(former)) => {
                let start = start - usize::from(former.is_empty() && start > 0);
                self.splices
                    .push(Splice::exchange(start, end, (*former).to_owned()));
            }
            _ => self.splices.push(Splice::remove(open, filled)),
        }
    }

    fn remove_key(&mut self, map: NodeId, name: NodeId, inside: (usize, usize)) {
        let Some(NodeKind::Map { entries, flow: true }) = self.view.node(map).map(|node| &node.kind) else {
            // The user's own list, from which the user took the other items.
            self.splices.push(Splice::remove(inside.0, inside.1));
            return;
        };
        let elements: Vec<(usize, usize)> = entries
            .iter()
            .map(|(key, value)| (span(self.view, *key).0, span(self.view, *value).1))
            .collect();
        if let Some(index) = entries.iter().position(|(key, _)| *key == name) {
            // A pod spec keeps at least its runtime class, a container its name.
            self.remove_element(&elements, index, index + 1 < elements.len());
        }
    }

    fn remove_element(&mut self, elements: &[(usize, usize)], index: usize, later: bool) {
        let text = self.view.text;
        let Some((start, end)) = elements.get(index).copied() else {
            return;
        };
        let before = index.checked_sub(1).and_then(|before| elements.get(before));
        let own_line = lines::own_start(text, start).filter(|line| *line > 0);
        let space = |at: usize| usize::from(text.get(at) == Some(&b' '));
        let (from, to) = match (text.get(end), before) {
            (Some(b','), _) if let Some(line) = own_line => (lines::before_break(text, line), end + 1),
            (Some(b','), _) if later => (start, end + 1 + space(end + 1)),
            (Some(b','), _) => (start - start.checked_sub(1).map_or(0, space), end + 1),
            (_, Some((_, before))) => (*before, end),
            (_, None) => (start, end),
        };
        self.splices.push(Splice::remove(from, to));
    }
}

/// Takes away what the user wrote under names of ours. JSON has no comments to keep it in, so this is told.
pub(super) fn lose(view: &View<'_>, list: NodeId, names: &[&'static str], room: &mut Room) {
    let is_flow = matches!(
        view.node(list).map(|node| &node.kind),
        Some(NodeKind::List { flow: true, .. })
    );
    if !is_flow {
        return;
    }
    let items = view.items(list);
    let name = |item: NodeId| view.scalar_at(item, &["name"]).unwrap_or_default();
    let goes = |item: NodeId| names.contains(&name(item));
    let mut kept_end = None;
    let mut run: Option<(usize, usize)> = None;
    for item in items {
        let (start, end) = span(view, *item);
        if goes(*item) {
            run = Some((run.map_or(start, |(first, _)| first), end));
            let finding = replaced(view, *item, name(*item));
            room.lost.push(finding);
        } else {
            if let Some((first, _)) = run.take() {
                room.splices.push(Splice::remove(first, start));
            }
            kept_end = Some(end);
        }
    }
    if let Some((first, end)) = run {
        let splice = match kept_end {
            Some(kept) => Splice::remove(kept, end),
            // An empty list has no comma.
            None => Splice::remove(first, comma(view.text, end).map_or(end, |comma| comma + 1)),
        };
        room.splices.push(splice);
    }
}

fn replaced(view: &View<'_>, item: NodeId, name: &str) -> Finding {
    let message =
        format!("the container {name:?} written here is replaced and cannot be brought back by --uninject");
    let help = "keep a copy if you need it: in brackets there is no place for comments";
    let finding = refuse(view, item, Code::NotRestorable, message, help);
    Finding {
        severity: Severity::Warning,
        ..finding
    }
}

fn span(view: &View<'_>, id: NodeId) -> (usize, usize) {
    let span = view.node(id).map(|node| node.span).unwrap_or_default();
    (span.start.offset, span.end.offset)
}

/// Whether an item in braces has our white space before its name. Only our own names count: others may like tabs.
pub(super) fn is_flow_marked(view: &View<'_>, item: NodeId) -> bool {
    let Entry::Own(_, name) = view.entry(item, "name") else {
        return false;
    };
    let ours = view.scalar(name).is_some_and(is_our_name);
    let before = view.text.get(..span(view, name).0).unwrap_or_default();
    ours && before.ends_with(FLOW_MARK.as_bytes())
}
