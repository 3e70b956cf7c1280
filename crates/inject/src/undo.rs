//! What was injected, taken away: takes a parsed document, gives the splices back to what the user wrote. Goes by the marks
//! of [`crate::mark`], so what has none stays, whatever its name.

pub(crate) mod flow;
mod former;

use std::ops::Range;

use mainstay_yaml::{NodeId, NodeKind};

use crate::Finding;
use crate::editor::{self, block};
use crate::lines;
use crate::mark::ITEM_MARK;
use crate::profile::{INITIALIZER, Profile, SERVICE_MESH};
use crate::select::Found;
use crate::splice::Splice;
use crate::tree::{Entry, View};
use former::{Former, formers};

/// How room is made.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// The exchanges, sorted.
    pub(crate) splices: Vec<Splice>,
    /// What could not be brought back later, and so stays.
    pub(crate) refused: Vec<Finding>,
}

/// Takes away, from lists in brackets, the init containers that will be put in anew; the text holds nothing marked any more.
/// Where whole lines can stay as comments, the editor does that.
pub(crate) fn make_room(view: &View<'_>, jobs: &[Job<'_>]) -> Room {
    let mut room = Room::default();
    let mut aliased = None;
    for job in jobs
        .iter()
        .filter(|job| job.found.shared.is_none() && !job.replaced.is_empty())
    {
        let Some(spec) = job.found.spec else { continue };
        if let Entry::Own(key, list) = view.entry(spec, "initContainers")
            && view.is_flow(list)
            && !editor::becomes_lines(view, spec, (key, list), &job.replaced)
        {
            let aliased = aliased.get_or_insert_with(|| view.shared());
            flow::stow(view, list, (&job.replaced, aliased), &mut room);
        }
    }
    crate::splice::sort(&mut room.splices);
    room
}

/// A pod in which room is made.
#[derive(Clone, Debug)]
pub(crate) struct Job<'f> {
    pub(crate) found: &'f Found,
    /// Names of init containers that will be put in anew.
    pub(crate) replaced: Vec<&'static str>,
}

/// The way back for all pods of `found`, sorted; `frozen` are ranges of the text that stay as they are.
pub(crate) fn undo(view: &View<'_>, found: &[&Found], frozen: &[(usize, usize)]) -> Vec<Splice> {
    let mut undo = Undo {
        view,
        formers: formers(view, frozen),
        forgotten: Vec::new(),
        removed: Vec::new(),
        splices: Vec::new(),
    };
    for found in found {
        undo.pod(found);
    }
    undo.finish()
}

struct Undo<'v, 'a> {
    view: &'v View<'a>,
    /// Replaced lines, kept as comments.
    formers: Vec<Former>,
    /// Those of them that do not come back.
    forgotten: Vec<Range<usize>>,
    /// Whole lines that go.
    removed: Vec<(usize, usize)>,
    splices: Vec<Splice>,
}

impl Undo<'_, '_> {
    fn pod(&mut self, found: &Found) {
        let Some(spec) = found.spec.filter(|_| found.shared.is_none()) else {
            return;
        };
        self.list(spec, "initContainers");
        self.list(spec, "volumes");
        for key in ["containers", "initContainers"] {
            let Entry::Own(_, list) = self.view.entry(spec, key) else {
                continue;
            };
            for container in self.view.items(list) {
                if !is_block_marked(self.view, *container) && self.view.resolve(*container) == *container {
                    self.list(*container, "volumeMounts");
                }
            }
        }
    }

    fn list(&mut self, map: NodeId, key: &str) {
        let Entry::Own(name, list) = self.view.entry(map, key) else {
            return;
        };
        match self.view.node(list).map(|node| &node.kind) {
            Some(NodeKind::List { flow: true, .. }) => self.flow_list(map, (name, list)),
            Some(NodeKind::List { flow: false, .. }) => self.block_list(name, list, key),
            _ => {}
        }
    }

    fn block_list(&mut self, name: NodeId, list: NodeId, key: &str) {
        let items = self.view.items(list);
        let ours: Vec<(usize, usize)> = items.iter().filter_map(|item| self.marked_lines(*item)).collect();
        let Some(end) = ours.last().map(|(_, end)| *end) else {
            return;
        };
        let key_line = lines::start(self.view.text, self.start(name));
        let made = ours.len() == items.len()
            && self.is_bare_key(name, key)
            && !self.has_former_items(key_line, end, items);
        self.removed.extend(ours);
        if made {
            self.removed
                .push((key_line, lines::end(self.view.text, key_line)));
        } else {
            self.forget_former_key(name, key);
        }
    }

