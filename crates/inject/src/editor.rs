//! Translates a plan into splices of the pod spec's text, or returns a finding if that is not possible.
//! Block style and flow style are edited differently; see [`block`] and [`flow`].

mod annotation;
pub(crate) mod block;
pub(crate) mod flow;

use std::collections::{BTreeSet, HashSet};

use mainstay_yaml::{NodeId, NodeKind};

use crate::item::Item;
use crate::plan::{End, PodEdit};
use crate::record::{self, Before, Record, Replaced};
use crate::rejection;
use crate::select::PodTemplate;
use crate::splice::Splice;
use crate::tree::{Entry, ListEntry, View};
use crate::write::Layout;
use crate::{Code, Finding};

pub(crate) type EditResult<T = ()> = Result<T, Finding>;

/// Returns an error if a map of `object` contains a key twice: parsers disagree on which of the two values
/// applies.
pub(crate) fn check_keys(view: &View<'_>, object: NodeId) -> EditResult {
    let Some(key) = view.duplicate_key(object) else {
        return Ok(());
    };
    let message = format!("key {:?} is given twice", view.scalar(key).unwrap_or_default());
    Err(rejection::reject(
        view,
        key,
        Code::DuplicateKey,
        message,
        "keep one of them",
    ))
}

/// Returns an error if `item`, which must be removed, contains a node that an alias elsewhere refers to.
pub(crate) fn check_anchors(view: &View<'_>, aliased: &BTreeSet<NodeId>, item: NodeId) -> EditResult {
    let Some(node) = view.node(item) else {
        return Ok(());
    };
    // Node IDs are in the order of the nodes' starts.
    let next = aliased.range(item..).next();
    let inside = |id: &&NodeId| {
        let other = view.node(**id);
        other.is_some_and(|other| other.span.start.offset < node.span.end.offset)
    };
    match next.filter(inside) {
        Some(id) => {
            let message =
                "the container that must be replaced contains an anchor that is used elsewhere".into();
            let help = "replace the alias with the value that it refers to, or remove the container";
            Err(rejection::reject(view, *id, Code::SharedAnchor, message, help))
        }
        None => Ok(()),
    }
}

/// Splices of one pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodSplices {
    pub(crate) splices: Vec<Splice>,
    /// Value of the undo annotation, if one is written.
    pub(crate) annotation: Option<String>,
}

/// A pod with its planned edits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodEdits<'j> {
    pub(crate) pod: &'j PodTemplate,
    pub(crate) edits: &'j [PodEdit],
    /// Init containers that were already removed from a flow list.
    pub(crate) replaced: &'j [Replaced],
}

/// Translates the edits of a pod spec into splices.
pub(crate) fn edit(
    view: &View<'_>,
    aliased: &BTreeSet<NodeId>,
    pod_edits: PodEdits<'_>,
) -> EditResult<PodSplices> {
    let PodEdits { pod, edits, replaced } = pod_edits;
    let Some(spec) = pod.spec.filter(|_| !edits.is_empty()) else {
        return Ok(PodSplices::default());
    };
    if let Some(node) = pod.shared {
        return Err(rejection::shared_node(
            view,
            node,
            "the pod spec, or a node that contains it,",
        ));
    }
    let mut editor = Editor {
        view,
        aliased,
        spec,
        layout: block::detect_layout(view, pod, spec),
        replaced_items: HashSet::new(),
        splices: Vec::new(),
        path: None,
        record: Record {
            replaced: replaced.to_vec(),
            ..Record::default()
        },
    };
    editor.apply(edits)?;
    let record = std::mem::take(&mut editor.record);
    let annotation = if record.is_empty() {
        None
    } else {
        Some(editor.annotate(pod.template, record)?)
    };
    Ok(PodSplices {
        splices: editor.splices,
        annotation,
    })
}

pub(crate) struct Editor<'v, 'a> {
    view: &'v View<'a>,
    aliased: &'v BTreeSet<NodeId>,
    spec: NodeId,
    layout: Layout,
    /// Items that are being replaced.
    replaced_items: HashSet<NodeId>,
    splices: Vec<Splice>,
    /// Path of the edited list in the undo record, if it is not a list of the pod spec.
    path: Option<String>,
    /// Edits of flow collections.
    record: Record,
}

/// Items to add at the start and at the end of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewItems<'e> {
    pub(crate) first: Vec<&'e Item>,
    pub(crate) last: Vec<&'e Item>,
}

impl<'e> NewItems<'e> {
    fn last(item: &'e Item) -> Self {
        Self {
            first: Vec::new(),
            last: vec![item],
        }
    }

