//! Removes earlier injections: translates the marks and the undo records of a parsed document into splices.
//! An item without a mark or a record is kept, whatever its name.

mod annotation;
pub(crate) mod flow;
mod replaced_line;

use std::ops::Range;

use mainstay_yaml::{NodeId, Value, to_json_raw};

use crate::Finding;
use crate::editor::{self, block};
use crate::lines;
use crate::mark::ITEM_MARK;
use crate::record::{self, Lookup, Record, Replaced, is_injected_name};
use crate::select::PodTemplate;
use crate::semantic;
use crate::splice::Splice;
use crate::tree::{Entry, ListEntry, View};
use flow::{RecordedList, Replacement};
use replaced_line::{ReplacedLine, find_replaced_lines};

/// Result of removing init containers that will be replaced from flow lists.
#[derive(Debug, Default)]
pub(crate) struct ClearedLists {
    /// Sorted edits.
    pub(crate) splices: Vec<Splice>,
    /// Errors about containers that could not be restored later and are kept.
    pub(crate) rejected: Vec<Finding>,
    /// Removed containers, per pod.
    pub(crate) replaced: Vec<Vec<Replaced>>,
}

/// Removes the init containers that will be replaced from flow lists; `value` is the value of the document.
/// Lists on their own lines are left to the editor, which turns the lines into comments.
pub(crate) fn clear_lists(
    view: &View<'_>,
    value: Option<&Value>,
    replacements: &[ContainerReplacement<'_>],
) -> ClearedLists {
    let mut cleared = ClearedLists::default();
    let mut aliased = None;
    for replacement in replacements {
        let mut replaced = Vec::new();
        if let Some(entry) = replaced_list(view, replacement)
            && view.is_flow(entry.list)
            && !editor::becomes_comment_lines(view, entry, &replacement.names)
        {
            let list = entry.list;
            let aliased = aliased.get_or_insert_with(|| view.aliased_nodes());
            let names = &replacement.names;
            let positions = flow::clear_list(view, Replacement { list, names, aliased }, &mut cleared);
            let spec = value.and_then(|document| semantic::get(document, &replacement.pod.steps));
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

fn replaced_list(view: &View<'_>, replacement: &ContainerReplacement<'_>) -> Option<ListEntry> {
    let pod = replacement.pod;
    let spec = pod
        .spec
        .filter(|_| pod.shared.is_none() && !replacement.names.is_empty())?;
    match view.entry(spec, "initContainers") {
        Entry::Own(key, list) => Some(ListEntry { map: spec, key, list }),
        _ => None,
    }
}

/// A pod with init containers that will be replaced.
#[derive(Clone, Debug)]
pub(crate) struct ContainerReplacement<'f> {
    pub(crate) pod: &'f PodTemplate,
    /// Names of these init containers.
    pub(crate) names: Vec<&'static str>,
}

/// Returns the sorted splices that remove the injection from all `pods`. Ranges in `frozen` are not edited.
pub(crate) fn undo(view: &View<'_>, pods: &[&PodTemplate], frozen: &[(usize, usize)]) -> Vec<Splice> {
    let mut undo = Undo {
        view,
        replaced_lines: find_replaced_lines(view, frozen),
        discarded: Vec::new(),
        removed: Vec::new(),
        splices: Vec::new(),
    };
    for pod in pods {
        undo.undo_pod(pod);
    }
    undo.finish()
}

struct Undo<'v, 'a> {
    view: &'v View<'a>,
    /// Replaced lines that were kept as comments.
    replaced_lines: Vec<ReplacedLine>,
    /// Index ranges of replaced lines that are not restored.
    discarded: Vec<Range<usize>>,
    /// Line ranges to remove.
    removed: Vec<(usize, usize)>,
    splices: Vec<Splice>,
}

impl Undo<'_, '_> {
    fn undo_pod(&mut self, pod: &PodTemplate) {
        let Some(spec) = pod.spec.filter(|_| pod.shared.is_none()) else {
            return;
        };
        let recorded = match record::find(self.view, pod.template) {
            Lookup::Found(recorded) => Some(recorded),
            Lookup::Absent | Lookup::Invalid(_) => None,
        };
        let none = Record::default();
        let record = recorded.as_ref().map_or(&none, |recorded| &recorded.record);
        self.undo_list(spec, "initContainers", "initContainers", record);
        self.undo_list(spec, "volumes", "volumes", record);
        for list in ["containers", "initContainers"] {
            let kept = kept_containers(self.view, spec, list, record);
            let paths = record::mount_paths(self.view, list, &kept);
            for (container, path) in kept.into_iter().zip(paths) {
                if self.view.resolve(container) == container {
                    self.undo_list(container, "volumeMounts", &path, record);
                }
            }
        }
        if let Some(recorded) = recorded {
            self.remove_annotation(pod.template, &recorded);
        }
    }

    fn undo_list(&mut self, map: NodeId, key: &str, path: &str, record: &Record) {
        let Entry::Own(name, list) = self.view.entry(map, key) else {
            return;
        };
        let Some(is_flow) = flow::list_style(self.view, list) else {
            return;
        };
        let items = self.view.items(list);
        let injected = record::injected_flags(self.view, record, path, items);
        let restored = restored_containers(record, path);
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
                self.undo_flow_list(&list);
            } else {
                self.undo_recorded_block_list(&list);
            }
        } else if !is_flow {
            self.undo_block_list(name, list, key);
        }
    }

    fn undo_block_list(&mut self, name: NodeId, list: NodeId, key: &str) {
        let items = self.view.items(list);
        let injected: Vec<(usize, usize)> =
            items.iter().filter_map(|item| self.marked_lines(*item)).collect();
        let Some(end) = injected.last().map(|(_, end)| *end) else {
            return;
        };
        let key_line = lines::start(self.view.text, self.start(name));
        let is_created = injected.len() == items.len()
            && self.is_bare_key(name, key)
            && !self.has_replaced_items(key_line, end, items);
        self.removed.extend(injected);
        if is_created {
            self.removed
                .push((key_line, lines::end(self.view.text, key_line)));
        } else {
            self.discard_replaced_key(name, key);
        }
    }

    /// Returns the lines of an item that is marked as injected.
    fn marked_lines(&self, item: NodeId) -> Option<(usize, usize)> {
        is_block_marked(self.view, item).then(|| self.item_lines(item))?
    }

    /// Returns the lines of an item of a block list.
    fn item_lines(&self, item: NodeId) -> Option<(usize, usize)> {
        let dash = block::dash_position(self.view, item)?;
        let end = block::insertion_point_after(self.view, item)?;
        Some((lines::start(self.view.text, dash), end.at))
    }

    /// Whether the key's line contains nothing else, as the line of an injected key.
    fn is_bare_key(&self, name: NodeId, key: &str) -> bool {
        let line = lines::line(self.view.text, self.start(name));
        line.trim_ascii().strip_suffix(b":") == Some(key.as_bytes())
    }

    /// Whether items of this list were replaced, so that the list belongs to the user.
    fn has_replaced_items(&self, key_line: usize, end: usize, items: &[NodeId]) -> bool {
        let column = items
            .first()
            .and_then(|item| block::dash_position(self.view, *item))
            .and_then(|dash| lines::indent(self.view.text, dash));
        let end = self.end_of_comments(end);
        let from = self
            .replaced_lines
            .partition_point(|replaced| replaced.line <= key_line);
        let to = self
            .replaced_lines
            .partition_point(|replaced| replaced.line < end);
        let mut before = None;
        let within = self.replaced_lines.get(from..to).unwrap_or_default();
        within.iter().any(|replaced| {
            // Only the first of adjacent lines is checked: the others may contain items nested in its item.
            let follows = before.replace(replaced.end) == Some(replaced.line);
            !follows && column.is_some() && replaced.dash_column(self.view.text) == column
        })
    }

    /// Returns the end of the comments and blank lines that follow `from`.
    fn end_of_comments(&self, from: usize) -> usize {
        let text = self.view.text;
        let mut at = from;
        while at < text.len() && lines::are_blank_or_comments(text, at, lines::end(text, at)) {
            at = lines::end(text, at);
        }
        at
    }

    /// Discards the replaced lines of a formerly empty list to which the user has added items.
    fn discard_replaced_key(&mut self, name: NodeId, key: &str) {
        let text = self.view.text;
        let Some(column) = lines::indent(text, self.start(name)) else {
            return;
        };
        let mut line = self.start(name) - column;
        let below = self
            .replaced_lines
            .partition_point(|replaced| replaced.end <= line);
        for index in (0..below).rev() {
            let Some(replaced) = self
                .replaced_lines
                .get(index)
                .filter(|replaced| replaced.end == line)
            else {
                return;
            };
            line = replaced.line;
            if replaced.is_key(text, key, column) {
                self.discarded.push(index..below);
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
        // If the text ended without a line break, the new text does so as well.
        if let Some(last) = merged
            .last_mut()
            .filter(|last| last.1 == text.len() && !text.ends_with(b"\n"))
        {
            last.0 = lines::preceding_break(text, last.0);
        }
        let removals = merged.into_iter().map(|(start, end)| Splice::remove(start, end));
        self.splices.extend(removals);
        self.discarded.sort_unstable_by_key(|range| range.start);
        let mut from = 0;
        let end = self.replaced_lines.len();
        for range in self.discarded.into_iter().chain(std::iter::once(end..end)) {
            let kept = self.replaced_lines.get(from..range.start).unwrap_or_default();
            self.splices.extend(kept.iter().map(ReplacedLine::restore));
            from = range.end;
        }
        crate::splice::sort(&mut self.splices);
        self.splices
    }
}

/// Returns the containers of a list that were not injected.
pub(crate) fn kept_containers(view: &View<'_>, spec: NodeId, list: &str, record: &Record) -> Vec<NodeId> {
    let Entry::Own(_, id) = view.entry(spec, list) else {
        return Vec::new();
    };
    let items = view.items(id);
    let injected = record::injected_flags(view, record, list, items);
    let kept = items.iter().zip(injected).filter(|(_, injected)| !injected);
    let kept = kept.map(|(item, _)| *item);
    kept.filter(|item| !is_block_marked(view, *item)).collect()
}

/// Returns the replaced containers to restore in the list at `path`, as JSON with their index.
fn restored_containers(record: &Record, path: &str) -> Vec<(usize, String)> {
    let replaced = record.replaced.iter().filter(|_| path == "initContainers");
    let texts = replaced.map(|replaced| {
        let text = to_json_raw(&replaced.container).unwrap_or_default();
        (replaced.index, text)
    });
    texts.collect()
}

/// Whether the mark of block style follows the name of an item.
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