    /// The lines of an item that is ours.
    fn marked_lines(&self, item: NodeId) -> Option<(usize, usize)> {
        if !is_block_marked(self.view, item) {
            return None;
        }
        let dash = block::dash(self.view, item)?;
        let end = block::after(self.view, item)?;
        Some((lines::start(self.view.text, dash), end.at))
    }

    /// Whether the key stands alone on its line, as we write it.
    fn is_bare_key(&self, name: NodeId, key: &str) -> bool {
        let line = lines::line(self.view.text, self.start(name));
        line.trim_ascii().strip_suffix(b":") == Some(key.as_bytes())
    }

    /// Whether items of this list were replaced: then the list was the user's.
    fn has_former_items(&self, key_line: usize, end: usize, items: &[NodeId]) -> bool {
        let column = items
            .first()
            .and_then(|item| block::dash(self.view, *item))
            .and_then(|dash| lines::indent(self.view.text, dash));
        let end = self.silent_until(end);
        let from = self.formers.partition_point(|former| former.line <= key_line);
        let to = self.formers.partition_point(|former| former.line < end);
        let mut before = None;
        let within = self.formers.get(from..to).unwrap_or_default();
        within.iter().any(|former| {
            // Only the first of adjacent lines tells: those below may be items within an item.
            let follows = before.replace(former.end) == Some(former.line);
            !follows && column.is_some() && former.dash_column(self.view.text) == column
        })
    }

    /// How far only comments and blank lines follow `from`.
    fn silent_until(&self, from: usize) -> usize {
        let text = self.view.text;
        let mut at = from;
        while at < text.len() && lines::silent(text, at, lines::end(text, at)) {
            at = lines::end(text, at);
        }
        at
    }

    /// A list that was empty has items of the user's by now: what stood there is past.
    fn forget_former_key(&mut self, name: NodeId, key: &str) {
        let text = self.view.text;
        let Some(column) = lines::indent(text, self.start(name)) else {
            return;
        };
        let mut line = self.start(name) - column;
        let below = self.formers.partition_point(|former| former.end <= line);
        for index in (0..below).rev() {
            let Some(former) = self.formers.get(index).filter(|former| former.end == line) else {
                return;
            };
            line = former.line;
            if former.is_key(text, key, column) {
                self.forgotten.push(index..below);
                self.removed.push((line, self.start(name) - column));
                return;
            }
        }
    }

    fn start(&self, id: NodeId) -> usize {
        self.view.node(id).map_or(0, |node| node.span.start.offset)
    }

    fn finish(mut self) -> Vec<Splice> {
        let text = self.view.text;
        self.removed.sort_unstable();
        let mut merged: Vec<(usize, usize)> = Vec::new();
        for (start, end) in self.removed {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        // A text that ended without a line break does so again.
        if let Some(last) = merged
            .last_mut()
            .filter(|last| last.1 == text.len() && !text.ends_with(b"\n"))
        {
            last.0 = lines::before_break(text, last.0);
        }
        let removals = merged.into_iter().map(|(start, end)| Splice::remove(start, end));
        self.splices.extend(removals);
        self.forgotten.sort_unstable_by_key(|range| range.start);
        let mut from = 0;
        let end = self.formers.len();
        for range in self.forgotten.into_iter().chain(std::iter::once(end..end)) {
            let kept = self.formers.get(from..range.start).unwrap_or_default();
            self.splices.extend(kept.iter().map(Former::restore));
            from = range.end;
        }
        crate::splice::sort(&mut self.splices);
        self.splices
    }
}

/// Whether an item is marked as ours, in either style.
pub(crate) fn is_marked(view: &View<'_>, item: NodeId) -> bool {
    is_block_marked(view, item) || flow::is_flow_marked(view, item)
}

/// Whether an item has the mark of block style behind its name.
fn is_block_marked(view: &View<'_>, item: NodeId) -> bool {
    let Entry::Own(_, name) = view.entry(item, "name") else {
        return false;
    };
    let end = view.node(name).map_or(0, |node| node.span.end.offset);
    let rest = view.text.get(end..).unwrap_or_default();
    let ours = view.scalar(name).is_some_and(is_our_name);
    let marked = lines::skip_blanks(rest).strip_prefix(ITEM_MARK.as_bytes());
    let rest = marked.map(lines::skip_blanks);
    ours && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"\n") || rest.starts_with(b"\r"))
}

/// Whether something injected is called so. A marked line that was copied and renamed is the user's.
fn is_our_name(name: &str) -> bool {
    [INITIALIZER, SERVICE_MESH].contains(&name) || Profile::ALL.iter().any(|profile| profile.volume == name)
}