    /// Returns all items in their order.
    pub(crate) fn in_order(&self) -> Vec<&'e Item> {
        self.first.iter().chain(&self.last).copied().collect()
    }
}

impl Editor<'_, '_> {
    fn apply(&mut self, edits: &[PodEdit]) -> EditResult {
        let mut lists: Vec<(&'static str, NewItems<'_>)> = Vec::new();
        for edit in edits {
            match edit {
                PodEdit::Remove { list, name } => self.remove_items(list, name)?,
                PodEdit::Mount { lists, mount } => self.add_mounts(lists, mount)?,
                PodEdit::Insert { list, item, end } => {
                    self.check_container_name(list, item)?;
                    let new_items = list_additions(&mut lists, list);
                    match end {
                        End::First => new_items.first.push(item),
                        End::Last => new_items.last.push(item),
                    }
                }
                PodEdit::InsertIfAbsent { list, item } if !self.has_same_name(self.spec, list, item)? => {
                    list_additions(&mut lists, list).last.push(item);
                }
                PodEdit::InsertIfAbsent { .. } => {}
            }
        }
        // Deeper insertions come first: at the end of a pod spec several insertions have the same offset.
        for (list, new_items) in lists {
            self.add_items(self.spec, list, &new_items)?;
        }
        Ok(())
    }

    /// Checks that no container has the name of an init container: names are unique among all containers of
    /// a pod.
    fn check_container_name(&self, list: &str, item: &Item) -> EditResult {
        if list != "initContainers" {
            return Ok(());
        }
        let containers = self.view.get(self.spec, "containers");
        let items = containers.into_iter().flat_map(|list| self.view.items(list));
        let mut same_name = items.filter(|id| self.view.scalar_at(**id, &["name"]) == item.name());
        let Some(other) = same_name.next() else {
            return Ok(());
        };
        let message = format!(
            "a container is called {:?}, the name of an init container that must be added",
            item.name().unwrap_or_default()
        );
        let help = "remove it, or give it another name";
        Err(rejection::reject(
            self.view,
            *other,
            Code::NameConflict,
            message,
            help,
        ))
    }

    fn remove_items(&mut self, list: &str, name: &str) -> EditResult {
        let entry = self.view.entry(self.spec, list);
        let Some(items) = entry.value() else { return Ok(()) };
        for item in self.view.items(items) {
            if self.view.scalar_at(*item, &["name"]) != Some(name) {
                continue;
            }
            self.check_editable(entry, list)?;
            check_anchors(self.view, self.aliased, *item)?;
            // Items of flow lists were removed before: see [`crate::undo::clear_lists`].
            if !self.is_flow(items) {
                self.comment_out_item(*item)?;
            }
            self.replaced_items.insert(*item);
        }
        Ok(())
    }

    fn add_mounts(&mut self, lists: &[&str], mount: &Item) -> EditResult {
        for list in lists {
            let entry = self.view.entry(self.spec, list);
            let Some(containers) = entry.value() else { continue };
            if self.view.is_null(self.view.resolve(containers)) {
                continue;
            }
            self.is_flow_list(containers, list)?;
            let items = self.view.items(containers).iter();
            let kept: Vec<NodeId> = items
                .copied()
                .filter(|item| !self.replaced_items.contains(item))
                .collect();
            let paths = record::mount_paths(self.view, list, &kept);
            for (container, path) in kept.into_iter().zip(paths) {
                if !self.has_same_name(container, "volumeMounts", mount)? {
                    self.check_editable(entry, list)?;
                    self.check_not_shared(container, "the container")?;
                    self.path = Some(path);
                    self.add_items(container, "volumeMounts", &NewItems::last(mount))?;
                    self.path = None;
                }
            }
        }
        Ok(())
    }

    /// Whether list `key` of `map` contains an item with the name of `item`.
    fn has_same_name(&self, map: NodeId, key: &str, item: &Item) -> EditResult<bool> {
        let target = self.view.resolve(map);
        if !matches!(
            self.view.node(target).map(|node| &node.kind),
            Some(NodeKind::Map { .. })
        ) {
            return Err(rejection::wrong_type(self.view, map, "the container", "a map"));
        }
        let Some(list) = self.view.get(map, key) else {
            return Ok(false);
        };
        if !self.view.is_null(self.view.resolve(list)) {
            self.is_flow_list(list, key)?;
        }
        let mut items = self.view.items(list).iter();
        Ok(items.any(|other| self.view.scalar_at(*other, &["name"]) == item.name()))
    }

