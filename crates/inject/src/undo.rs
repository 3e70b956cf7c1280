//! Removes what was injected: translates the marks and the undo records of a parsed document into splices. An
//! item without a mark or a record stays, whatever its name.

mod annotation;
pub(crate) mod flow;
mod former;

use std::ops::Range;

use mainstay_yaml::{NodeId, Value, to_json_raw};

use crate::Finding;
use crate::editor::{self, block};
use crate::lines;
use crate::mark::ITEM_MARK;
use crate::record::{self, Lookup, Record, Replaced, is_injected_name};
use crate::select::Found;
use crate::semantic;
use crate::splice::Splice;
use crate::tree::{Entry, View};
use flow::{RecordedList, Replacement};
use former::{Former, formers};

/// Flow lists without the init containers that will be replaced.
#[derive(Debug, Default)]
pub(crate) struct Cleared {
    /// The edits, sorted.
    pub(crate) splices: Vec<Splice>,
    /// Containers that cannot be restored later, and so stay.
    pub(crate) rejected: Vec<Finding>,
    /// The containers taken out, for each job.
    pub(crate) replaced: Vec<Vec<Replaced>>,
}

/// Takes the init containers that will be replaced out of flow lists; `value` is the value of the document.
/// Where whole lines can stay as comments, the editor does that instead.
pub(crate) fn clear_lists(view: &View<'_>, value: Option<&Value>, jobs: &[Job<'_>]) -> Cleared {
    let mut cleared = Cleared::default();
    let mut aliased = None;
    for job in jobs {
        let mut replaced = Vec::new();
        if let Some((spec, key, list)) = replaced_list(view, job)
            && view.is_flow(list)
            && !editor::becomes_lines(view, spec, (key, list), &job.replaced)
        {
            let aliased = aliased.get_or_insert_with(|| view.shared());
            let names = &job.replaced;
            let positions = flow::clear(view, Replacement { list, names, aliased }, &mut cleared);
            let spec = value.and_then(|document| semantic::get(document, &job.found.steps));
            let items = spec
                .and_then(|spec| spec.get("initContainers"))
                .and_then(Value::as_list);
            replaced.extend(positions.into_iter().map(|at| {
                Replaced {
                    index: at.index,
                    container: items
                        .and_then(|items| items.get(at.position))
                        .cloned()
                        .unwrap_or_default(),
                }
            }));
        }
        cleared.replaced.push(replaced);
    }
    crate::splice::sort(&mut cleared.splices);
    cleared
}

fn replaced_list(view: &View<'_>, job: &Job<'_>) -> Option<(NodeId, NodeId, NodeId)> {
    let spec = job
        .found
        .spec
        .filter(|_| job.found.shared.is_none() && !job.replaced.is_empty())?;
    match view.entry(spec, "initContainers") {
        Entry::Own(key, list) => Some((spec, key, list)),
        _ => None,
    }
}

/// A pod of which init containers are replaced.
#[derive(Clone, Debug)]
pub(crate) struct Job<'f> {
    pub(crate) found: &'f Found,
    /// Names of the init containers that will be replaced.
    pub(crate) replaced: Vec<&'static str>,
}

/// A list in a map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListEntry {
    pub(crate) map: NodeId,
    pub(crate) key: NodeId,
    pub(crate) list: NodeId,
}

/// The splices that undo the injection of all pods of `found`, sorted; `frozen` are ranges of the text that
/// stay as they are.
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
        let recorded = match record::find(self.view, found.template) {
            Lookup::Found(recorded) => Some(recorded),
            Lookup::Absent | Lookup::Invalid(_) => None,
        };
        let none = Record::default();
        let record = recorded.as_ref().map_or(&none, |recorded| &recorded.record);
        self.list(spec, "initContainers", "initContainers", record);
        self.list(spec, "volumes", "volumes", record);
        for list in ["containers", "initContainers"] {
            let kept = kept_containers(self.view, spec, list, record);
            let paths = record::mount_paths(self.view, list, &kept);
            for (container, path) in kept.into_iter().zip(paths) {
                if self.view.resolve(container) == container {
                    self.list(container, "volumeMounts", &path, record);
                }
            }
        }
        if let Some(recorded) = recorded {
            self.remove_annotation(found.template, &recorded);
        }
    }

    fn list(&mut self, map: NodeId, key: &str, path: &str, record: &Record) {
        let Entry::Own(name, list) = self.view.entry(map, key) else {
            return;
        };
        let Some(is_flow) = flow::list_style(self.view, list) else {
            return;
        };
        let items = self.view.items(list);
        let injected = record::injected(self.view, record, path, items);
        let restored = restored(record, path);
        if injected.contains(&true) || !restored.is_empty() {
            let entry = ListEntry { map, key: name, list };
            let before = record.before.get(path).cloned();
            let list = RecordedList {
                entry,
                injected,
                before,
                restored,
            };
            if is_flow {
                self.flow_list(&list);
            } else {
                self.recorded_block_list(&list);
            }
        } else if !is_flow {
            self.block_list(name, list, key);
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

    /// The lines of an item that is marked as injected.
    fn marked_lines(&self, item: NodeId) -> Option<(usize, usize)> {
        is_block_marked(self.view, item).then(|| self.item_lines(item))?
    }

    /// The lines of an item of a block list.
    fn item_lines(&self, item: NodeId) -> Option<(usize, usize)> {
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
            // Only the first of adjacent lines counts: those below may be items within an item.
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

/// The containers of a list that were not injected.
pub(crate) fn kept_containers(view: &View<'_>, spec: NodeId, list: &str, record: &Record) -> Vec<NodeId> {
    let Entry::Own(_, id) = view.entry(spec, list) else {
        return Vec::new();
    };
    let items = view.items(id);
    let injected = record::injected(view, record, list, items);
    let kept = items.iter().zip(injected).filter(|(_, injected)| !injected);
    let kept = kept.map(|(item, _)| *item);
    kept.filter(|item| !is_block_marked(view, *item)).collect()
}

/// The replaced containers that return to the list at `path`, as JSON.
fn restored(record: &Record, path: &str) -> Vec<(usize, String)> {
    let replaced = record.replaced.iter().filter(|_| path == "initContainers");
    let texts = replaced.map(|replaced| {
        let text = to_json_raw(&replaced.container).unwrap_or_default();
        (replaced.index, text)
    });
    texts.collect()
}

/// Whether an item has the mark of block style behind its name.
fn is_block_marked(view: &View<'_>, item: NodeId) -> bool {
    let Entry::Own(_, name) = view.entry(item, "name") else {
        return false;
    };
    let end = view.node(name).map_or(0, |node| node.span.end.offset);
    let rest = view.text.get(end..).unwrap_or_default();
    let is_known = view.scalar(name).is_some_and(is_injected_name);
    let marked = lines::skip_blanks(rest).strip_prefix(ITEM_MARK.as_bytes());
    let rest = marked.map(lines::skip_blanks);
    is_known && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"\n") || rest.starts_with(b"\r"))
}
