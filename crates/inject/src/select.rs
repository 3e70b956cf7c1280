//! Finds the pod templates of a document and the paths to them.

use std::collections::BTreeSet;

use mainstay_yaml::{NodeId, NodeKind};

use crate::PodTemplatePath;
use crate::ask::is_ours;
use crate::tree::{Entry, View};

/// Kinds with pods, their API groups, and the keys to the pod template. A table.
const KINDS: &[(&str, &[&str], &[&str])] = &[
    ("Pod", &[""], &[]),
    ("ReplicationController", &[""], &["spec", "template"]),
    ("Deployment", APPS, &["spec", "template"]),
    ("ReplicaSet", APPS, &["spec", "template"]),
    ("DaemonSet", APPS, &["spec", "template"]),
    ("StatefulSet", APPS, &["spec", "template"]),
    ("Job", &["batch"], &["spec", "template"]),
    (
        "CronJob",
        &["batch"],
        &["spec", "jobTemplate", "spec", "template"],
    ),
];

const APPS: &[&str] = &["apps", "extensions"];

/// Reports whether objects of `kind` may have pod templates, or items that have.
pub(crate) fn may_have_pods(kind: &str, paths: &[PodTemplatePath]) -> bool {
    let is_known = KINDS.iter().any(|(name, ..)| *name == kind);
    is_known || kind.ends_with("List") || paths.iter().any(|path| path.kind == kind)
}

/// How deep lists of lists are entered.
const LISTS: usize = 8;

/// One step from a document's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Into a map.
    Key(String),
    /// Into a list.
    Index(usize),
}

/// One pod template.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    /// The object.
    pub(crate) object: NodeId,
    /// The pod template.
    pub(crate) template: NodeId,
    /// The pod spec, if there is a map.
    pub(crate) spec: Option<NodeId>,
    /// The way to the pod template from the object, for people.
    pub(crate) path: String,
    /// The way to the pod spec from the document's root.
    pub(crate) steps: Vec<Step>,
    /// The first node on that way that others see as well, through an alias or a merge.
    pub(crate) shared: Option<NodeId>,
    /// The pod spec found in an object of unknown kind.
    pub(crate) stranger: Option<NodeId>,
}

impl Found {
    /// The index of its item if the document is a list.
    pub(crate) fn item(&self) -> Option<usize> {
        match self.steps.get(..2)? {
            [Step::Key(_), Step::Index(index)] => Some(*index),
            _ => None,
        }
    }
}

/// Every pod template of `view`, and every pod of ours in objects of unknown kind.
pub(crate) fn select(view: &View<'_>, paths: &[PodTemplatePath]) -> Vec<Found> {
    let mut finder = Finder {
        view,
        paths,
        aliased: view.shared(),
        found: Vec::new(),
    };
    if let Some(root) = view.document.root() {
        let way = finder.start(root);
        finder.object(&way, None, LISTS);
    }
    finder.found
}

/// A node, how it was reached, and what on the way is shared.
#[derive(Clone)]
struct Way {
    node: NodeId,
    steps: Vec<Step>,
    shared: Option<NodeId>,
}

struct Finder<'v, 'a> {
    view: &'v View<'a>,
    paths: &'v [PodTemplatePath],
    aliased: BTreeSet<NodeId>,
    found: Vec<Found>,
}

impl Finder<'_, '_> {
    fn start(&self, node: NodeId) -> Way {
        Way {
            node,
            steps: Vec::new(),
            shared: self.aliased.contains(&node).then_some(node),
        }
    }

    fn object(&mut self, way: &Way, implied: Option<&str>, lists: usize) {
        let text = |key| self.view.scalar_at(way.node, &[key]).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let kind = if kind.is_empty() {
            implied.unwrap_or_default()
        } else {
            kind
        }
        .to_owned();
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let templates = self.templates(way, &kind, (!api_version.is_empty()).then_some(group));
        for (template, path) in &templates {
            let found = self.found(way, &kind, template, path.clone());
            self.found.push(found);
        }
        if !templates.is_empty() {
            return;
        }
        match (kind.strip_suffix("List"), self.key(way, "items")) {
            (Some(of), Some(items)) if lists > 0 => self.list(&items, of, lists - 1),
            _ => self.stranger(way, &kind),
        }
    }

    fn list(&mut self, items: &Way, of: &str, lists: usize) {
        for index in 0..self.view.items(items.node).len() {
            if let Some(item) = self.index(items, index) {
                self.object(&item, Some(of), lists);
            }
        }
    }

