//! Translates a plan into splices of the pod spec's text, or a finding if that is not possible. Every list is
//! edited in its own style; see [`block`] and [`flow`].

mod annotation;
pub(crate) mod block;
pub(crate) mod flow;

use std::collections::{BTreeSet, HashSet};

use mainstay_yaml::{NodeId, NodeKind};

use crate::item::Item;
use crate::plan::{End, PodEdit};
use crate::record::{self, Before, Record, Replaced};
use crate::rejection;
use crate::select::Found;
use crate::splice::Splice;
use crate::tree::{Entry, View};
use crate::write::Layout;
use crate::{Code, Finding};

/// Result of an edit.
pub(crate) type Edited<T = ()> = Result<T, Finding>;

/// An error if a key stands twice in one map of `object`: which of the two counts depends on the reader.
pub(crate) fn check_keys(view: &View<'_>, object: NodeId) -> Edited {
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

/// What is taken away must not hold what an alias elsewhere stands for.
pub(crate) fn check_anchors(view: &View<'_>, aliased: &BTreeSet<NodeId>, item: NodeId) -> Edited {
    let Some(node) = view.node(item) else {
        return Ok(());
    };
    // Nodes are numbered in the order they start.
    let next = aliased.range(item..).next();
    let inside = |id: &&NodeId| {
        let other = view.node(**id);
        other.is_some_and(|other| other.span.start.offset < node.span.end.offset)
    };
    match next.filter(inside) {
        Some(id) => {
            let message = "the container that must be replaced holds an anchor that is used elsewhere".into();
            let help = "write out what the alias stands for, or remove the container";
            Err(rejection::reject(view, *id, Code::SharedAnchor, message, help))
        }
        None => Ok(()),
    }
}

/// The edits of one pod as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct PodSplices {
    pub(crate) splices: Vec<Splice>,
    /// The value of the undo annotation, if the pod gets one.
    pub(crate) annotation: Option<String>,
}

/// A pod to edit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PodJob<'j> {
    pub(crate) found: &'j Found,
    pub(crate) edits: &'j [PodEdit],
    /// Init containers that were taken out of a flow list beforehand.
    pub(crate) replaced: &'j [Replaced],
}

/// Translates the edits of a pod spec into splices.
pub(crate) fn edit(view: &View<'_>, aliased: &BTreeSet<NodeId>, job: PodJob<'_>) -> Edited<PodSplices> {
    let PodJob {
        found,
        edits,
        replaced,
    } = job;
    let Some(spec) = found.spec.filter(|_| !edits.is_empty()) else {
        return Ok(PodSplices::default());
    };
    if let Some(node) = found.shared {
        return Err(rejection::shared(
            view,
            node,
            "the pod spec, or what it stands in,",
        ));
    }
    let mut editor = Editor {
        view,
        aliased,
        spec,
        layout: block::layout(view, found, spec),
        dropped: HashSet::new(),
        splices: Vec::new(),
        path: None,
        record: Record {
            replaced: replaced.to_vec(),
            ..Record::default()
        },
    };
    editor.all(edits)?;
    let record = std::mem::take(&mut editor.record);
    let annotation = if record.is_empty() {
        None
    } else {
        Some(editor.annotate(found.template, record)?)
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
    dropped: HashSet<NodeId>,
    splices: Vec<Splice>,
    /// The path of the list that is edited, if it is not a list of the pod spec.
    path: Option<String>,
    /// The edits of flow collections.
    record: Record,
}

/// What joins a list, and at which end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joining<'e> {
    pub(crate) first: Vec<&'e Item>,
    pub(crate) last: Vec<&'e Item>,
}

impl<'e> Joining<'e> {
    fn last(item: &'e Item) -> Self {
        Self {
            first: Vec::new(),
            last: vec![item],
        }
    }

    /// All of them, in their order.
    pub(crate) fn all(&self) -> Vec<&'e Item> {
        self.first.iter().chain(&self.last).copied().collect()
    }
}

impl Editor<'_, '_> {
    fn all(&mut self, edits: &[PodEdit]) -> Edited {
        let mut lists: Vec<(&'static str, Joining<'_>)> = Vec::new();
        for edit in edits {
            match edit {
                PodEdit::Drop { list, name } => self.drop_items(list, name)?,
                PodEdit::Mount { lists, mount } => self.mount(lists, mount)?,
                PodEdit::Put { list, item, end } => {
                    self.check_name(list, item)?;
                    let joining = joining(&mut lists, list);
                    match end {
                        End::First => joining.first.push(item),
                        End::Last => joining.last.push(item),
                    }
                }
                PodEdit::Share { list, item } if !self.has(self.spec, list, item)? => {
                    joining(&mut lists, list).last.push(item);
                }
                PodEdit::Share { .. } => {}
            }
        }
        // What goes in deeper goes in first: at the end of a pod spec several insertions share one place.
        for (list, joining) in lists {
            self.join(self.spec, list, &joining)?;
        }
        Ok(())
    }