    /// Adds items to list `key` of `map`; creates the list if it is absent.
    fn add_items(&mut self, map: NodeId, key: &'static str, new_items: &NewItems<'_>) -> EditResult {
        let entry = self.view.entry(map, key);
        let Entry::Own(name, value) = entry else {
            self.check_editable(entry, key)?;
            return self.create_list(map, key, new_items);
        };
        self.check_editable(entry, key)?;
        let list = ListEntry {
            map,
            key: name,
            list: value,
        };
        if self.view.is_null(value) {
            return self.fill_list(list, key, new_items);
        }
        match self.is_flow_list(value, key)? {
            _ if self.view.items(value).is_empty() => self.fill_list(list, key, new_items),
            true if self
                .view
                .items(value)
                .iter()
                .all(|item| self.replaced_items.contains(item)) =>
            {
                self.fill_list(list, key, new_items)
            }
            true => self.add_to_flow_list(list, key, new_items),
            false => self.add_to_block_list(name, value, new_items),
        }
    }

    fn create_list(&mut self, map: NodeId, key: &'static str, new_items: &NewItems<'_>) -> EditResult {
        if self.is_flow(map) {
            self.create_flow_list(map, key, new_items)
        } else {
            self.create_block_list(map, key, new_items)
        }
    }

    /// Adds items to a list that is empty or null.
    fn fill_list(&mut self, entry: ListEntry, key: &str, new_items: &NewItems<'_>) -> EditResult {
        if is_on_own_line(self.view, entry.map, entry.key) {
            self.fill_block_list(entry, key, new_items)
        } else {
            self.fill_flow_list(entry, key, new_items)
        }
    }

    /// Records an edit of a flow list.
    fn record_edit(&mut self, key: &str, new_items: &NewItems<'_>, before: Option<Before>) {
        let names = new_items
            .in_order()
            .into_iter()
            .filter_map(Item::name)
            .map(str::to_owned);
        let path = self.path.as_deref().unwrap_or(key);
        self.record.add(path, names.collect(), before);
    }

    /// Checks that an entry may be edited: it is absent, or in the map itself and not shared.
    fn check_editable(&self, entry: Entry, what: &str) -> EditResult {
        match entry {
            Entry::Absent => Ok(()),
            Entry::Own(_, value) => self.check_not_shared(value, what),
            Entry::Merged(value) => Err(rejection::shared_node(self.view, value, what)),
        }
    }

    fn check_not_shared(&self, id: NodeId, what: &str) -> EditResult {
        if self.aliased.contains(&id) || self.view.resolve(id) != id {
            return Err(rejection::shared_node(self.view, id, what));
        }
        Ok(())
    }

    /// Whether `id` is a list in flow style; an error if it is not a list.
    fn is_flow_list(&self, id: NodeId, what: &str) -> EditResult<bool> {
        match self.view.node(self.view.resolve(id)).map(|node| &node.kind) {
            Some(NodeKind::List { flow, .. }) => Ok(*flow),
            _ => Err(rejection::wrong_type(self.view, id, what, "a list")),
        }
    }

    fn is_flow(&self, id: NodeId) -> bool {
        self.view.is_flow(id)
    }
}

/// Whether the flow list of `entry` is on its own lines and contains only items of `names`: then its
/// lines become comments when new items replace them.
pub(crate) fn becomes_comment_lines(view: &View<'_>, entry: ListEntry, names: &[&str]) -> bool {
    let is_replaced = |item: &NodeId| {
        let name = view.scalar_at(*item, &["name"]);
        name.is_some_and(|name| names.contains(&name))
    };
    is_on_own_line(view, entry.map, entry.key) && view.items(entry.list).iter().all(is_replaced)
}

/// Whether the entry of `key` in `map` starts on its own line.
fn is_on_own_line(view: &View<'_>, map: NodeId, key: NodeId) -> bool {
    let at = view.node(key).map(|node| node.span.start.offset);
    !view.is_flow(map) && at.is_some_and(|at| crate::lines::indent(view.text, at).is_some())
}

fn list_additions<'l, 'e>(
    lists: &'l mut Vec<(&'static str, NewItems<'e>)>,
    list: &'static str,
) -> &'l mut NewItems<'e> {
    let at = lists
        .iter()
        .position(|(name, _)| *name == list)
        .unwrap_or_else(|| {
            lists.push((list, NewItems::default()));
            lists.len() - 1
        });
    // The position was found or created above.
    #[allow(clippy::indexing_slicing)]
    &mut lists[at].1
}