    /// The pod templates of an object with the keys to them; none for kinds without.
    fn templates(&self, object: &Way, kind: &str, group: Option<&str>) -> Vec<(Way, String)> {
        let given = self.paths.iter().filter(|path| {
            path.kind == kind && path.group.as_deref().is_none_or(|wanted| Some(wanted) == group)
        });
        let known = KINDS
            .iter()
            .filter(|(name, groups, _)| *name == kind && group.is_none_or(|group| groups.contains(&group)));
        let known = known.map(|(_, _, path)| path.iter().map(|key| (*key).to_owned()).collect());
        let paths: Vec<Vec<String>> = known.chain(given.map(|path| path.path.clone())).collect();
        let mut templates = Vec::new();
        for path in paths {
            let reached = self.reach(object.clone(), &path);
            if reached.is_empty() {
                // A known kind without a template: reported as a workload without a pod spec.
                templates.push((object.clone(), path.join(".")));
            }
            let shown = |way: Way| {
                let path = show(way.steps.get(object.steps.len()..).unwrap_or_default());
                (way, path)
            };
            templates.extend(reached.into_iter().map(shown));
        }
        templates
    }

    fn reach(&self, from: Way, path: &[String]) -> Vec<Way> {
        path.iter().fold(vec![from], |ways, key| {
            let name = key.trim_end_matches("[]");
            let next = ways.iter().filter_map(|way| self.key(way, name));
            if name.len() == key.len() {
                return next.collect();
            }
            next.flat_map(|list| {
                let count = self.view.items(list.node).len();
                (0..count)
                    .filter_map(move |index| self.index(&list, index))
                    .collect::<Vec<_>>()
            })
            .collect()
        })
    }

    fn found(&self, object: &Way, kind: &str, template: &Way, path: String) -> Found {
        let at_template = template.steps.len() > object.steps.len() || path.is_empty();
        let spec = if at_template {
            self.key(template, "spec")
        } else {
            None
        };
        let spec = spec.filter(|way| self.is_map(way.node));
        let way = spec.as_ref().unwrap_or(template);
        let text = |keys: &[&str]| self.view.scalar_at(object.node, keys).map(str::to_owned);
        Found {
            api_version: text(&["apiVersion"]).unwrap_or_default(),
            kind: kind.to_owned(),
            name: text(&["metadata", "name"]).unwrap_or_default(),
            namespace: text(&["metadata", "namespace"]),
            object: object.node,
            template: template.node,
            steps: way.steps.clone(),
            shared: way.shared,
            spec: spec.map(|way| way.node),
            path,
            stranger: None,
        }
    }

    /// Reports a Contrast pod in an unknown kind, which would otherwise ship without an initializer.
    fn stranger(&mut self, object: &Way, kind: &str) {
        let mut open = vec![object.node];
        while let Some(id) = open.pop() {
            match self.view.node(id).map(|node| &node.kind) {
                Some(NodeKind::List { items, .. }) => open.extend(items),
                Some(NodeKind::Map { entries, .. }) => {
                    if is_ours(self.view, id) && self.view.get(id, "containers").is_some() {
                        let mut found = self.found(object, kind, object, "?".into());
                        found.path = String::new();
                        found.stranger = Some(id);
                        self.found.push(found);
                        return;
                    }
                    open.extend(entries.iter().map(|(_, value)| *value));
                }
                _ => {}
            }
        }
    }

    fn is_map(&self, id: NodeId) -> bool {
        let node = self.view.node(self.view.resolve(id));
        matches!(node.map(|node| &node.kind), Some(NodeKind::Map { .. }))
    }

    fn key(&self, way: &Way, key: &str) -> Option<Way> {
        let (node, merged) = match self.view.entry(way.node, key) {
            Entry::Absent => return None,
            Entry::Own(_, value) => (value, false),
            Entry::Merged(value) => (value, true),
        };
        Some(self.go(way, node, merged, Step::Key(key.to_owned())))
    }

    fn index(&self, way: &Way, index: usize) -> Option<Way> {
        let node = *self.view.items(way.node).get(index)?;
        Some(self.go(way, node, false, Step::Index(index)))
    }

    fn go(&self, way: &Way, node: NodeId, merged: bool, step: Step) -> Way {
        let target = self.view.resolve(node);
        let shared = merged || target != node || self.aliased.contains(&node);
        let mut steps = way.steps.clone();
        steps.push(step);
        Way {
            node: target,
            steps,
            shared: way.shared.or_else(|| shared.then_some(node)),
        }
    }
}

fn show(steps: &[Step]) -> String {
    let mut shown = String::new();
    for step in steps {
        match step {
            Step::Key(key) => {
                if !shown.is_empty() {
                    shown.push('.');
                }
                shown.push_str(key);
            }
            Step::Index(index) => shown.extend(["[", &index.to_string(), "]"]),
        }
    }
    shown
}