    /// Names are unique among all containers of a pod.
    fn check_name(&self, list: &str, item: &Item) -> Edited {
        if list != "initContainers" {
            return Ok(());
        }
        let containers = self.view.get(self.spec, "containers");
        let taken = containers.into_iter().flat_map(|list| self.view.items(list));
        let mut taken = taken.filter(|id| self.view.scalar_at(**id, &["name"]) == item.name());
        let Some(other) = taken.next() else { return Ok(()) };
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

    fn drop_items(&mut self, list: &str, name: &str) -> Edited {
        let entry = self.view.entry(self.spec, list);
        let Some(items) = entry.value() else { return Ok(()) };
        for item in self.view.items(items) {
            if self.view.scalar_at(*item, &["name"]) != Some(name) {
                continue;
            }
            self.own(entry, list)?;
            check_anchors(self.view, self.aliased, *item)?;
            // In a flow list it was taken out before: see [`crate::undo::clear_lists`].
            if !self.is_flow(items) {
                self.drop_block_item(*item)?;
            }
            self.dropped.insert(*item);
        }
        Ok(())
    }

    fn mount(&mut self, lists: &[&str], mount: &Item) -> Edited {
        for list in lists {
            let entry = self.view.entry(self.spec, list);
            let Some(containers) = entry.value() else { continue };
            if self.view.is_null(self.view.resolve(containers)) {
                continue;
            }
            self.list(containers, list)?;
            let items = self.view.items(containers).iter();
            let kept: Vec<NodeId> = items
                .copied()
                .filter(|item| !self.dropped.contains(item))
                .collect();
            let paths = record::mount_paths(self.view, list, &kept);
            for (container, path) in kept.into_iter().zip(paths) {
                if !self.has(container, "volumeMounts", mount)? {
                    self.own(entry, list)?;
                    self.own_node(container, "the container")?;
                    self.path = Some(path);
                    self.join(container, "volumeMounts", &Joining::last(mount))?;
                    self.path = None;
                }
            }
        }
        Ok(())
    }

    /// Whether list `key` of `map` has an item called as `item` is.
    fn has(&self, map: NodeId, key: &str, item: &Item) -> Edited<bool> {
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
            self.list(list, key)?;
        }
        let mut items = self.view.items(list).iter();
        Ok(items.any(|other| self.view.scalar_at(*other, &["name"]) == item.name()))
    }

    /// Puts items into list `key` of `map`, which is there or is made.
    fn join(&mut self, map: NodeId, key: &'static str, joining: &Joining<'_>) -> Edited {
        let entry = self.view.entry(map, key);
        let Entry::Own(name, value) = entry else {
            self.own(entry, key)?;
            return self.create(map, key, joining);
        };
        self.own(entry, key)?;
        if self.view.is_null(value) {
            return self.fill(map, (name, value), key, joining);
        }
        match self.list(value, key)? {
            _ if self.view.items(value).is_empty() => self.fill(map, (name, value), key, joining),
            true if self
                .view
                .items(value)
                .iter()
                .all(|item| self.dropped.contains(item)) =>
            {
                self.fill(map, (name, value), key, joining)
            }
            true => self.join_flow(map, (key, value), joining),
            false => self.join_block(name, value, joining),
        }
    }

    fn create(&mut self, map: NodeId, key: &'static str, joining: &Joining<'_>) -> Edited {
        if self.is_flow(map) {
            self.create_flow(map, key, joining)
        } else {
            self.create_block(map, key, joining)
        }
    }

    /// Puts items where an empty list or nothing stands.
    fn fill(&mut self, map: NodeId, entry: (NodeId, NodeId), key: &str, joining: &Joining<'_>) -> Edited {
        if has_lines(self.view, map, entry.0) {
            self.fill_block(entry, key, joining)
        } else {
            self.fill_flow(map, (key, entry.1), joining)
        }
    }

    /// Records an edit of a flow list.
    fn note(&mut self, key: &str, joining: &Joining<'_>, before: Option<Before>) {
        let names = joining
            .all()
            .into_iter()
            .filter_map(Item::name)
            .map(str::to_owned);
        let path = self.path.as_deref().unwrap_or(key);
        self.record.add(path, names.collect(), before);
    }

    /// Checks that an entry may be edited: absent, or written here and not shared.
    fn own(&self, entry: Entry, what: &str) -> Edited {
        match entry {
            Entry::Absent => Ok(()),
            Entry::Own(_, value) => self.own_node(value, what),
            Entry::Merged(value) => Err(rejection::shared(self.view, value, what)),
        }
    }

    fn own_node(&self, id: NodeId, what: &str) -> Edited {
        if self.aliased.contains(&id) || self.view.resolve(id) != id {
            return Err(rejection::shared(self.view, id, what));
        }
        Ok(())
    }

    /// Whether `id` is a list in brackets; an error if it is no list.
    fn list(&self, id: NodeId, what: &str) -> Edited<bool> {
        match self.view.node(self.view.resolve(id)).map(|node| &node.kind) {
            Some(NodeKind::List { flow, .. }) => Ok(*flow),
            _ => Err(rejection::wrong_type(self.view, id, what, "a list")),
        }
    }

    fn is_flow(&self, id: NodeId) -> bool {
        self.view.is_flow(id)
    }
}

/// Whether the flow list under `entry` holds only items of `names` and is on its own lines: then these lines
/// become comments when new items replace them.
pub(crate) fn becomes_lines(
    view: &View<'_>,
    map: NodeId,
    (key, list): (NodeId, NodeId),
    names: &[&str],
) -> bool {
    let goes = |item: &NodeId| {
        let name = view.scalar_at(*item, &["name"]);
        name.is_some_and(|name| names.contains(&name))
    };
    has_lines(view, map, key) && view.items(list).iter().all(goes)
}

/// Whether `key` of `map` is on its own lines.
fn has_lines(view: &View<'_>, map: NodeId, key: NodeId) -> bool {
    let at = view.node(key).map(|node| node.span.start.offset);
    !view.is_flow(map) && at.is_some_and(|at| crate::lines::indent(view.text, at).is_some())
}

fn joining<'l, 'e>(
    lists: &'l mut Vec<(&'static str, Joining<'e>)>,
    list: &'static str,
) -> &'l mut Joining<'e> {
    let at = lists
        .iter()
        .position(|(name, _)| *name == list)
        .unwrap_or_else(|| {
            lists.push((list, Joining::default()));
            lists.len() - 1
        });
    // The position was just found or made.
    #[allow(clippy::indexing_slicing)]
    &mut lists[at].1
}
