//! The way back in brackets and braces: the counterpart of [`crate::editor::flow`].

use std::collections::BTreeSet;

use mainstay_yaml::{NodeId, NodeKind};

use super::{Room, Undo, is_our_name};
use crate::editor::check_anchors;
use crate::editor::flow::opening;
use crate::keepsake::{self, Piece, Where};
use crate::lines;
use crate::mark::{FLOW_MARK, FORMER_VALUES};
use crate::refusal::refuse;
use crate::splice::Splice;
use crate::tree::{Entry, View};
use crate::{Code, Finding};

impl Undo<'_, '_> {
    pub(super) fn flow_list(&mut self, map: NodeId, (name, list): (NodeId, NodeId)) {
        let items = self.view.items(list);
        let ours: Vec<bool> = items
            .iter()
            .map(|item| is_flow_marked(self.view, *item))
            .collect();
        let elements: Vec<(usize, usize)> = items.iter().map(|item| span(self.view, *item)).collect();
        let replaced = self.bring_back(list, &elements, &ours);
        if !ours.is_empty() && ours.iter().all(|ours| *ours) {
            return self.whole_flow_list(map, (name, list), replaced);
        }
        for (index, _) in ours.iter().enumerate().filter(|(_, ours)| **ours) {
            let later = ours.iter().skip(index + 1).any(|ours| !ours);
            self.remove_element(&elements, index, later);
        }
    }

    /// Puts what was kept before the bracket back to its place; whether there was anything.
    fn bring_back(&mut self, list: NodeId, elements: &[(usize, usize)], ours: &[bool]) -> bool {
        let close = span(self.view, list).1.saturating_sub(1);
        let kept = keepsake::read(self.view.text, close).zip(opening(self.view, list));
        let Some(((start, pieces), _)) = kept.filter(|((start, _), open)| start >= open) else {
            return false;
        };
        let theirs: Vec<(usize, usize)> = elements
            .iter()
            .zip(ours)
            .filter(|(_, ours)| !**ours)
            .map(|(element, _)| *element)
            .collect();
        self.splices.push(Splice::remove(start, close));
        for Piece { place, text } in pieces {
            let mut text = String::from_utf8_lossy(&text).into_owned();
            let at = match (place, theirs.first()) {
                (Where::Before(number), _) => theirs.get(number).map(|(start, _)| *start),
                (Where::Behind(number), _) => theirs.get(number).map(|(_, end)| *end),
                // It has company by now.
                (Where::Alone, Some((first, _))) => {
                    text = format!("{}, ", text.trim().trim_end_matches(','));
                    Some(*first)
                }
                (Where::Alone, None) => None,
            };
            self.splices
                .push(Splice::insert(at.unwrap_or(start).min(start), text));
        }
        true
    }

    /// All items are ours: the list was filled, took the place of a null, or came with its key. One in which something was
    /// replaced is the user's.
    fn whole_flow_list(&mut self, map: NodeId, (name, list): (NodeId, NodeId), replaced: bool) {
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
            _ if replaced => self.splices.push(Splice::remove(open, filled)),
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

/// Takes away what the user wrote under names of ours, and keeps it before the bracket that closes the list.
pub(super) fn stow(
    view: &View<'_>,
    list: NodeId,
    (names, aliased): (&[&'static str], &BTreeSet<NodeId>),
    room: &mut Room,
) {
    let goes = |item: NodeId| {
        let name = view.scalar_at(item, &["name"]);
        name.is_some_and(|name| names.contains(&name))
    };
    let going: Vec<NodeId> = view
        .items(list)
        .iter()
        .copied()
        .filter(|item| goes(*item))
        .collect();
    let Some(first) = going.first() else { return };
    let held = going
        .iter()
        .find_map(|item| check_anchors(view, aliased, *item).err());
    if let Some(held) = held {
        return room.refused.push(held);
    }
    let close = span(view, list).1.saturating_sub(1);
    let runs = runs(view, list, &goes);
    let pieces: Vec<Piece> = runs
        .iter()
        .map(|(place, range)| piece(view, *place, *range))
        .collect();
    match keepsake::write(&pieces).filter(|_| view.text.get(close) == Some(&b']')) {
        Some(blanks) => {
            let gaps = runs.iter().map(|(_, (start, end))| Splice::remove(*start, *end));
            room.splices.extend(gaps);
            room.splices.push(Splice::insert(close, blanks));
        }
        None => room.refused.push(too_long(view, *first)),
    }
}

fn piece(view: &View<'_>, place: Where, (start, end): (usize, usize)) -> Piece {
    let text = view.text.get(start..end).unwrap_or_default().to_vec();
    Piece { place, text }
}

/// The stretches of a list that go, each with one of the commas at its ends, so that what stays is a list again.
fn runs(view: &View<'_>, list: NodeId, goes: &dyn Fn(NodeId) -> bool) -> Vec<(Where, (usize, usize))> {
    let mut runs = Vec::new();
    let (mut kept, mut kept_end) = (0, None);
    let mut open: Option<(usize, usize)> = None;
    for item in view.items(list) {
        let (start, end) = span(view, *item);
        if goes(*item) {
            open = Some((open.map_or(start, |(first, _)| first), end));
            continue;
        }
        if let Some((first, _)) = open.take() {
            runs.push((Where::Before(kept), (first, start)));
        }
        kept += 1;
        kept_end = Some(end);
    }
    match (open, kept_end) {
        (Some((_, end)), Some(from)) => runs.push((Where::Behind(kept - 1), (from, end))),
        (Some((first, _)), None) => {
            let close = span(view, list).1.saturating_sub(1);
            runs.push((Where::Alone, (opening(view, list).unwrap_or(first), close)));
        }
        (None, _) => {}
    }
    runs
}

fn too_long(view: &View<'_>, item: NodeId) -> Finding {
    let message = "the container that must be replaced is too long to be kept for --uninject".into();
    let help = "remove it: the current one is put in its place";
    refuse(view, item, Code::NotRestorable, message, help)
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
