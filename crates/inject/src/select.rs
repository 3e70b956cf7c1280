//! Finds the pod templates of a document and the paths to them.

use std::collections::BTreeSet;

use mainstay_yaml::{NodeId, NodeKind};

use crate::PodTemplatePath;
use crate::request::is_contrast_pod;
use crate::tree::{Entry, View};

/// Table of kinds with pods: kind, API groups, path of the pod template.
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

/// Whether objects of `kind` may have pod templates or items with pod templates.
pub(crate) fn may_have_pods(kind: &str, paths: &[PodTemplatePath]) -> bool {
    let is_known = KINDS.iter().any(|(name, ..)| *name == kind);
    is_known || kind.ends_with("List") || paths.iter().any(|path| path.kind == kind)
}

/// Maximum nesting of lists.
const MAX_LIST_DEPTH: usize = 8;

/// A step of a path in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Value of a map key.
    Key(String),
    /// Item of a list.
    Index(usize),
}

/// A pod template with its object.
#[derive(Clone, Debug)]
pub(crate) struct PodTemplate {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    /// Node of the object.
    pub(crate) object: NodeId,
    /// Node of the pod template.
    pub(crate) template: NodeId,
    /// Node of the pod spec; `None` if it is missing or not a map.
    pub(crate) spec: Option<NodeId>,
    /// Path from the object to the pod template, for users.
    pub(crate) path: String,
    /// Path from the document's root to the pod spec.
    pub(crate) steps: Vec<Step>,
    /// First node on this path that is also used through an alias or a merge key.
    pub(crate) shared: Option<NodeId>,
    /// Pod spec of a Contrast pod in an object of unknown kind.
    pub(crate) unknown_kind_spec: Option<NodeId>,
}

impl PodTemplate {
    /// Returns the index of the list item that contains the object, if the document is a list.
    pub(crate) fn item(&self) -> Option<usize> {
        match self.steps.get(..2)? {
            [Step::Key(_), Step::Index(index)] => Some(*index),
            _ => None,
        }
    }
}

/// Returns all pod templates of `view`, and all Contrast pods in objects of unknown kind.
pub(crate) fn select(view: &View<'_>, paths: &[PodTemplatePath]) -> Vec<PodTemplate> {
    let mut finder = Finder {
        view,
        paths,
        aliased: view.aliased_nodes(),
        pods: Vec::new(),
    };
    if let Some(root) = view.document.root() {
        let location = finder.root_location(root);
        finder.visit_object(&location, None, MAX_LIST_DEPTH);
    }
    finder.pods
}

/// A node with its path from the root and the first node on that path that is shared.
#[derive(Clone)]
struct Location {
    node: NodeId,
    steps: Vec<Step>,
    shared: Option<NodeId>,
}

struct Finder<'v, 'a> {
    view: &'v View<'a>,
    paths: &'v [PodTemplatePath],
    aliased: BTreeSet<NodeId>,
    pods: Vec<PodTemplate>,
}

impl Finder<'_, '_> {
    fn root_location(&self, node: NodeId) -> Location {
        Location {
            node,
            steps: Vec::new(),
            shared: self.aliased.contains(&node).then_some(node),
        }
    }

    fn visit_object(&mut self, location: &Location, implied_kind: Option<&str>, list_depth: usize) {
        let text = |key| self.view.scalar_at(location.node, &[key]).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let kind = if kind.is_empty() {
            implied_kind.unwrap_or_default()
        } else {
            kind
        }
        .to_owned();
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let templates = self.find_templates(location, &kind, (!api_version.is_empty()).then_some(group));
        for (template, path) in &templates {
            let pod = self.pod_template(location, &kind, template, path.clone());
            self.pods.push(pod);
        }
        if !templates.is_empty() {
            return;
        }
        match (kind.strip_suffix("List"), self.descend_key(location, "items")) {
            (Some(item_kind), Some(items)) if list_depth > 0 => {
                self.visit_list(&items, item_kind, list_depth - 1);
            }
            _ => self.find_pod_in_unknown_kind(location, &kind),
        }
    }

    fn visit_list(&mut self, items: &Location, item_kind: &str, list_depth: usize) {
        for index in 0..self.view.items(items.node).len() {
            if let Some(item) = self.descend_index(items, index) {
                self.visit_object(&item, Some(item_kind), list_depth);
            }
        }
    }

    /// Returns the pod templates of an object with their paths; empty for a kind without pods.
    fn find_templates(&self, object: &Location, kind: &str, group: Option<&str>) -> Vec<(Location, String)> {
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
            let reached = self.resolve_path(object.clone(), &path);
            if reached.is_empty() {
                // A known kind without a pod template is reported as a workload without a pod spec.
                templates.push((object.clone(), path.join(".")));
            }
            let with_path = |location: Location| {
                let path = format_steps(location.steps.get(object.steps.len()..).unwrap_or_default());
                (location, path)
            };
            templates.extend(reached.into_iter().map(with_path));
        }
        templates
    }

    fn resolve_path(&self, from: Location, path: &[String]) -> Vec<Location> {
        path.iter().fold(vec![from], |locations, key| {
            let name = key.trim_end_matches("[]");
            let next = locations
                .iter()
                .filter_map(|location| self.descend_key(location, name));
            if name.len() == key.len() {
                return next.collect();
            }
            next.flat_map(|list| {
                let count = self.view.items(list.node).len();
                (0..count)
                    .filter_map(move |index| self.descend_index(&list, index))
                    .collect::<Vec<_>>()
            })
            .collect()
        })
    }

    fn pod_template(&self, object: &Location, kind: &str, template: &Location, path: String) -> PodTemplate {
        let at_template = template.steps.len() > object.steps.len() || path.is_empty();
        let spec = if at_template {
            self.descend_key(template, "spec")
        } else {
            None
        };
        let spec = spec.filter(|location| self.is_map(location.node));
        let location = spec.as_ref().unwrap_or(template);
        let text = |keys: &[&str]| self.view.scalar_at(object.node, keys).map(str::to_owned);
        PodTemplate {
            api_version: text(&["apiVersion"]).unwrap_or_default(),
            kind: kind.to_owned(),
            name: text(&["metadata", "name"]).unwrap_or_default(),
            namespace: text(&["metadata", "namespace"]),
            object: object.node,
            template: template.node,
            steps: location.steps.clone(),
            shared: location.shared,
            spec: spec.map(|location| location.node),
            path,
            unknown_kind_spec: None,
        }
    }

    /// Adds a Contrast pod in an object of unknown kind: without an error it would be deployed without an
    /// initializer.
    fn find_pod_in_unknown_kind(&mut self, object: &Location, kind: &str) {
        let mut open = vec![object.node];
        while let Some(id) = open.pop() {
            match self.view.node(id).map(|node| &node.kind) {
                Some(NodeKind::List { items, .. }) => open.extend(items),
                Some(NodeKind::Map { entries, .. }) => {
                    if is_contrast_pod(self.view, id) && self.view.get(id, "containers").is_some() {
                        let mut pod = self.pod_template(object, kind, object, "?".into());
                        pod.path = String::new();
                        pod.unknown_kind_spec = Some(id);
                        self.pods.push(pod);
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

    fn descend_key(&self, location: &Location, key: &str) -> Option<Location> {
        let (node, merged) = match self.view.entry(location.node, key) {
            Entry::Absent => return None,
            Entry::Own(_, value) => (value, false),
            Entry::Merged(value) => (value, true),
        };
        Some(self.descend(location, node, merged, Step::Key(key.to_owned())))
    }

    fn descend_index(&self, location: &Location, index: usize) -> Option<Location> {
        let node = *self.view.items(location.node).get(index)?;
        Some(self.descend(location, node, false, Step::Index(index)))
    }

    fn descend(&self, location: &Location, node: NodeId, merged: bool, step: Step) -> Location {
        let target = self.view.resolve(node);
        let shared = merged || target != node || self.aliased.contains(&node);
        let mut steps = location.steps.clone();
        steps.push(step);
        Location {
            node: target,
            steps,
            shared: location.shared.or_else(|| shared.then_some(node)),
        }
    }
}

fn format_steps(steps: &[Step]) -> String {
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
